// Undeliverable: what becomes of a delivery that the client will not be handed, because no store gives its
// payload or because its no_ack consumer is gone: parked (or rejected, by configuration), then the original
// is acknowledged. Those behind it go on meanwhile.
//
//   take ─┬─ a return ────────────────────► given up: its publish is nacked, its payload stays in the store
//         ├─ out of a parked queue, or not readable ► handed over as it stands
//         ├─ of a stream ─────────────────► skipped
//         ├─ on_undeliverable: reject ────► rejected
//         └─ else ─► parking ─┬─ parked ──► settled
//                             ├─ not now ─► set aside, parked again later
//                             └─ never ───► left: it alone stays unacknowledged
//
// One that the broker has forgotten (no_ack) is never left: it is handed over as it stands.
// One thread (the session's).
#pragma once

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon/door/amqp/channels.h"
#include "daemon/door/amqp/client_writer.h"
#include "daemon/door/amqp/down/body_stream.h"
#include "daemon/door/amqp/down/parker.h"
#include "daemon/door/amqp/proxy_acks.h"
#include "daemon/door/amqp/publish_tracker.h"

namespace bellhop {

class Undeliverable {
 public:
  Undeliverable(const SessionState& state, SessionHost& host, Channels& channels, ClientWriter& to_client,
                PublishTracker& tracker, ProxyAcks& proxy_acks, Parker& parker, const BodyStream& body_stream)
      : state_(state),
        host_(host),
        channels_(channels),
        to_client_(to_client),
        tracker_(tracker),
        proxy_acks_(proxy_acks),
        parker_(parker),
        body_stream_(body_stream),
        jitter_(static_cast<uint32_t>(state.session_id * 2654435761U + 2)) {}

  // A delivery in its queue has failed: no store gives it. Its `reason` says why.
  void take(const std::shared_ptr<Delivery>& delivery);
  // The broker has forgotten it, and its client will not be handed it.
  void park_unhanded(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  // The channel ends: parks what no_ack consumers were not handed.
  void park_all_unhanded(Channel& channel);
  // Tries again what could not be parked. Milliseconds until something waits for its turn, or nothing.
  std::optional<uint64_t> tick();

  // Something is on its way to a parked queue.
  bool is_parking() const { return parking_->parks != 0; }
  // A get waits for its park: what stands behind it waits too.
  bool is_parking_gets() const { return parking_->gets != 0; }
  // So much is on its way that the broker is not read. Its answers stand behind what it had sent before, of
  // which RabbitMQ has only so many on their way, whatever their size.
  bool is_full() const {
    return parking_->bytes >= bytes_high && parking_->parks >= on_their_way_max * channels_.count();
  }

 private:
  static constexpr uint64_t bytes_high = uint64_t{16} << 20;
  // RabbitMQ: 200 a channel, and what the sockets hold of large ones.
  static constexpr size_t on_their_way_max = 256;

  // What is on its way to parked queues.
  struct Parking {
    size_t parks = 0, gets = 0;
    uint64_t bytes = 0;
  };
  // One park: counted until it has its outcome, or the session ends.
  class UnderWay {
   public:
    UnderWay(std::shared_ptr<Parking> all, Pending pending, QuotaShare memory, uint64_t bytes, bool is_get)
        : all_(std::move(all)),
          pending_(std::move(pending)),
          memory_(std::move(memory)),
          bytes_(bytes),
          is_get_(is_get) {
      all_->parks++;
      all_->gets += is_get_ ? 1 : 0;
      all_->bytes += bytes_;
    }
    ~UnderWay() { end(); }
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    void end() {
      if (all_ == nullptr) return;
      all_->parks--;
      all_->gets -= is_get_ ? 1 : 0;
      all_->bytes -= bytes_;
      all_.reset();
      pending_.end();
      memory_ = {};
    }

   private:
    std::shared_ptr<Parking> all_;
    Pending pending_;
    QuotaShare memory_;
    const uint64_t bytes_;
    const bool is_get_;
  };
  struct Aside {
    std::shared_ptr<Delivery> delivery;
    uint64_t retry_at_ms;
  };

  void give_up_return(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  void park(const std::shared_ptr<Delivery>& delivery);
  void parked(const std::shared_ptr<Delivery>& delivery, Parker::Outcome outcome, const std::string& why);
  void not_parked(Channel& channel, const std::shared_ptr<Delivery>& delivery, Parker::Outcome outcome,
                  const std::string& why);
  void set_aside(const std::shared_ptr<Delivery>& delivery);
  bool hand_over(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  void settle(Channel& channel, const std::shared_ptr<Delivery>& delivery);
  void answer_get(Channel& channel, Delivery& delivery);
  void tell_lost(const Delivery& delivery, const std::string& why);
  void tell_failed(const Delivery& delivery, const char* what,
                   spdlog::level::level_enum level = spdlog::level::err) const;

  const SessionState& state_;
  SessionHost& host_;
  Channels& channels_;
  ClientWriter& to_client_;
  PublishTracker& tracker_;
  ProxyAcks& proxy_acks_;
  Parker& parker_;
  const BodyStream& body_stream_;
  // Shared with the parks, which may outlive this for a moment at the session's end.
  const std::shared_ptr<Parking> parking_ = std::make_shared<Parking>();
  std::minstd_rand jitter_;
  std::vector<Aside> aside_;
};

}  // namespace bellhop
