#include "daemon/door/amqp/downward.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "daemon/door/amqp/fetcher.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/own_settles.h"
#include "daemon/door/amqp/publisher.h"
#include "daemon/door/amqp/releaser.h"
#include "daemon/door/amqp/undeliverable.h"
#include "proto/table.h"

namespace bellhop {

using namespace proto;

namespace {

std::string_view claim_key_of(const ContentHeader& header) {
  TableCursor cursor(header.header_fields());
  while (auto field = cursor.next()) {
    if (field->name == claim_key_header) return field_string(*field).value_or(std::string_view{});
  }
  return {};
}

}  // namespace

void Downward::relay(const Frame& frame) {
  if (core_.writer->is_busy()) {
    put(core_.writer->own(), frame.raw);
  } else {
    core_.writer->relay(frame.raw);
  }
}

bool Downward::on_frame(Channel& channel, const Frame& frame) {
  // A content that is half out to the client is finished even on a channel that bellhop closed: nothing may
  // stand inside it.
  if (channel.state == Channel::State::local_closing && frame.type != frame_method &&
      !channel.out.is_half_out())
    return true;
  switch (frame.type) {
    case frame_method:
      return on_method(channel, frame);
    case frame_header:
      return on_header(channel, frame);
    default:
      return on_body(channel, frame);
  }
}

bool Downward::on_method(Channel& channel, const Frame& frame) {
  uint32_t number = method_number(frame.payload);
  if (channel.state == Channel::State::local_closing) {
    if (number == method::channel_close_ok) on_close_ok(channel, frame);
    if (number == method::channel_close) {
      put_empty_method(core_.broker->outbox().tail(), method::channel_close_ok, channel.id);
    }
    return true;
  }
  if (channel.out.stage != DeliveryAssembly::Stage::idle) return false;
  switch (number) {
    case method::basic_deliver:
      return begin_content(channel, DeliveryKind::deliver, frame);
    case method::basic_get_ok:
      return begin_content(channel, DeliveryKind::get_ok, frame);
    case method::basic_return:
      return begin_content(channel, DeliveryKind::returned, frame);
    case method::basic_ack:
      on_confirm(channel, frame, false);
      return true;
    case method::basic_nack:
      on_confirm(channel, frame, true);
      return true;
    case method::channel_close:
      on_close(channel, frame);
      return true;
    case method::channel_close_ok:
      on_close_ok(channel, frame);
      return true;
    case method::tx_commit_ok:
      if (!on_tx_ok(channel) || waits_behind_returns(channel, frame)) return true;
      break;
    case method::tx_rollback_ok:
      if (!on_tx_ok(channel)) return true;
      break;
    case method::basic_recover_ok:
      if (channel.recovers_awaited != 0) channel.recovers_awaited--;
      break;
    case method::basic_get_empty:
      if (!channel.gets_awaited.empty()) channel.gets_awaited.pop_front();
      break;
    case method::basic_consume_ok:
      if (auto tag = decode_consume_ok(frame.payload); tag && !channel.consumes_awaited.empty()) {
        channel.consumers.insert_or_assign(tag.value(), std::move(channel.consumes_awaited.front()));
        channel.consumes_awaited.pop_front();
      }
      break;
    case method::basic_cancel_ok:
    case method::basic_cancel:
      if (auto tag = decode_consume_ok(frame.payload)) {
        auto found = channel.consumers.find(tag.value());
        if (found != channel.consumers.end()) {
          if (found->second.no_ack) channel.no_ack_consumers--;
          channel.consumers.erase(found);
        }
        if (core_.lanes->end_consumer(channel, tag.value(), frame.raw)) return true;
      }
      break;
    case method::queue_declare_ok:
      if (auto queue = decode_queue_declare_ok(frame.payload)) {
        channel.last_queue = queue.value();
        if (!channel.declares_awaited.empty()) {
          if (channel.declares_awaited.front()) core_.exclusive_queues.insert(channel.last_queue);
          channel.declares_awaited.pop_front();
        }
      }
      break;
    default:
      break;
  }
  relay(frame);
  return true;
}

bool Downward::begin_content(Channel& channel, DeliveryKind kind, const Frame& frame) {
  DeliveryAssembly& out = channel.out;
  out.stage = DeliveryAssembly::Stage::header;
  out.kind = kind;
  out.method.borrow(frame.raw);
  out.received_bytes = 0;
  out.no_ack = out.settle_when_handed = out.tagged = out.stale = false;
  out.client_tag = 0;
  out.match.reset();
  out.start.clear();
  held_.push_back(channel.id);
  if (kind == DeliveryKind::deliver) {
    auto deliver = decode_deliver(frame.payload);
    if (!deliver) return false;
    out.tag = deliver.value().delivery_tag;
    remember_pipeline(channel, deliver.value().exchange);
    if (channel.no_ack_consumers != 0) {
      auto found = channel.consumers.find(std::string(deliver.value().consumer_tag));
      out.no_ack = found != channel.consumers.end() && found->second.no_ack;
    }
    out.stale = channel.recovers_awaited != 0 && !out.no_ack;
  } else if (kind == DeliveryKind::get_ok) {
    auto got = decode_get_ok(frame.payload);
    if (!got) return false;
    out.tag = got.value().delivery_tag;
    remember_pipeline(channel, got.value().exchange);
    bool no_ack = !channel.gets_awaited.empty() && channel.gets_awaited.front().no_ack;
    out.no_ack = no_ack && channel.tx;
    out.settle_when_handed = no_ack && !channel.tx;
    if (channel.recovers_awaited != 0) {
      // Its tag is dead already, but the client waits for an answer.
      out.no_ack = true;
      out.settle_when_handed = false;
    }
  } else {
    out.tag = 0;
    out.no_ack = true;
  }
  return true;
}

// A hop may name its input by tag only; which pipeline that belongs to is then its delivery's exchange.
void Downward::remember_pipeline(Channel& channel, std::string_view exchange) {
  if (core_.config.pipelines.empty()) return;
  const config::Pipeline* pipeline = core_.shared.routing->pipeline(exchange);
  if (pipeline == nullptr) return;
  auto& known = channel.input_pipeline;
  if (known.size() > 1024 && known.size() > 2 * channel.tags.client_unsettled()) {
    std::erase_if(known, [&](const auto& entry) {
      return channel.tags.owner(entry.first) == TagWindow::Owner::settled;
    });
  }
  known[channel.out.tag] = pipeline;
}

bool Downward::on_header(Channel& channel, const Frame& frame) {
  DeliveryAssembly& out = channel.out;
  if (out.stage != DeliveryAssembly::Stage::header || frame.payload.size() < 14) return false;
  out.header.borrow(frame.raw);
  out.body_bytes = load_u64(frame.payload.data() + 4);
  if (core_.draining && out.kind == DeliveryKind::deliver && !out.no_ack) {
    // Not begun: the broker has it back when the connection ends. Until then its tag is bellhop's, so that no
    // `multiple` covers it.
    channel.tags.add(out.tag, TagWindow::Owner::bellhop);
    out.stage = out.body_bytes == 0 ? DeliveryAssembly::Stage::idle : DeliveryAssembly::Stage::dropping;
    std::erase(held_, channel.id);
    return true;
  }
  if (out.stale) {
    // Sent before the broker took the recover: it is in its queue again, and comes with a tag that counts.
    out.stage = out.body_bytes == 0 ? DeliveryAssembly::Stage::idle : DeliveryAssembly::Stage::dropping;
    std::erase(held_, channel.id);
    return true;
  }
  if (out.kind == DeliveryKind::returned) out.match = match_return(channel);
  if (out.body_bytes < claim_prefix_bytes) {
    begin_plain(channel, 0);
  } else {
    out.stage = DeliveryAssembly::Stage::start;
  }
  return true;
}

bool Downward::on_body(Channel& channel, const Frame& frame) {
  using Stage = DeliveryAssembly::Stage;
  DeliveryAssembly& out = channel.out;
  if (out.stage == Stage::idle || out.stage == Stage::header) return false;
  if (frame.payload.size() > out.body_bytes - out.received_bytes) return false;
  out.received_bytes += frame.payload.size();
  bool whole = out.received_bytes == out.body_bytes;
  switch (out.stage) {
    case Stage::dropping:
      if (whole) out.stage = Stage::idle;
      return true;
    case Stage::collecting:
      put(out.start, frame.payload);
      core_.take(&channel, frame.payload.size());
      if (whole) finish_check(channel);
      return true;
    case Stage::relaying:
      relay_body(channel, frame);
      if (whole) finish_plain(channel);
      return true;
    default:
      break;
  }
  if (frame.payload.size() < claim_prefix_bytes) {
    // RabbitMQ fills its frames, so a first one this small is the whole body's start by a broker that does
    // not: collected by hand.
    if (out.start.size() + frame.payload.size() < claim_prefix_bytes) {
      put(out.start, frame.payload);
      return true;
    }
  }
  uint8_t first[claim_prefix_bytes];
  size_t have = std::min(out.start.size(), claim_prefix_bytes);
  std::copy_n(out.start.begin(), have, first);
  std::copy_n(frame.payload.begin(), claim_prefix_bytes - have, first + have);
  Framing framing = framing_of(first);
  if (out.match != nullptr) {
    if (out.match->transaction.claim()) {
      framing = Framing::check;
    } else {
      framing = out.match->framed ? Framing::inlined : Framing::raw;
    }
  }
  if (framing == Framing::check) {
    out.stage = Stage::collecting;
    core_.collecting++;
    core_.take(&channel, out.start.size() + frame.payload.size());
    put(out.start, frame.payload);
    if (whole) finish_check(channel);
    return true;
  }
  Buffer earlier = std::move(out.start);
  out.start = {};
  begin_plain(channel, framing == Framing::inlined ? claim_prefix_bytes : 0);
  if (!earlier.empty()) {
    Buffer made;
    put_frame(made, frame_body, channel.id, earlier);
    relay_body(channel, {frame_body, channel.id, Bytes(made).subspan(frame_head_bytes, earlier.size()), {}});
  }
  relay_body(channel, frame);
  if (whole) finish_plain(channel);
  return true;
}

// Writes method and content header as the client is to see them, to the client or into the channel's lane
// behind what is held.
void Downward::begin_plain(Channel& channel, size_t strip_bytes) {
  DeliveryAssembly& out = channel.out;
  Lane& lane = lane_of(channel);
  std::erase(held_, channel.id);
  out.strip_bytes = strip_bytes;
  out.stage = DeliveryAssembly::Stage::relaying;
  out.queued = !lane.empty() || core_.writer->is_busy();
  if (out.queued) {
    auto delivery = new_delivery(channel);
    delivery->open = true;
    delivery->unframed = strip_bytes != 0;
    if (out.match != nullptr && out.match->client_tag != 0) {
      out.client_tag = delivery->client_tag = out.match->client_tag;
      channel.confirms.hold(delivery->client_tag);
    }
    core_.lanes->push(channel, lane, std::move(delivery));
  } else {
    core_.writer->begin_content();
  }
  Buffer* to = out.queued ? &lane.back()->frames : &core_.writer->content();
  size_t before = to->size();
  if (out.match != nullptr) {
    auto returned = decode_return(out.method.payload());
    Return original{returned.value().reply_code, returned.value().reply_text, out.match->exchange,
                    out.match->routing_key};
    put_return(*to, channel.id, original);
    put_frame(*to, frame_header, channel.id, out.match->header);
  } else {
    auto header =
        strip_bytes == 0 ? Result<ContentHeader>(Error{}) : decode_content_header(out.header.payload());
    if (out.queued) {
      put(*to, out.method.view());
    } else {
      core_.writer->relay(out.method.view());
    }
    if (header) {
      HeaderEdits edits;
      edits.body_bytes = out.body_bytes - strip_bytes;
      put_content_header(out.queued ? *to : core_.writer->content(), channel.id, header.value(), edits,
                         core_.frame_bytes_max);
    } else if (out.queued) {
      put(*to, out.header.view());
    } else {
      core_.writer->relay(out.header.view());
    }
  }
  if (out.queued) core_.take(&channel, to->size() - before);
  if (out.body_bytes == 0) finish_plain(channel);
}

void Downward::relay_body(Channel& channel, const Frame& frame) {
  DeliveryAssembly& out = channel.out;
  size_t skip = std::min(out.strip_bytes, frame.payload.size());
  out.strip_bytes -= skip;
  if (skip == frame.payload.size() && skip != 0) return;
  if (out.queued) {
    Buffer& frames = lane_of(channel).back()->frames;
    size_t before = frames.size();
    put_frame(frames, frame_body, channel.id, frame.payload.subspan(skip));
    core_.take(&channel, frames.size() - before);
  } else if (skip != 0 || frame.raw.empty()) {
    put_frame(core_.writer->content(), frame_body, channel.id, frame.payload.subspan(skip));
  } else {
    core_.writer->relay(frame.raw);
  }
}

void Downward::finish_plain(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  out.stage = DeliveryAssembly::Stage::idle;
  if (out.kind == DeliveryKind::get_ok && !channel.gets_awaited.empty()) channel.gets_awaited.pop_front();
  if (out.queued) {
    lane_of(channel).back()->open = false;
    core_.lanes->pump(channel);
    return;
  }
  if (out.kind != DeliveryKind::returned && !out.no_ack && !out.tagged) {
    channel.tags.add(out.tag, TagWindow::Owner::bellhop);
  }
  core_.writer->end_content();
  handed(channel, out.kind, out.tag, out.no_ack, out.settle_when_handed, out.client_tag);
}

void Downward::handed(Channel& channel, DeliveryKind kind, uint64_t tag, bool no_ack, bool settle_when_handed,
                      uint64_t client_tag) {
  if (client_tag != 0) {
    answers_.clear();
    channel.confirms.release(client_tag, answers_);
    core_.releaser->write_answers(channel, answers_);
  }
  if (kind == DeliveryKind::returned || no_ack) return;
  if (settle_when_handed) {
    core_.own_settles->settle(channel, tag);
  } else {
    channel.tags.give(tag, TagWindow::Owner::client);
  }
}

std::string Downward::queue_of(Channel& channel, std::string_view consumer_tag) const {
  auto found = channel.consumers.find(std::string(consumer_tag));
  return found == channel.consumers.end() ? std::string() : found->second.queue;
}

// A whole check came: it goes to the fetcher, behind what its lane holds.
void Downward::finish_check(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  out.stage = DeliveryAssembly::Stage::idle;
  std::erase(held_, channel.id);
  core_.collecting--;
  auto delivery = new_delivery(channel);
  delivery->body = std::move(out.start);
  core_.give_back(&channel, delivery->body.size());  // its lane counts it
  out.start = {};
  Bytes method_payload = out.method.payload();
  if (out.kind == DeliveryKind::get_ok && !channel.gets_awaited.empty()) {
    delivery->queue = channel.gets_awaited.front().queue;
    channel.gets_awaited.pop_front();
  }
  delivery->key = as_text(Bytes(delivery->body).subspan(claim_prefix_bytes));
  delivery->method.assign(method_payload.begin(), method_payload.end());
  Bytes header_payload = out.header.payload();
  delivery->header.assign(header_payload.begin(), header_payload.end());
  if (out.match != nullptr) {
    auto returned = decode_return(method_payload);
    Buffer rewritten;
    put_return(rewritten, channel.id,
               {returned.value().reply_code, returned.value().reply_text, out.match->exchange,
                out.match->routing_key});
    delivery->method.assign(rewritten.begin() + frame_head_bytes, rewritten.end() - 1);
    delivery->header = std::move(out.match->header);
    const Claim& claim = *out.match->transaction.claim();
    delivery->named_store = claim.store;
    delivery->expected = {claim.size_bytes, claim.xxh128};
    delivery->transaction = std::move(out.match->transaction);
    delivery->transaction.came_back();
    delivery->client_tag = out.match->client_tag;
    if (delivery->client_tag != 0) channel.confirms.hold(delivery->client_tag);
    out.match.reset();
  }
  core_.fetcher->accept(channel, lane_of(channel), std::move(delivery));
}

// What is arriving, as an entry for its lane. Its tag is bellhop's until the client is handed it.
std::shared_ptr<Delivery> Downward::new_delivery(Channel& channel) {
  DeliveryAssembly& out = channel.out;
  auto delivery = std::make_shared<Delivery>();
  delivery->channel = channel.id;
  delivery->generation = channel.generation;
  delivery->kind = out.kind;
  delivery->tag = out.tag;
  delivery->no_ack = out.no_ack;
  delivery->settle_when_handed = out.settle_when_handed;
  if (out.kind == DeliveryKind::deliver) {
    delivery->consumer_tag = decode_deliver(out.method.payload()).value().consumer_tag;
    delivery->queue = queue_of(channel, delivery->consumer_tag);
  }
  if (out.kind != DeliveryKind::returned && !out.no_ack) {
    channel.tags.add(out.tag, TagWindow::Owner::bellhop);
    out.tagged = true;
  }
  return delivery;
}

// A return carries no tag: it belongs to the earliest unsettled mandatory publish that looks like it.
std::unique_ptr<Sent> Downward::match_return(Channel& channel) {
  auto returned = decode_return(channel.out.method.payload());
  auto header = decode_content_header(channel.out.header.payload());
  if (!returned || !header) return nullptr;
  std::string_view key = claim_key_of(header.value());
  std::string_view id = header.value().text(message_id);
  auto match = std::find_if(channel.sent.begin(), channel.sent.end(), [&](const Sent& sent) {
    const auto& claim = sent.transaction.claim();
    return sent.mandatory && !sent.returned && sent.sent_exchange == returned.value().exchange &&
           sent.sent_routing_key == returned.value().routing_key && sent.message_id == id &&
           (claim ? std::string_view(claim->key) : std::string_view{}) == key;
  });
  if (match == channel.sent.end()) return nullptr;
  auto found = std::make_unique<Sent>(std::move(*match));
  channel.sent.erase(match);
  return found;
}

void Downward::on_confirm(Channel& channel, const Frame& frame, bool nack) {
  auto decoded = decode_settle(frame.payload);
  if (!decoded) return;
  const Settle& settle = decoded.value();
  if (channel.confirms.is_plain()) {
    channel.confirms.settle_relayed(settle.delivery_tag, settle.multiple);
    relay(frame);
    return;
  }
  answers_.clear();
  tokens_.clear();
  if (!channel.confirms.on_broker(settle.delivery_tag, settle.multiple, nack, answers_, tokens_)) {
    core_.log_problem("the broker confirmed a tag that is not outstanding: " +
                      std::to_string(settle.delivery_tag));
  }
  core_.releaser->write_answers(channel, answers_);
  for (uint32_t token : tokens_) {
    auto found = std::find_if(channel.sent.begin(), channel.sent.end(),
                              [&](const Sent& sent) { return sent.token == token; });
    if (found != channel.sent.end()) channel.sent.erase(found);
  }
}

// True: the answer is the client's. bellhop's own commits are answered to nobody.
bool Downward::on_tx_ok(Channel& channel) {
  if (channel.tx_ends_awaited.empty()) return true;
  Channel::TxEnd end = channel.tx_ends_awaited.front();
  channel.tx_ends_awaited.pop_front();
  if (end.own) return false;
  // A rolled-back publish's object goes with it.
  while (!channel.sent.empty() && channel.sent.front().tx_number <= end.number) channel.sent.pop_front();
  return true;
}

// True: the frame goes to the client behind the returns that are still being fetched. A transaction's returns
// come before its commit-ok.
bool Downward::waits_behind_returns(Channel& channel, const Frame& frame) {
  if (channel.returns.empty()) return false;
  core_.lanes->push_frames(channel, DeliveryKind::returned, frame.raw);
  return true;
}

void Downward::on_close(Channel& channel, const Frame& frame) {
  auto close = decode_close(frame.payload);
  if (close) {
    spdlog::info("session={} channel={} closed by broker code={} reason=\"{}\"", core_.session_id, channel.id,
                 close.value().reply_code, close.value().reply_text);
  }
  core_.undeliverable->give_up_held(channel);
  if (channel.state == Channel::State::open) channel.state = Channel::State::broker_closing;
  channel.client_owes_close_ok = true;
  if (channel.close_waits()) {
    // The closes cross: the client's is answered as the broker answers one that it reads now.
    core_.broker->outbox().append(channel.queue.back().frames);
    channel.broker_owes_close_ok = true;
  }
  core_.publisher->abandon(channel);
  core_.lanes->abandon(channel);
  relay(frame);
}

void Downward::on_close_ok(Channel& channel, const Frame& frame) {
  if (channel.state == Channel::State::local_closing) {
    channel.broker_close_ok = true;
    core_.end_local_close(channel);
    return;
  }
  relay(frame);
  channel.broker_owes_close_ok = false;
  core_.end_relayed_close(channel);
}

void Downward::detach_held() {
  for (uint16_t id : held_) {
    Channel* channel = core_.channel(id);
    if (channel == nullptr) continue;
    channel->out.method.detach();
    using Stage = DeliveryAssembly::Stage;
    if (channel->out.stage == Stage::start || channel->out.stage == Stage::collecting)
      channel->out.header.detach();
  }
}

}  // namespace bellhop
