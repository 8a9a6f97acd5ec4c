#include "daemon/door/amqp/session/relay.h"

#include <algorithm>
#include <utility>

namespace bellhop {

Relay::Relay(SessionState& state, SessionHost& host, SessionMemory& memory, Outbox& client_outbox,
             Outbox& broker_outbox, const std::shared_ptr<Executor>& executor)
    : state_(state),
      memory_(memory),
      slots_(state.config().limits.transfers_per_session),
      channels_(memory, state.meter),
      to_client_(client_outbox),
      to_broker_(broker_outbox),
      private_channel_(state.private_channel_id == 0
                           ? nullptr
                           : std::make_unique<PrivateChannel>(state.private_channel_id, broker_outbox)),
      stamper_(state.uuids),
      proxy_acks_(to_broker_),
      tracker_(state, to_client_),
      closing_(state, host, channels_, to_client_, to_broker_, *this, *this),
      refusals_(state, tracker_, closing_),
      exchanges_(state, private_channel_.get()),
      hops_(state, memory, channels_, private_channel_.get(), exchanges_, tracker_, proxy_acks_, closing_,
            refusals_, *this),
      handover_(tracker_, proxy_acks_, state.meter),
      fetcher_(state, host, channels_, memory, slots_, executor),
      spill_(state, host, channels_, memory, closing_, executor),
      body_stream_(state, host, to_client_, client_outbox, executor),
      parker_(state, host, private_channel_.get()),
      undeliverable_(state, host, channels_, to_client_, tracker_, proxy_acks_, parker_, body_stream_),
      delivery_pump_(state, channels_, memory, to_client_, proxy_acks_, fetcher_, spill_, body_stream_,
                     undeliverable_, handover_),
      delivery_frames_(state, channels_, memory, to_client_, tracker_, fetcher_, handover_),
      broker_frames_(state, to_client_, tracker_, closing_, delivery_frames_, delivery_pump_),
      jobs_(state, memory, slots_, executor),
      publish_frames_(state, host, channels_, to_broker_, tracker_, exchanges_, stamper_, jobs_),
      methods_(state, host, to_broker_, proxy_acks_, closing_, *this),
      publish_pump_(state, channels_, memory, to_broker_, tracker_, exchanges_, refusals_, hops_, stamper_,
                    methods_),
      client_frames_(state, host, channels_, to_broker_, closing_, publish_frames_, publish_pump_) {}

Relay::~Relay() {
  closing_.forget_all();
}

void Relay::pump() {
  // A channel that ends gives transfers and memory back.
  do {
    publish_pump_.pump();
    delivery_pump_.pump();
  } while (closing_.pump());
}

void Relay::use(std::shared_ptr<const Snapshot> snapshot) {
  state_.snapshot.swap(snapshot);  // the former one is needed until nothing points into it
  state_.meter.use(state_.snapshot->names);
  for (const auto& channel : channels_.all()) {
    if (channel != nullptr) channel->consumers.find_inputs(*state_.snapshot->routing);
  }
}

std::optional<uint64_t> Relay::tick() {
  const std::optional<uint64_t> fetch_in_ms = fetcher_.tick(), park_in_ms = undeliverable_.tick();
  if (!fetch_in_ms || !park_in_ms) return fetch_in_ms ? fetch_in_ms : park_in_ms;
  return std::min(*fetch_in_ms, *park_in_ms);
}

bool Relay::is_settled() const {
  return publish_pump_.is_idle() && (state_.client_gone || !closing_.has_untold()) && !is_parking() &&
         (private_channel_ == nullptr || private_channel_->is_idle());
}

bool Relay::is_drained() const {
  if (!is_settled() || memory_.leases(MemoryUse::delivery) != 0) return false;
  return std::all_of(channels_.all().begin(), channels_.all().end(), [](const auto& channel) {
    return channel == nullptr ||
           (channel->confirms.unsettled() == 0 && channel->tags.client_unsettled() == 0 &&
            !channel->tx_dirty && channel->tx_ends_awaited.empty() &&
            channel->in.stage == PublishAssembly::Stage::idle);
  });
}

bool Relay::owes_content(bool has_broker) const {
  return channels_.has_returns() || body_stream_.is_streaming() || (to_client_.is_busy() && has_broker);
}

void Relay::end_of_client_frames() {
  for (const auto& channel : channels_.all()) {
    if (channel == nullptr) continue;
    publish_frames_.drop_incomplete(*channel);
    undeliverable_.park_all_unhanded(*channel);
  }
}

void Relay::park_all_unhanded() {
  for (const auto& channel : channels_.all()) {
    if (channel != nullptr) undeliverable_.park_all_unhanded(*channel);
  }
}

void Relay::abandon() {
  body_stream_.cancel();
  closing_.forget_all();
}

void Relay::abandon_deliveries(Channel& channel) {
  channel.deliveries.clear();
  delivery_frames_.abandon(channel);
}

void Relay::hand_back(Channel& channel, std::shared_ptr<Delivery> returned) {
  if (returned->key.empty()) {
    channel.returns.push(std::move(returned));
  } else {
    fetcher_.accept(channel, returned);
  }
}

}  // namespace bellhop
