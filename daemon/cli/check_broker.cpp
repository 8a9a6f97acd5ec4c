#include "daemon/cli/check_broker.h"

#include <algorithm>
#include <vector>

#include "config/problems.h"
#include "daemon/broker/control_login.h"
#include "daemon/broker/existing.h"

namespace bellhop {

namespace {

using config::quoted;
using Kind = ControlConnection::Answer::Kind;

constexpr uint16_t not_found = 404;
constexpr uint16_t precondition_failed = 406;

class Comparison {
 public:
  Comparison(const config::Config& config, ControlConnection& connection, Report& report)
      : config_(config), connection_(connection), report_(report) {}

  // False: the connection was lost, and `problem` says why.
  bool run() {
    for (const Declaration& item : declarations_of(config_)) {
      if (item.kind != Declaration::Kind::binding && !compare(item)) return false;
    }
    for (const config::Pipeline& pipeline : config_.pipelines) {
      if (!pipeline.declare && !look_for(pipeline)) return false;
    }
    return true;
  }
  const std::string& problem() const { return problem_; }
  size_t same() const { return same_; }
  size_t absent() const { return absent_; }
  size_t wrong() const { return wrong_; }

 private:
  // What bellhop declares. A declaration of something that is there changes nothing; what is not there is
  // only looked for.
  bool compare(const Declaration& item) {
    auto answer = connection_.look_for(item);
    if (answer.kind == Kind::refused && answer.code == not_found) {
      report_.line(item.text() + ": not there yet, bellhop declares it when it starts");
      ++absent_;
      return true;
    }
    if (answer.kind == Kind::done) answer = connection_.declare(item);
    if (answer.kind == Kind::done) {
      ++same_;
      return true;
    }
    ++wrong_;
    if (answer.kind == Kind::lost) return lost(item, answer.text);
    Existing existing;
    if (answer.code == precondition_failed) existing = differences_of(connection_, item, answer.text);
    if (existing.differences.empty()) {
      report_.line(item.text() + ": " + answer.text);
    } else {
      report_.line(item.text() + ": " + describe(existing.differences, item) +
                   (existing.is_complete ? "" : ", and perhaps more") +
                   advice(existing.differences, item, connection_.vhost()));
    }
    return !existing.is_lost || lost(item, "the connection was lost");
  }

  // What somebody else has to declare.
  bool look_for(const config::Pipeline& pipeline) {
    const bool has_start = std::any_of(config_.routes.begin(), config_.routes.end(), [&](const auto& route) {
      return route.slip_pipeline == pipeline.name;
    });
    const std::string left_out = "not there, and pipelines." + pipeline.name + ".declare is false";
    Declaration exchange{Declaration::Kind::exchange, pipeline.name, "", ""};
    const auto queue_of = [&](const std::string& step) {
      return Declaration{Declaration::Kind::queue, pipeline.name + "." + step, "", ""};
    };
    if (!look_for(exchange, has_start ? left_out : left_out + "; a hop goes to the step's queue directly",
                  has_start))
      return false;
    for (const std::string& step : pipeline.steps) {
      if (!look_for(queue_of(step), left_out, true)) return false;
    }
    return true;
  }

  bool look_for(const Declaration& item, const std::string& when_absent, bool is_needed) {
    const auto answer = connection_.look_for(item);
    if (answer.kind == Kind::done) {
      ++same_;
      return true;
    }
    if (answer.kind == Kind::lost) return lost(item, answer.text);
    report_.line(item.text() + ": " + (answer.code == not_found ? when_absent : answer.text));
    if (is_needed || answer.code != not_found) ++wrong_;
    return true;
  }

  bool lost(const Declaration& item, const std::string& why) {
    problem_ = item.text() + ": " + why;
    return false;
  }

  const config::Config& config_;
  ControlConnection& connection_;
  Report& report_;
  std::string problem_;
  size_t same_ = 0, absent_ = 0, wrong_ = 0;
};

}  // namespace

bool check_broker(const config::Config& config, Report& report) {
  const BrokerLogin login = log_in_to_broker(config.broker, {});
  for (const std::string& problem : login.problems) report.line(problem);
  if (login.connection == nullptr) return false;
  ControlConnection& connection = *login.connection;
  report.line(login.shown_url + ", virtual host " + quoted(connection.vhost()));
  Comparison comparison(config, connection, report);
  const bool is_whole = comparison.run();
  if (!is_whole) report.line(comparison.problem());
  report.line(std::to_string(comparison.same()) + " exchanges and queues as they should be, " +
              std::to_string(comparison.absent()) + " that bellhop will declare, " +
              std::to_string(comparison.wrong()) + " different or missing" +
              (is_whole ? "" : "; the rest was not looked at"));
  if (config.pipelines.empty()) {
    report.line("the file has no pipelines, so there is nothing to compare");
  } else {
    report.line(
        "bindings cannot be seen over AMQP: bellhop makes those of the pipelines that it declares when it "
        "starts, `rabbitmqctl list_bindings` shows them");
  }
  if (is_whole) connection.close();
  return is_whole && comparison.wrong() == 0;
}

}  // namespace bellhop
