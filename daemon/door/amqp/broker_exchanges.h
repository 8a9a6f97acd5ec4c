// BrokerExchanges: what this session has found out about exchanges at the broker.
//
// Whether a pipeline's exchange is there: where it is not (the AceMQ Pipelines of .NET declare none), a
// step's messages go to its queue through the default exchange (proto/README.md, "Pipeline"). Asked once a
// session.
//
// Whether an exchange that returned a hop keeps messages for later: such a return says nothing, and a hop
// that is sent again because of it comes twice. Asked at the first return, once a session.
//
// Questions travel on the private channel while nothing else of it is under way, since the broker may answer
// with the channel's close. One thread (the session's).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/door/amqp/session_state.h"

namespace bellhop {

class PrivateChannel;

class BrokerExchanges {
 public:
  // `private_channel` is null where the broker allows one channel only: then nothing is asked.
  BrokerExchanges(const SessionState& state, PrivateChannel* private_channel)
      : state_(state), private_channel_(private_channel) {}

  // Whether it is known if the pipeline has its exchange; asks if it is not. A hop that is posted after a
  // question is sent after its answer.
  bool know(const std::string& pipeline);
  // The same for each that is configured. ask_all() also asks.
  bool ask_all();
  bool know_all() const { return all_known_of_ == state_.snapshot->generation || look_at_all(); }
  // The names of those known to have no exchange.
  const std::vector<std::string>& missing() const { return missing_; }
  // It was not as it was known to be: the next that needs it asks again.
  void forget(const std::string& pipeline);

  // nothing: what it returns no queue has. messages: it delivers later what it returned.
  enum class Keeps { nothing, messages, unknown };
  // What the exchange keeps of what it returns, when that is known. Else the broker is asked, and `answer` is
  // called later.
  std::optional<Keeps> ask_what_it_keeps(const std::string& exchange,
                                         std::function<void(Keeps keeps)> answer);

 private:
  void ask(const std::string& pipeline);
  bool look_at_all() const;

  const SessionState& state_;
  PrivateChannel* const private_channel_;
  std::vector<std::string> asked_, known_, missing_;  // pipelines
  // Of the configuration that is in use; said once for it.
  mutable uint64_t all_known_of_ = 0;
  std::map<std::string, Keeps> keeps_;
};

// The type of the exchange that a refused declaration (`text`, as a direct one) found, empty when it does not
// say. Exposed for tests.
std::string type_in_refusal(std::string_view text);
// Whether that refusal found a durable direct exchange without an alternate exchange among its arguments.
bool is_plain_direct(std::string_view text);

}  // namespace bellhop
