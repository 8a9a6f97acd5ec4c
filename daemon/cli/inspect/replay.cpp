#include "daemon/cli/inspect/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "config/load.h"
#include "daemon/broker/control_login.h"
#include "daemon/cli/inspect/destinations.h"
#include "daemon/cli/inspect/kept_copy.h"
#include "daemon/cli/inspect/message_view.h"
#include "daemon/cli/inspect/queue_visit.h"
#include "daemon/cli/inspect/replay_report.h"
#include "daemon/cli/inspect/replay_words.h"
#include "daemon/cli/inspect/return_cost.h"
#include "daemon/cli/inspect/words.h"
#include "daemon/pipeline/replayed.h"
#include "daemon/pipeline/return_address.h"
#include "proto/itinerary.h"

namespace bellhop {

namespace {

using Clock = std::chrono::steady_clock;
using Fate = Outcome::Fate;

// What is sent and not yet acknowledged: as much may come twice when the program is killed.
constexpr size_t window_max = 256;
constexpr uint64_t window_bytes_max = uint64_t{16} << 20;

volatile std::sig_atomic_t is_interrupted = 0;

void interrupt(int) {
  is_interrupted = 1;
}

struct Wishes {
  std::optional<ReplayTarget> to;
  std::optional<HeaderMatch> match;
  uint64_t per_second = 0;
};

// A message on its way.
struct Item {
  Incoming message;
  uint64_t number = 0;
  Destination to;
  Buffer header;  // as it is published
  bool goes = true;
};

class Replaying {
 public:
  Replaying(ControlConnection& connection, QueueReader& reader, ObjectSearch& search,
            const config::RoutingTable& routing, const ReplayOptions& options, const Wishes& wishes,
            const ReturnCost& cost, ReplayReport& report, std::ostream& err)
      : connection_(connection),
        reader_(reader),
        search_(search),
        routing_(routing),
        options_(options),
        wishes_(wishes),
        cost_(cost),
        report_(report),
        err_(err),
        destinations_(connection),
        publisher_(connection, [&err] {
          err << "bellhop: the broker takes no publishes for now (a memory or disk alarm)\n";
        }) {}

  // An error: the connection is gone. What was not acknowledged is in its queue again.
  Result<void> run(uint64_t at_start) {
    const Pace pace(options_.dry_run ? 0 : wishes_.per_second);
    const auto began = Clock::now();
    uint64_t left = at_start;
    size_t window = 16;  // grows when messages are small
    while (left > 0 && is_interrupted == 0 && !stop_) {
      auto count = std::min<uint64_t>({left, window, pace.batch_max(window_max)});
      if (options_.limit != 0) count = std::min(count, options_.limit - std::min(options_.limit, chosen_));
      if (count == 0) break;
      const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
      std::this_thread::sleep_for(
          std::chrono::milliseconds(pace.wait_ms(report_.sent(), static_cast<uint64_t>(elapsed.count()))));
      auto taken = reader_.take(static_cast<size_t>(count));
      if (!taken) return Error{taken.error()};
      left -= taken.value().size();
      uint64_t bytes = 0;
      for (const Incoming& each : taken.value()) bytes += each.header.size() + each.body.size();
      if (!taken.value().empty())
        window = static_cast<size_t>(
            std::clamp<uint64_t>(window_bytes_max / (bytes / taken.value().size() + 1), 1, window_max));
      const bool is_last = taken.value().size() < count;
      if (auto done = batch(std::move(taken.value())); !done) return done;
      report_.show_progress(false);
      if (is_last) break;
    }
    return {};
  }

 private:
  Result<void> batch(std::vector<Incoming> messages) {
    std::vector<Item> items;
    for (Incoming& message : messages) {
      Item item;
      item.message = std::move(message);
      item.number = ++number_;
      if (address(item)) items.push_back(std::move(item));
    }
    look_for_objects(items);
    if (destinations_.is_lost()) return Error{"the connection to the broker is lost"};
    if (options_.dry_run) {
      for (const Item& item : items) {
        if (item.goes) report_.sent(item.to);
        if (item.goes) come_back(item.message);
      }
      return {};
    }
    return send(items);
  }

  // Where it goes, and as what. False: it does not match. One that cannot go stays.
  bool address(Item& item) {
    const MessageView view(item.message);
    if (wishes_.match && !wishes_.match->matches(view.fields())) {
      report_.passes_over();
      come_back(item.message);
      return false;
    }
    ++chosen_;
    if (wishes_.to) {
      item.to = {wishes_.to->exchange, wishes_.to->routing_key};
    } else {
      auto to = return_address(view.fields(), options_.queue, routing_);
      if (!to) return stay(item, to.error() + ": name it with --to");
      item.to = std::move(to.value());
    }
    if (auto there = destinations_.settle(item.to); !there) return stay(item, there.error());
    if (item.to.exchange.empty() && item.to.routing_key == options_.queue)
      return stay(item, "it came from this queue itself: name another place with --to");
    const std::string now = proto::utc_seconds(std::time(nullptr));
    const auto header =
        replayed_header(item.message.header, {options_.queue, now, connection_.user(), options_.without_cc},
                        connection_.frame_bytes_max());
    if (!header) return stay(item, "its headers cannot be read, or are too large for this broker");
    item.header = *header;
    return true;
  }

  // Without its object a message would only be parked again.
  void look_for_objects(std::vector<Item>& items) {
    std::vector<WantedObject> wanted;
    std::vector<Item*> asking;
    for (Item& item : items) {
      const MessageView view(item.message);
      if (!item.goes || !view.claim()) continue;
      wanted.push_back(*view.claim());
      asking.push_back(&item);
    }
    std::vector<FoundObject> found = search_.find(wanted);
    for (size_t i = 0; i < asking.size(); ++i) {
      const ClaimReport report{wanted[i].key, std::move(found[i]), wanted[i].headers.expected, {}};
      if (!report.object.is_there())
        stay(*asking[i], fmt::format("claim {}: {}", printable(report.key),
                                     report.object.look.kind == ObjectLook::Kind::missing
                                         ? "no store has its object (" + report.object.look.reason + ")"
                                         : report.object.look.reason));
      else if (report.has_wrong_size())
        stay(*asking[i],
             fmt::format("claim {}: its object has {} bytes, the message says {}", printable(report.key),
                         report.object.look.size_bytes, *report.expected.size_bytes));
    }
  }

  Result<void> send(std::vector<Item>& items) {
    std::vector<Item*> together;
    for (Item& item : items) {
      if (!item.goes) continue;
      if (destinations_.is_proven(item.to)) {
        together.push_back(&item);
        continue;
      }
      // Refused by the one before it, perhaps.
      if (auto there = destinations_.settle(item.to); !there) {
        stay(item, there.error());
        continue;
      }
      if (auto sent = publish({&item}); !sent) return sent;
    }
    return together.empty() ? Result<void>() : publish(together);
  }

  Result<void> publish(const std::vector<Item*>& items) {
    std::vector<Outgoing> outgoing;
    outgoing.reserve(items.size());
    for (const Item* item : items)
      outgoing.push_back({item->to.exchange, item->to.routing_key, item->header, item->message.body});
    const auto outcomes = publisher_.publish(outgoing);
    if (!outcomes) return Error{outcomes.error()};
    for (size_t i = 0; i < items.size(); ++i) settle(*items[i], outcomes.value()[i]);
    return {};
  }

  void settle(Item& item, const Outcome& outcome) {
    switch (outcome.fate) {
      case Fate::confirmed:
        destinations_.prove(item.to);
        reader_.acknowledge(item.message.tag);
        report_.sent(item.to);
        return;
      case Fate::returned:
        destinations_.prove(item.to);
        stay(item, fmt::format("no queue takes it from exchange '{}' with routing key '{}' ({})",
                               printable(item.to.exchange), printable(item.to.routing_key), outcome.why));
        return;
      case Fate::nacked:
        stay(item, "the broker could not take it (nack)");
        return;
      case Fate::refused:
        // 403, 404: nobody else gets in either. Anything else may be this message's own.
        if (outcome.why.starts_with("403") || outcome.why.starts_with("404"))
          destinations_.refuse(item.to, outcome.why);
        stay(item, "the broker refused it: " + outcome.why);
        return;
      case Fate::unknown:
        stop_ = true;
        stay(item,
             "it may be at its place already, and come twice: the broker closed the channel: " + outcome.why);
        return;
    }
  }

  bool stay(Item& item, const std::string& why) {
    item.goes = false;
    report_.stays(MessageView(item.message).name(item.number), why);
    come_back(item.message);
    return true;
  }

  // It is given back at the end. Where that would be the message's end a copy takes its place now.
  void come_back(const Incoming& message) {
    if (wear_of(cost_, MessageView(message).delivery_count()) != Wear::last) return;
    const std::string name = MessageView(message).name(number_);
    if (auto kept = put_to_the_end(connection_, publisher_, reader_, options_.queue, message); !kept)
      err_ << fmt::format(
          "bellhop: {} comes back for the last time, so the broker drops or dead-letters it: {}\n", name,
          printable(kept.error()));
  }

  ControlConnection& connection_;
  QueueReader& reader_;
  ObjectSearch& search_;
  const config::RoutingTable& routing_;
  const ReplayOptions& options_;
  const Wishes& wishes_;
  const ReturnCost& cost_;
  ReplayReport& report_;
  std::ostream& err_;
  Destinations destinations_;
  ConfirmedPublisher publisher_;
  uint64_t number_ = 0, chosen_ = 0;
  bool stop_ = false;
};

// False: wrong usage, and `err` says what.
bool understand(const ReplayOptions& options, Wishes& wishes, std::ostream& err) {
  const auto take = [&err](const char* name, const std::optional<std::string>& text, auto parse, auto use) {
    if (!text) return true;
    auto parsed = parse(*text);
    if (!parsed) {
      err << fmt::format("bellhop: {}: '{}' {}\n", name, printable(*text), parsed.error());
      return false;
    }
    use(std::move(parsed.value()));
    return true;
  };
  return take("--to", options.to, parse_target, [&](ReplayTarget to) { wishes.to = std::move(to); }) &&
         take("--match", options.match, parse_match,
              [&](HeaderMatch match) { wishes.match = std::move(match); }) &&
         take("--rate", options.rate, parse_rate, [&](uint64_t rate) { wishes.per_second = rate; });
}

int fail(const ReplayOptions& options, const std::string& why, std::ostream& err) {
  err << fmt::format("bellhop: queue '{}': {}\n", printable(options.queue), printable(why, 1000));
  return 1;
}

}  // namespace

int replay(const std::string& config_file, const ReplayOptions& options, std::ostream& out, std::ostream& err,
           std::ostream* progress) {
  Wishes wishes;
  if (!understand(options, wishes, err)) return 2;
  config::Loaded loaded = config::load_file(config_file);
  for (const std::string& error : loaded.errors) err << error << '\n';
  if (!loaded.errors.empty()) return 2;
  const auto config = std::make_shared<const config::Config>(std::move(loaded.config));
  const auto search = ObjectSearch::open(*config);
  if (!search) {
    err << search.error() << '\n';
    return 1;
  }
  const BrokerLogin login = log_in_to_broker(config->broker, options.vhost);
  for (const std::string& problem : login.problems) err << "bellhop: broker " << problem << '\n';
  if (login.connection == nullptr) return login.has_no_credentials ? 2 : 1;
  ControlConnection& connection = *login.connection;
  const auto counts = counts_of_queue(connection, options.queue);
  if (!counts) return fail(options, counts.error(), err);
  if (!counts.value())
    return fail(
        options,
        fmt::format("is not there, in virtual host '{}' (--vhost looks into another)", connection.vhost()),
        err);
  const auto kind = kind_of_queue(connection, options.queue);
  if (!kind) return fail(options, kind.error(), err);
  if (kind.value().type == QueueKind::Type::stream)
    return fail(options, "is a stream: nothing can be taken off it", err);
  const ReturnCost cost = cost_of_return(kind.value(), connection.broker_version());
  if (cost.counts && counts.value()->messages > 0)
    err << fmt::format(
        "bellhop: {} '{}': for what stays this counts as one more delivery\n",
        kind.value().type == QueueKind::Type::quorum ? "quorum queue" : "what may be a quorum queue",
        printable(options.queue));
  auto reader = QueueReader::open(connection, options.queue);
  if (!reader) return fail(options, reader.error(), err);
  for (const int each : {SIGINT, SIGTERM}) std::signal(each, interrupt);
  const config::RoutingTable routing(config);
  ReplayReport report(options.queue, counts.value()->messages, options.dry_run, progress);
  Replaying replaying(connection, reader.value(), *search.value(), routing, options, wishes, cost, report,
                      err);
  const auto done = replaying.run(counts.value()->messages);
  report.show_progress(true);
  if (done) {
    reader.value().give_back_all(!cost.counts);
    connection.close();
  }
  if (options.json)
    out << report.json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  else
    report.print(out);
  if (!done)
    return fail(options, done.error() + "; what was not replayed is in the queue again, run it again", err);
  if (is_interrupted != 0) return fail(options, "stopped; the rest is in the queue", err);
  return report.staying() == 0 ? 0 : 1;
}

}  // namespace bellhop
