#include "daemon/cli/inspect/claim_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config/units.h"
#include "daemon/cli/inspect/words.h"
#include "proto/itinerary.h"

namespace bellhop {

namespace {

using Kind = ObjectLook::Kind;
using State = Checksum::State;

std::string_view name_of(const FoundObject& object) {
  if (!object.is_issued) return "no_key";
  switch (object.look.kind) {
    case Kind::present:
      return "present";
    case Kind::missing:
      return "missing";
    case Kind::no_object:
      return "no_object";
    case Kind::unavailable:
      return "unavailable";
  }
  return "unavailable";
}

std::string_view name_of(State state) {
  switch (state) {
    case State::not_read:
      return "not_read";
    case State::right:
      return "right";
    case State::wrong:
      return "wrong";
    case State::unknown:
      return "unknown";
    case State::unreadable:
      return "unreadable";
  }
  return "not_read";
}

std::string_view type_of(const config::Store& store) {
  if (std::holds_alternative<config::FilesystemStore>(store.kind)) return "filesystem";
  return std::holds_alternative<config::S3Store>(store.kind) ? "s3" : "memory";
}

std::optional<int64_t> retention_s(const config::Store& store) {
  const auto* files = std::get_if<config::FilesystemStore>(&store.kind);
  if (files == nullptr || !files->retention_ms) return std::nullopt;
  return static_cast<int64_t>(*files->retention_ms / 1000);
}

std::string state_line(const FoundObject& object) {
  switch (object.look.kind) {
    case Kind::present:
      return "present";
    case Kind::missing:
      return "ABSENT: " + object.look.reason;
    case Kind::no_object:
      return "UNUSABLE: " + object.look.reason;
    case Kind::unavailable:
      return "UNKNOWN: " + object.look.reason;
  }
  return "";
}

std::string checksum_line(const ClaimReport& report) {
  const Checksum& checksum = report.checksum;
  switch (checksum.state) {
    case State::right:
      return fmt::format("right (XXH3-128 {})", checksum.found);
    case State::wrong:
      return "WRONG: " + printable(checksum.problem, 1000);
    case State::unknown:
      return fmt::format("XXH3-128 {}; nothing to compare it with", checksum.found);
    case State::unreadable:
      return "UNKNOWN: " + printable(checksum.problem, 1000);
    case State::not_read:
      break;
  }
  return "";
}

std::string retention_line(const config::Store& store, const ObjectLook& look, int64_t now_s) {
  if (!look.expires.empty()) return "the service removes it: " + printable(look.expires);
  const auto retention = retention_s(store);
  if (!retention) {
    return std::holds_alternative<config::S3Store>(store.kind)
               ? "bellhop removes nothing from a bucket; the service names no lifecycle rule for it"
               : "none: bellhop keeps it for ever";
  }
  const std::string whole = config::show_time(static_cast<uint64_t>(*retention) * 1000);
  const int64_t left = *retention - (now_s - look.written_at_s.value_or(now_s));
  if (left <= 0) return fmt::format("OVER ({}): the next sweep removes it", whole);
  return fmt::format("{} left of {}", time_in_words(left), whole);
}

}  // namespace

bool ClaimReport::has_wrong_size() const {
  return object.is_there() && expected.size_bytes && *expected.size_bytes != object.look.size_bytes;
}

bool ClaimReport::is_good() const {
  return object.is_there() && !has_wrong_size() && checksum.state != State::wrong &&
         checksum.state != State::unreadable;
}

Checksum checksum_of(ObjectSearch& search, const FoundObject& object, const WantedObject& wanted) {
  Checksum out;
  if (!wanted.headers.expected.xxh128) {
    const auto hash = object.store->hash(wanted.key);
    out.state = hash ? State::unknown : State::unreadable;
    (hash ? out.found : out.problem) = hash ? hash.value() : hash.error();
    return out;
  }
  const FetchResult fetched = search.fetch(object, wanted);
  if (fetched.object != nullptr) {
    out.state = State::right;
    out.found = *wanted.headers.expected.xxh128;
    return out;
  }
  out.state = fetched.failure.kind == FetchFailure::Kind::corrupt ? State::wrong : State::unreadable;
  out.problem = fetched.failure.reason;
  return out;
}

std::vector<std::pair<std::string, std::string>> lines_of(const ClaimReport& report, int64_t now_s) {
  std::vector<std::pair<std::string, std::string>> out;
  const FoundObject& object = report.object;
  if (object.store == nullptr) return {{"object", state_line(object)}};
  const config::Store& store = object.store->config();
  out.emplace_back("object", state_line(object));
  out.emplace_back("store", fmt::format("{} ({})", store.name, type_of(store)));
  out.emplace_back("place", object.store->place_of(report.key));
  if (!object.is_there()) return out;
  out.emplace_back("size",
                   bytes_in_words(object.look.size_bytes) +
                       (report.has_wrong_size() ? fmt::format(": WRONG, the message says {}",
                                                              bytes_in_words(*report.expected.size_bytes))
                                                : ""));
  if (const auto written = object.look.written_at_s)
    out.emplace_back("written",
                     fmt::format("{}, {} ago", utc_in_words(*written), time_in_words(now_s - *written)));
  if (report.checksum.state != State::not_read) out.emplace_back("checksum", checksum_line(report));
  out.emplace_back("retention", retention_line(store, object.look, now_s));
  return out;
}

nlohmann::ordered_json json_of(const ClaimReport& report, int64_t now_s) {
  nlohmann::ordered_json out;
  const FoundObject& object = report.object;
  out["key"] = report.key;
  out["object"] = name_of(object);
  if (!object.look.reason.empty()) out["reason"] = object.look.reason;
  if (object.store == nullptr) return out;
  const config::Store& store = object.store->config();
  out["store"] = store.name;
  out["type"] = type_of(store);
  out["place"] = object.store->place_of(report.key);
  if (!object.is_there()) return out;
  out["size_bytes"] = object.look.size_bytes;
  if (report.expected.size_bytes) out["expected_size_bytes"] = *report.expected.size_bytes;
  if (const auto written = object.look.written_at_s) {
    out["written_at"] = proto::utc_seconds(*written);
    out["age_s"] = now_s - *written;
    if (const auto retention = retention_s(store)) {
      out["retention_s"] = *retention;
      out["retention_left_s"] = *retention - (now_s - *written);
    }
  }
  if (!object.look.expires.empty()) out["expires"] = object.look.expires;
  if (report.checksum.state != State::not_read) {
    out["checksum"] = {{"state", name_of(report.checksum.state)}};
    if (!report.checksum.found.empty()) out["checksum"]["xxh128"] = report.checksum.found;
    if (report.expected.xxh128) out["checksum"]["expected"] = *report.expected.xxh128;
    if (!report.checksum.problem.empty()) out["checksum"]["problem"] = report.checksum.problem;
  }
  return out;
}

}  // namespace bellhop
