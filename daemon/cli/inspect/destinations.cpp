#include "daemon/cli/inspect/destinations.h"

#include <fmt/format.h>

#include "daemon/cli/inspect/words.h"

namespace bellhop {

namespace {

using Kind = Declaration::Kind;
using Answer = ControlConnection::Answer;

constexpr uint16_t not_found = 404;

}  // namespace

const std::string& Destinations::problem_of(bool is_queue, const std::string& name) {
  const auto known = problems_.find({is_queue, name});
  if (known != problems_.end()) return known->second;
  std::string& problem = problems_[{is_queue, name}];
  const Answer answer = connection_.look_for({is_queue ? Kind::queue : Kind::exchange, name, "", ""});
  is_lost_ = is_lost_ || answer.kind == Answer::Kind::lost;
  // Who may not look may send all the same: the broker says so then.
  if (answer.kind == Answer::Kind::lost || answer.code == not_found)
    problem = answer.code == not_found
                  ? fmt::format("{} '{}' is not there", is_queue ? "queue" : "exchange", printable(name))
                  : answer.text;
  return problem;
}

Result<void> Destinations::settle(Destination& to) {
  if (!to.exchange.empty()) {
    const std::string& problem = problem_of(false, to.exchange);
    if (problem.empty()) return {};
    if (to.pipeline.empty()) return Error{problem};
    to = with_exchange(to, {to.pipeline});
  }
  if (const auto refused = problems_.find({false, ""}); refused != problems_.end())
    return Error{refused->second};
  if (const std::string& problem = problem_of(true, to.routing_key); !problem.empty()) return Error{problem};
  return {};
}

}  // namespace bellhop
