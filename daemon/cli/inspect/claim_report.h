// What is known of a claim's payload: where it is, how large, how old, whether it is still what was stored,
// and how long it stays. As lines for a person and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "daemon/cli/inspect/object_search.h"

namespace bellhop {

struct Checksum {
  // not_read: nobody asked. unknown: there is nothing to compare with; `found` is what the object has.
  enum class State { not_read, right, wrong, unknown, unreadable };
  State state = State::not_read;
  std::string found, problem;
};

struct ClaimReport {
  std::string key;
  FoundObject object;
  Expected expected;
  Checksum checksum;

  // The payload is where it should be, and nothing that was looked at is wrong with it.
  bool is_good() const;
  // Of a present object: its size is not the one that the message says.
  bool has_wrong_size() const;
};

// Reads the whole payload. Waits.
Checksum checksum_of(ObjectSearch& search, const FoundObject& object, const WantedObject& wanted);

// "store", "place", "size", ... one line each, without an indent; `now_s` is the epoch.
std::vector<std::pair<std::string, std::string>> lines_of(const ClaimReport& report, int64_t now_s);
nlohmann::ordered_json json_of(const ClaimReport& report, int64_t now_s);

}  // namespace bellhop
