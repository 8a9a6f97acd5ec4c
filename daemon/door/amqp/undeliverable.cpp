#include "daemon/door/amqp/undeliverable.h"

#include <spdlog/spdlog.h>

#include "daemon/door/amqp/body_stream.h"
#include "daemon/door/amqp/fetcher.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/own_settles.h"
#include "daemon/door/amqp/parks.h"
#include "proto/claim_frame.h"
#include "proto/table.h"

namespace bellhop {

namespace {

bool has_header(Bytes header_payload, std::string_view name) {
  auto header = proto::decode_content_header(header_payload);
  if (!header) return false;
  proto::TableCursor cursor(header.value().header_fields());
  while (auto field = cursor.next()) {
    if (field->name == name) return true;
  }
  return false;
}

// Takes plain frames apart again: a park needs header and body as they came.
void unframe(Delivery& delivery) {
  if (delivery.unframed) put(delivery.body, proto::claim_inline_prefix);
  for (Bytes rest = delivery.frames; rest.size() >= proto::frame_overhead_bytes;) {
    size_t bytes = load_u32(rest.data() + 3);
    Bytes payload = rest.subspan(proto::frame_head_bytes, bytes);
    if (rest[0] == proto::frame_header) delivery.header.assign(payload.begin(), payload.end());
    if (rest[0] == proto::frame_body) put(delivery.body, payload);
    rest = rest.subspan(bytes + proto::frame_overhead_bytes);
  }
  delivery.frames = {};
}

}  // namespace

void Undeliverable::fail(const std::shared_ptr<Delivery>& delivery, const std::string& reason) {
  Channel* channel = core_.channel_of(*delivery);
  if (channel == nullptr) return;
  core_.fetcher->free_slot(*delivery);
  spdlog::error("session={} channel={} queue={} delivery cannot be restored reason=\"{}\"", core_.session_id,
                delivery->channel, delivery->queue, reason);
  delivery->reason = reason;
  delivery->permanent = true;
  if (delivery->kind == DeliveryKind::returned) {
    core_.close_channel(*channel, 541, "INTERNAL_ERROR - a returned message cannot be restored: " + reason);
    return;
  }
  if (has_header(delivery->header, "x-stream-offset")) {
    spdlog::error("session={} channel={} stream={} message skipped: a stream's message cannot be parked",
                  core_.session_id, delivery->channel, delivery->queue);
    settle(delivery);
    return;
  }
  if (core_.config.undeliverable_reject && !delivery->no_ack) {
    core_.own_settles->settle(*channel, delivery->tag, true);
    delivery->tag = 0;
    settle(delivery);
    return;
  }
  park(delivery);
}

void Undeliverable::park(const std::shared_ptr<Delivery>& delivery) {
  delivery->state = Delivery::State::parking;
  parking_++;
  core_.parks->park(*delivery, delivery->reason, [this, delivery](const std::string& failure) {
    parking_--;
    if (core_.channel_of(*delivery) == nullptr && !failure.empty()) {
      spdlog::error("session={} queue={} message not parked, {}: {}", core_.session_id, delivery->queue,
                    delivery->no_ack ? "it is lost" : "the broker has it back", failure);
      return;
    }
    if (failure.empty()) {
      spdlog::warn("session={} channel={} queue={} message parked reason=\"{}\"", core_.session_id,
                   delivery->channel, delivery->queue, delivery->reason);
      settle(delivery);
    } else {
      core_.fetcher->hold(delivery, failure);
    }
  });
}

// Nothing is left to do for it but the acknowledgement of the original.
void Undeliverable::settle(const std::shared_ptr<Delivery>& delivery) {
  Channel* channel = core_.channel_of(*delivery);
  if (channel == nullptr) return;
  delivery->state = Delivery::State::settled;
  if (!delivery->no_ack && channel->tags.owner(delivery->tag) == TagWindow::Owner::bellhop) {
    core_.own_settles->settle(*channel, delivery->tag);
  }
  // The client waits for an answer to its get: there is nothing for it.
  if (delivery->kind == DeliveryKind::get_ok) {
    Buffer empty;
    proto::put_empty_method(empty, proto::method::basic_get_empty, channel->id, 1);
    if (!core_.lanes->waits_behind_returns(*channel, empty)) put(core_.writer->own(), empty);
  }
  core_.lanes->pump(*channel);
}

void Undeliverable::give_up_held(Channel& channel) {
  for (auto& delivery : channel.deliveries) {
    if (delivery->no_ack && delivery->kind == DeliveryKind::deliver && !delivery->open)
      park_unhanded(channel, delivery);
  }
}

void Undeliverable::park_unhanded(Channel& channel, const std::shared_ptr<Delivery>& delivery) {
  using State = Delivery::State;
  if (delivery->state == State::parking || delivery->state == State::settled ||
      core_.body_stream->is_of(delivery))
    return;
  core_.fetcher->free_slot(*delivery);
  core_.give_back_for_client(channel, delivery->held_bytes());
  if (delivery->state == State::plain) unframe(*delivery);
  core_.take_for_client(channel, delivery->held_bytes());
  delivery->permanent = true;
  if (delivery->reason.empty()) delivery->reason = delivery->unavailable;
  if (delivery->reason.empty()) delivery->reason = "its consumer ended before it could be handed over";
  park(delivery);
}

}  // namespace bellhop
