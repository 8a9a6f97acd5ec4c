#include "daemon/door/amqp/session_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/broker/private_channel.h"
#include "daemon/door/amqp/body_stream.h"
#include "daemon/door/amqp/broker_exchanges.h"
#include "daemon/door/amqp/deliverer.h"
#include "daemon/door/amqp/downward.h"
#include "daemon/door/amqp/fetcher.h"
#include "daemon/door/amqp/hops.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/outcomes.h"
#include "daemon/door/amqp/own_settles.h"
#include "daemon/door/amqp/parks.h"
#include "daemon/door/amqp/publisher.h"
#include "daemon/door/amqp/releaser.h"
#include "daemon/door/amqp/undeliverable.h"
#include "daemon/door/amqp/upward.h"
#include "daemon/ops/random_bytes.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

SessionCore::SessionCore(Shared& all, uv_loop_t* session_loop, uint64_t id)
    : shared(all), config(*all.config), loop(session_loop), session_id(id), uuids(random_bytes) {
  publisher = std::make_unique<Publisher>(*this);
  releaser = std::make_unique<Releaser>(*this);
  upward = std::make_unique<Upward>(*this);
  downward = std::make_unique<Downward>(*this);
  deliverer = std::make_unique<Deliverer>(*this);
  outcomes = std::make_unique<Outcomes>(*this);
  lanes = std::make_unique<Lanes>(*this);
  spill = std::make_unique<Spill>(*this);
  fetcher = std::make_unique<Fetcher>(*this);
  body_stream = std::make_unique<BodyStream>(*this);
  undeliverable = std::make_unique<Undeliverable>(*this);
  own_settles = std::make_unique<OwnSettles>(*this);
  broker_exchanges = std::make_unique<BrokerExchanges>(*this);
  hops = std::make_unique<Hops>(*this);
  parks = std::make_unique<Parks>(*this);
}

SessionCore::~SessionCore() {
  for (size_t id = 0; id < channels_.size(); ++id) forget_channel(static_cast<uint16_t>(id));
  shared.budget->give_back(held_bytes_);
}

Channel* SessionCore::channel(uint16_t id, uint64_t generation) const {
  Channel* found = channel(id);
  return found != nullptr && found->generation == generation ? found : nullptr;
}

Channel& SessionCore::open_channel(uint16_t id) {
  if (channels_.size() <= id) channels_.resize(size_t{id} + 1);
  channels_[id] = std::make_unique<Channel>(id, ++generations_);
  open_channels_++;
  return *channels_[id];
}

size_t SessionCore::unconfirmed() const {
  size_t sum = 0;
  for (const auto& channel : channels_) {
    if (channel == nullptr) continue;
    sum += channel->confirms.unsettled();
    // And those that have not left yet, since a store is not done with them.
    sum += static_cast<size_t>(
        std::count_if(channel->queue.begin(), channel->queue.end(),
                      [](const Release& each) { return each.kind != Release::Kind::method; }));
  }
  return sum;
}

size_t SessionCore::unacknowledged() const {
  size_t sum = 0;
  for (const auto& channel : channels_) {
    if (channel != nullptr) sum += channel->tags.client_unsettled();
  }
  return sum;
}

void SessionCore::abandon(Channel& channel) {
  publisher->abandon(channel);
  // Publishes of a transaction whose commit was never sent are in no queue.
  channel.sent.clear();
  lanes->abandon_deliveries(channel);
  deliverer->abandon(channel);
  channel.tags.clear();
}

void SessionCore::forget_channel(uint16_t id) {
  Channel* ended = channel(id);
  if (ended == nullptr) return;
  // What goes out in this turn may be borrowed from the frames that the channel holds.
  for (Link* link : {client.get(), broker.get()}) {
    if (link != nullptr) link->outbox().own();
  }
  abandon(*ended);
  lanes->abandon_returns(*ended);
  give_back_for_client(*ended, ended->backlog_for_client_bytes);
  give_back(ended, ended->backlog_bytes);
  channels_[id].reset();
  open_channels_--;
}

void SessionCore::log_problem(const std::string& what) const {
  tell_trouble("session", subject_of_reason(what), fmt::format("session={} {}", session_id, what));
}

void SessionCore::close_channel(Channel& channel, uint16_t code, const std::string& text, uint32_t method) {
  if (channel.state != Channel::State::open) return;
  if (is_half_sent(channel)) {
    // The broker has half a publish: a close between its frames would cost the whole connection.
    if (!channel.close_when_whole) channel.close_when_whole = {code, text};
    return;
  }
  tell_trouble(
      "channel closed", subject_of_reason(text),
      fmt::format("session={} channel={} closed code={} reason=\"{}\"", session_id, channel.id, code, text));
  undeliverable->give_up_held(channel);
  channel.state = Channel::State::local_closing;
  channel.untold = {code, text, method, channel.close_waits()};
  untold_closes_.push_back(channel.id);
  publisher->abandon(channel);
  proto::Close up{200, "closed", 0, 0};
  proto::put_close(broker->outbox().tail(), proto::method::channel_close, channel.id, up);
}

void SessionCore::tell_closes() {
  std::erase_if(untold_closes_, [this](uint16_t id) {
    Channel* found = channel(id);
    if (found == nullptr || !found->untold) return true;
    // A return comes before the close that it may be the reason of.
    if (!found->broker_close_ok || !found->returns.empty()) return false;
    undeliverable->give_up_held(*found);
    abandon(*found);
    const auto untold = *std::exchange(found->untold, std::nullopt);
    proto::put_close(writer->own(), proto::method::channel_close, id,
                     {untold.code, untold.text, static_cast<uint16_t>(untold.method >> 16),
                      static_cast<uint16_t>(untold.method)});
    found->closes_crossed = untold.answers_client;
    if (found->closes_crossed) proto::put_empty_method(writer->own(), proto::method::channel_close_ok, id);
    return true;
  });
}

void SessionCore::end_relayed_close(Channel& channel) {
  if (channel.client_owes_close_ok || channel.broker_owes_close_ok) return;
  if (channel.returns.empty()) {
    forget_channel(channel.id);
  } else {
    unended_closes_.push_back(channel.id);
  }
}

void SessionCore::end_relayed_closes() {
  if (unended_closes_.empty()) return;
  for (uint16_t id : std::exchange(unended_closes_, {})) {
    Channel* found = channel(id);
    if (found != nullptr &&
        (found->state == Channel::State::client_closing || found->state == Channel::State::broker_closing))
      end_relayed_close(*found);
  }
}

bool SessionCore::has_returns() const {
  if (lane_entries == 0) return false;
  for (const auto& channel : channels_) {
    if (channel != nullptr && !channel->returns.empty()) return true;
  }
  return false;
}

void SessionCore::close_connection(uint16_t code, const std::string& text, uint32_t method) {
  if (on_close_connection) on_close_connection(code, text, method);
}

void SessionCore::take(Channel* channel, uint64_t bytes) {
  held_bytes_ += bytes;
  if (channel != nullptr) channel->backlog_bytes += bytes;
  shared.budget->take(bytes);
}

void SessionCore::give_back(Channel* channel, uint64_t bytes) {
  held_bytes_ -= bytes;
  if (channel != nullptr) channel->backlog_bytes -= bytes;
  shared.budget->give_back(bytes);
}

void SessionCore::take_for_client(Channel& channel, uint64_t bytes) {
  held_for_client_bytes_ += bytes;
  channel.backlog_for_client_bytes += bytes;
  shared.held_for_clients.fetch_add(bytes, std::memory_order_relaxed);
  take(&channel, bytes);
}

void SessionCore::give_back_for_client(Channel& channel, uint64_t bytes) {
  held_for_client_bytes_ -= bytes;
  channel.backlog_for_client_bytes -= bytes;
  shared.held_for_clients.fetch_sub(bytes, std::memory_order_relaxed);
  give_back(&channel, bytes);
}

}  // namespace bellhop
