// SessionState: the plain facts of one session that its parts read. What the handshake agreed on, and how far
// the session's end has come. The handshake and the session write them, but for the books that are
// noted here (exclusive queues, made ids). No part is reached from here.
// One thread (the session's).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "daemon/door/amqp/shared.h"
#include "daemon/ops/log_line.h"
#include "daemon/ops/random_bytes.h"
#include "proto/frame.h"
#include "proto/uuid.h"

namespace bellhop {

struct SessionState {
  SessionState(Shared& all, uint64_t id, Door door, std::string peer)
      : shared(all),
        snapshot(all.current.get()),
        session_id(id),
        meter(*all.meter, id, door, std::move(peer)),
        uuids(random_bytes) {}
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;

  // Whose a line of the log is, and what else it says. Any thread.
  LogFields who(std::initializer_list<LogField> more = {}) const {
    return LogFields{{"session", session_id}, if_known("client", meter.client())}.add(more);
  }

  Shared& shared;
  // Changes between two turns only, once the handshake is done (session.cpp).
  std::shared_ptr<const Snapshot> snapshot;
  const config::Config& config() const { return *snapshot->config; }
  const uint64_t session_id;
  mutable SessionMeter meter;  // counting changes nothing for anybody
  proto::UuidGenerator uuids;
  Quota remembered{uint64_t{8} << 20};  // of shared.remembered

  // Set by the handshake.
  uint32_t frame_bytes_max = proto::frame_min_bytes;  // the client's choice: to it and from it
  // The broker's own limit, never less: what bellhop itself sends may need it (ARCHITECTURE.md, "The broker's
  // leg has the broker's frame_max").
  uint32_t broker_frame_bytes_max = proto::frame_min_bytes;
  // A larger body may come in frames that the client does not take. With equal limits there is none.
  uint64_t relayed_body_bytes_max = ~uint64_t{0};
  uint16_t client_channel_max = 0;
  uint16_t private_channel_id = 0;  // 0: there is none
  std::string broker_user;     // empty: not known (another mechanism than PLAIN or AMQPLAIN was passed on)
  bool has_own_login = false;  // bellhop is that user; else the client is, and the broker decides what it may

  // That this connection declared, under names of the client's. A queue that the broker named is parked like
  // an exclusive one by its name: a client may make any number of those.
  std::set<std::string> exclusive_queues;
  void note_exclusive(const std::string& queue) {
    if (!queue.starts_with("amq.")) exclusive_queues.insert(queue);
  }

  bool draining = false;     // no new delivery is begun
  bool client_gone = false;  // the client's socket ended: nothing more goes there
  bool ending = false;       // a connection.close is on its way down or up: client frames are dropped
  bool closing = false;      // the connection's close waits for the returns that are being restored
};

}  // namespace bellhop
