#include "daemon/cli/inspect/queue_visit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "daemon/broker/control_login.h"
#include "daemon/broker/queue_reader.h"
#include "daemon/cli/inspect/kept_copy.h"
#include "daemon/cli/inspect/message_view.h"
#include "daemon/cli/inspect/return_cost.h"
#include "daemon/cli/inspect/words.h"

namespace bellhop {

namespace {

using Type = QueueKind::Type;

constexpr std::chrono::milliseconds back_within{5000}, look_again{20};

class Visit {
 public:
  Visit(ControlConnection& connection, const VisitOptions& options, std::ostream& err)
      : connection_(connection), options_(options), err_(err) {}

  // False: there is nothing to look at, and why is said.
  bool find(VisitedQueue& found) {
    const auto counts = counts_of_queue(connection_, options_.queue);
    if (!counts) return say(counts.error());
    if (!counts.value())
      return say(fmt::format("is not there, in virtual host '{}' (--vhost looks into another)",
                             printable(connection_.vhost())));
    found.counts = *counts.value();
    const auto kind = kind_of_queue(connection_, options_.queue);
    if (!kind) return say(kind.error());
    found.kind = kind.value();
    // Who names an offset knows that it is a stream.
    if (found.kind.type == Type::unknown && !options_.offset.empty()) found.kind.type = Type::stream;
    cost_ = cost_of_return(found.kind, connection_.broker_version());
    return true;
  }

  // What looking costs is said before anything is taken. False: it is not looked at all.
  bool warn(const VisitedQueue& found) {
    if (found.counts.messages == 0 && found.kind.type == Type::unknown)
      err_ << fmt::format(
          "bellhop: what kind of queue it is cannot be asked ({}); if it is a stream, --offset first reads "
          "it\n",
          printable(found.kind.problem));
    if (!cost_.counts || found.counts.messages == 0) return true;
    const std::string limit =
        cost_.limit ? fmt::format("after {} of them the broker drops or dead-letters it", *cost_.limit)
                    : "a policy may set a limit, beyond which the broker drops or dead-letters it";
    err_ << fmt::format(
        "bellhop: {} '{}': to look at a message counts as a delivery of it ({}), and marks it as "
        "redelivered\n",
        found.kind.type == Type::quorum ? "quorum queue" : "what may be a quorum queue",
        printable(options_.queue), limit);
    if (!found.kind.problem.empty())
      err_ << "bellhop: what kind of queue it is cannot be asked: " << printable(found.kind.problem) << '\n';
    if (options_.force || !is_always_close(cost_)) return true;
    err_ << "bellhop: its delivery limit is so low that nothing is looked at without --force\n";
    return false;
  }

  int look(const VisitedQueue& found, const std::function<bool(const Incoming&, uint64_t)>& each) {
    const bool is_stream = found.kind.type == Type::stream;
    auto reader = is_stream
                      ? QueueReader::open_stream(
                            connection_, options_.queue, options_.offset.empty() ? "first" : options_.offset,
                            static_cast<uint16_t>(std::clamp<uint64_t>(options_.count, 1, 65535)))
                      : QueueReader::open(connection_, options_.queue);
    if (!reader) return failed(reader.error());
    const uint64_t most =
        is_stream ? options_.count : std::min<uint64_t>(options_.count, found.counts.messages);
    int code = 0;
    for (uint64_t number = 1; number <= most; ++number) {
      const auto message = reader.value().next();
      if (!message)
        return failed(message.error() + (message.error().find("stream") == std::string::npos
                                             ? ""
                                             : "; --offset first reads it as a stream"));
      if (!message.value()) break;
      const Wear wear =
          is_stream ? Wear::fine : wear_of(cost_, MessageView(*message.value()).delivery_count());
      const bool is_shown = wear == Wear::fine || options_.force;
      const bool goes_on = is_shown && each(*message.value(), number);
      if (wear == Wear::last) keep(reader.value(), *message.value(), number);
      if (!is_shown) code = refuse(*message.value(), number, wear);
      if (!goes_on) break;
    }
    reader.value().give_back_all(!cost_.counts);
    if (found.kind.type == Type::quorum) wait_until_back(found.counts);
    connection_.close();
    return code;
  }

 private:
  bool say(const std::string& why) {
    err_ << fmt::format("bellhop: queue '{}': {}\n", printable(options_.queue), printable(why, 1000));
    return false;
  }
  int failed(const std::string& why) {
    say(why);
    return 1;
  }

  int refuse(const Incoming& message, uint64_t number, Wear wear) {
    const MessageView view(message);
    err_ << fmt::format("bellhop: {} came back {} times of {}: it is not shown", view.name(number),
                        view.delivery_count(), *cost_.limit);
    if (wear == Wear::close)
      err_ << fmt::format("; --force shows it. Each look takes one, this one too: then {} more are left\n",
                          *cost_.limit - view.delivery_count() - 1);
    else
      err_ << "; --force shows it\n";
    return 1;
  }

  // The members of a quorum queue have to agree before a message is back: whoever looks again at once would
  // see the queue without it. A consumer may have taken it by then.
  void wait_until_back(const QueueCounts& before) {
    const auto deadline = std::chrono::steady_clock::now() + back_within;
    while (before.consumers == 0 && std::chrono::steady_clock::now() < deadline) {
      const auto counts = counts_of_queue(connection_, options_.queue);
      if (!counts || !counts.value() || counts.value()->messages >= before.messages) return;
      std::this_thread::sleep_for(look_again);
    }
  }

  // To give it back would be its end, so a copy takes its place.
  void keep(QueueReader& reader, const Incoming& message, uint64_t number) {
    const std::string name = MessageView(message).name(number);
    ConfirmedPublisher publisher(connection_, [] {});
    const auto kept = put_to_the_end(connection_, publisher, reader, options_.queue, message);
    if (kept)
      err_ << fmt::format(
          "bellhop: {}: the broker would have dropped or dead-lettered it when it came back once more, so "
          "bellhop put it to the end of the queue, with its count at 0\n",
          name);
    else
      err_ << fmt::format(
          "bellhop: {} comes back for the last time, so the broker drops or dead-letters it; it could not be "
          "put "
          "to the end of the queue: {}\n",
          name, printable(kept.error()));
  }

  ControlConnection& connection_;
  const VisitOptions& options_;
  std::ostream& err_;
  ReturnCost cost_;
};

}  // namespace

std::string name_of(QueueKind::Type type) {
  switch (type) {
    case Type::classic:
      return "classic queue";
    case Type::quorum:
      return "quorum queue";
    case Type::stream:
      return "stream";
    case Type::unknown:
      break;
  }
  return "queue";
}

int visit_queue(const config::Config& config, const VisitOptions& options, std::ostream& err,
                const std::function<void(const VisitedQueue&)>& begin,
                const std::function<bool(const Incoming&, uint64_t number)>& each) {
  const BrokerLogin login = log_in_to_broker(config.broker, options.vhost);
  for (const std::string& problem : login.problems) err << "bellhop: broker " << problem << '\n';
  if (login.connection == nullptr) return login.has_no_credentials ? 2 : 1;
  Visit visit(*login.connection, options, err);
  VisitedQueue found{login.shown_url, login.connection->vhost(), {}, {}};
  if (!visit.find(found)) return 1;
  begin(found);
  if (!visit.warn(found)) return 1;
  return visit.look(found, each);
}

}  // namespace bellhop
