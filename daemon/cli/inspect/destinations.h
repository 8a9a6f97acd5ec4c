// Whether what a replay wants to send to is there: a publish to an exchange that is not there would cost the
// channel. Each name is asked for once.
#pragma once

#include <map>
#include <string>

#include "daemon/broker/control_connection.h"
#include "daemon/pipeline/next_stop.h"

namespace bellhop {

class Destinations {
 public:
  explicit Destinations(ControlConnection& connection) : connection_(connection) {}

  // Makes `to` one that can be sent to: the step's queue where the broker has no exchange of its pipeline's
  // name. The error says what is not there, or what the broker refused before. Waits.
  Result<void> settle(Destination& to);
  // Whether a publish to it was taken before. What is not proven goes alone, since a refusal costs the
  // channel.
  bool is_proven(const Destination& to) const { return proven_.contains(to.exchange); }
  void prove(const Destination& to) { proven_[to.exchange] = true; }
  // Nothing more goes there.
  void refuse(const Destination& to, const std::string& why) { problems_[{false, to.exchange}] = why; }
  // The connection is gone.
  bool is_lost() const { return is_lost_; }

 private:
  const std::string& problem_of(bool is_queue, const std::string& name);

  ControlConnection& connection_;
  std::map<std::pair<bool, std::string>, std::string> problems_;  // by kind and name; empty: it is there
  std::map<std::string, bool> proven_;
  bool is_lost_ = false;
};

}  // namespace bellhop
