// A carried itinerary (proto/README.md, "Carried itinerary"): the header `acemq-routing-slip`, JSON, with the
// stops ahead and those done.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/bytes.h"
#include "proto/result.h"
#include "proto/table.h"

namespace bellhop::proto {

inline constexpr std::string_view itinerary_header = "acemq-routing-slip";
inline constexpr size_t itinerary_json_bytes_max = 65536;   // reading
inline constexpr size_t itinerary_start_bytes_max = 32768;  // at start, with every stop done
inline constexpr int itinerary_depth_max = 16;

struct Stop {
  std::string exchange, routing_key, name, completed_at;
  // Fields that bellhop does not know, as JSON object members without braces. They are kept when it is
  // written.
  std::string unknown;
};

class Itinerary {
 public:
  // Errors: no stops, more than 64, JSON of more than 32 KiB with every stop done.
  static Result<Itinerary> start_of(std::vector<Stop> stops);
  // Errors, none of which passes: not JSON, a root that is no object, `steps` that is neither an array nor
  // null (which means finished), a stop that is no object, too long, too deep.
  static Result<Itinerary> parse(std::string_view json);

  const std::vector<Stop>& steps() const { return steps_; }
  const std::vector<Stop>& done() const { return done_; }
  bool is_finished() const { return steps_.empty(); }
  const Stop* current() const { return steps_.empty() ? nullptr : &steps_.front(); }
  // Moves the current stop to the end of done(). `completed_at`: UTC, seconds, `Z`.
  void advance(std::string completed_at);
  std::string to_json() const;

 private:
  std::vector<Stop> steps_, done_;
  std::string unknown_;  // as Stop::unknown, of the root
};

// The text of a table's acemq-routing-slip header; nothing when it is absent. A field that is no string gives
// an empty text (not JSON).
std::optional<std::string_view> itinerary_text(Bytes header_fields);

std::string utc_seconds(int64_t epoch_s);  // 2026-09-09T16:18:09Z

}  // namespace bellhop::proto
