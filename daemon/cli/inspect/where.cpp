#include "daemon/cli/inspect/where.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "config/load.h"
#include "daemon/cli/inspect/claim_report.h"
#include "daemon/cli/inspect/words.h"
#include "proto/claim_frame.h"

namespace bellhop {

namespace {

void print(const std::vector<ClaimReport>& reports, const std::string& key, std::ostream& out) {
  const int64_t now_s = std::time(nullptr);
  out << "claim " << printable(key) << '\n';
  for (const ClaimReport& report : reports) {
    for (const auto& [name, text] : lines_of(report, now_s)) out << fmt::format("  {:<10}{}\n", name, text);
    if (&report != &reports.back()) out << '\n';
  }
}

}  // namespace

int where(const std::string& config_file, const WhereOptions& options, std::ostream& out, std::ostream& err) {
  const config::Loaded loaded = config::load_file(config_file);
  for (const std::string& error : loaded.errors) err << error << '\n';
  if (!loaded.errors.empty()) return 2;
  if (loaded.config.stores.empty()) {
    err << "bellhop: " << config_file << " has no stores, so there is nowhere to look\n";
    return 2;
  }
  if (!proto::is_redeemable_key(options.key, proto::KeyRule::any)) {
    err << "bellhop: " << proto::bad_key_reason(options.key)
        << ": a key is what follows AC 01 01 in a message's body\n";
    return 2;
  }
  const auto search = ObjectSearch::open(loaded.config);
  if (!search) {
    err << search.error() << '\n';
    return 1;
  }
  WantedObject wanted{options.key, {}};
  wanted.headers.expected.xxh128 = options.xxh128;
  std::vector<ClaimReport> reports;
  for (FoundObject& found : search.value()->everywhere(options.key)) {
    ClaimReport report{options.key, std::move(found), wanted.headers.expected, {}};
    if (report.object.is_there()) report.checksum = checksum_of(*search.value(), report.object, wanted);
    reports.push_back(std::move(report));
  }
  if (options.json) {
    nlohmann::ordered_json json{{"key", options.key}, {"stores", nlohmann::ordered_json::array()}};
    for (const ClaimReport& report : reports) json["stores"].push_back(json_of(report, std::time(nullptr)));
    out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  } else {
    print(reports, options.key, out);
  }
  const auto is_good = [](const ClaimReport& report) { return report.is_good(); };
  const auto is_wrong = [](const ClaimReport& report) {
    return report.object.is_there() && !report.is_good();
  };
  return std::any_of(reports.begin(), reports.end(), is_good) &&
                 std::none_of(reports.begin(), reports.end(), is_wrong)
             ? 0
             : 1;
}

}  // namespace bellhop
