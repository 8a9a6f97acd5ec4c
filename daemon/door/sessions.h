// Sessions: all of them, and their limits. Main thread; what a session's thread says (it ended) comes through
// a mailbox.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/door/amqp/session/session.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

class Sessions {
 public:
  // `mailbox` is the main loop's.
  Sessions(Shared& shared, std::shared_ptr<Mailbox> mailbox)
      : shared_(shared), mailbox_(std::move(mailbox)) {}

  // Takes the descriptor. Past limits.sessions or limits.tcp_sessions the client is told so (530) and not
  // served.
  void accept(Accepted accepted);
  // Every session ends once nothing of it is unsettled; `done` is called when all have.
  void drain(std::function<void()> done);
  // There is another one: a session that has nothing to do would keep the former.
  void look_at_configuration();
  // Every session ends now, and should have within that time.
  void stop_all(const std::string& why, uint64_t within_ms);
  // What those that have not ended wait for, a line each. While draining.
  std::vector<LogFields> what_is_unsettled() const;
  size_t size() const { return sessions_.size(); }
  // Once after many sessions have ended: what they had is free, and the allocator keeps it.
  bool has_shrunk();

 private:
  bool is_full(size_t served, size_t limit, bool tcp) const;
  void ended(uint64_t id);
  void tell_free_places() const;

  Shared& shared_;
  std::shared_ptr<Mailbox> mailbox_;
  std::unordered_map<uint64_t, std::unique_ptr<Session>> sessions_;
  size_t served_ = 0, served_tcp_ = 0;
  std::unordered_map<uint64_t, bool> is_served_;  // by id: not one that is only being refused
  uint64_t ids_ = 0;
  size_t most_ = 0;  // since it shrank
  std::function<void()> drained_;
};

}  // namespace bellhop
