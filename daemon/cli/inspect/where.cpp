#include "daemon/cli/inspect/where.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "config/load.h"
#include "daemon/cli/inspect/claim_report.h"
#include "daemon/cli/inspect/message_view.h"
#include "daemon/cli/inspect/words.h"
#include "proto/claim_frame.h"

namespace bellhop {

namespace {

using Json = nlohmann::ordered_json;

void print(const ClaimReport& report, int64_t now_s, std::ostream& out) {
  for (const auto& [name, text] : lines_of(report, now_s)) out << fmt::format("  {:<10}{}\n", name, text);
}

void print(const Json& json, std::ostream& out) {
  out << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

// What each store has under one key.
int where_is(const WhereOptions& options, ObjectSearch& search, std::ostream& out) {
  WantedObject wanted{options.key, {}};
  wanted.headers.expected.xxh128 = options.xxh128;
  const int64_t now_s = std::time(nullptr);
  Json json{{"key", options.key}, {"stores", Json::array()}};
  bool is_good = false, is_wrong = false;
  if (!options.json) out << "claim " << printable(options.key) << '\n';
  for (FoundObject& found : search.everywhere(options.key)) {
    ClaimReport report{options.key, std::move(found), wanted.headers.expected, {}};
    if (report.object.is_there()) report.checksum = checksum_of(search, report.object, wanted);
    is_good = is_good || report.is_good();
    is_wrong = is_wrong || (report.object.is_there() && !report.is_good());
    if (options.json) {
      json["stores"].push_back(json_of(report, now_s));
      continue;
    }
    print(report, now_s, out);
    out << '\n';
  }
  if (options.json) print(json, out);
  return is_good && !is_wrong ? 0 : 1;
}

// The claims of the messages in a queue, each with the first store that has it.
int where_are(const config::Config& config, const WhereOptions& options, ObjectSearch& search,
              std::ostream& out, std::ostream& err) {
  Json json;
  uint64_t looked_at = 0, total = 0, claims = 0, wrong = 0;
  const int code = visit_queue(
      config, options.visit, err,
      [&](const VisitedQueue& found) {
        total = found.counts.messages;
        json = {{"queue", options.visit.queue},
                {"vhost", found.vhost},
                {"messages", total},
                {"claims", Json::array()}};
      },
      [&](const Incoming& message, uint64_t number) {
        ++looked_at;
        const MessageView view(message);
        if (!view.claim()) return true;
        ++claims;
        ClaimReport report{
            view.claim()->key, search.find({*view.claim()}).front(), view.claim()->headers.expected, {}};
        if (report.object.is_there()) report.checksum = checksum_of(search, report.object, *view.claim());
        wrong += report.is_good() ? 0 : 1;
        const int64_t now_s = std::time(nullptr);
        if (options.json) {
          Json each = json_of(report, now_s);
          each["number"] = number;
          json["claims"].push_back(std::move(each));
        } else {
          out << view.name(number) << ", claim " << printable(report.key) << '\n';
          print(report, now_s, out);
          out << '\n' << std::flush;
        }
        return true;
      });
  if (json.is_null()) return code;  // no such queue
  json["looked_at"] = looked_at;
  if (options.json)
    print(json, out);
  else
    out << fmt::format("{} looked at{}: {}, {} of them not there or not right\n",
                       counted(looked_at, "message"),
                       total > looked_at ? fmt::format(" of {} (-n looks at more)", total) : "",
                       counted(claims, "claim"), wrong);
  return code != 0 ? code : wrong == 0 ? 0 : 1;
}

}  // namespace

int where(const std::string& config_file, const WhereOptions& options, std::ostream& out, std::ostream& err) {
  const config::Loaded loaded = config::load_file(config_file);
  for (const std::string& error : loaded.errors) err << error << '\n';
  if (!loaded.errors.empty()) return 2;
  if (options.key.empty() == options.visit.queue.empty()) {
    err << "bellhop: where takes a KEY or --queue QUEUE, one of them\n";
    return 2;
  }
  if (loaded.config.stores.empty()) {
    err << "bellhop: " << config_file << " has no stores, so there is nowhere to look\n";
    return 2;
  }
  if (!options.key.empty() && !proto::is_redeemable_key(options.key, proto::KeyRule::any)) {
    err << "bellhop: " << proto::bad_key_reason(options.key)
        << ": a key is what follows AC 01 01 in a message's body\n";
    return 2;
  }
  const auto search = ObjectSearch::open(loaded.config);
  if (!search) {
    err << search.error() << '\n';
    return 1;
  }
  return options.key.empty() ? where_are(loaded.config, options, *search.value(), out, err)
                             : where_is(options, *search.value(), out);
}

}  // namespace bellhop
