// A declared route (proto/README.md, "Declared route"): three headers that hold all steps, the position of
// the one that the message is for, and the run's id.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/bytes.h"
#include "proto/result.h"

namespace bellhop::proto {

inline constexpr std::string_view slip_route_header = "x-acemq-route";
inline constexpr std::string_view slip_position_header = "x-acemq-route-position";
inline constexpr std::string_view slip_id_header = "x-acemq-route-id";
inline constexpr size_t slip_route_bytes_max = 8192;
inline constexpr size_t slip_steps_max = 64;

// UTF-8 without a comma, control characters or outer blanks, which a reader would take off; not empty.
bool is_step_name(std::string_view name);
inline constexpr std::string_view step_name_rule =
    "UTF-8 without a comma, control characters or outer blanks";

class RoutingSlip {
 public:
  // A fresh slip at position 0. Errors: no steps, more than 64, a route header of more than 8 KiB, a text
  // that is no step name.
  static Result<RoutingSlip> start_of(std::vector<std::string> steps, std::string run_id);
  // Reads a slip from a headers table (its fields, without the length). Nothing: the message carries no
  // declared slip. A missing run id becomes `fresh_run_id`. There are no errors: proto/README.md, "Declared
  // route", says how odd positions are read.
  static std::optional<RoutingSlip> from(Bytes header_fields, std::string_view fresh_run_id);

  const std::vector<std::string>& steps() const { return steps_; }
  uint64_t position() const { return position_; }
  const std::string& run_id() const { return run_id_; }
  bool is_finished() const { return position_ >= steps_.size(); }
  std::optional<std::string_view> current() const;
  std::optional<std::string_view> next() const;
  void advance() { advance_to(position_ + 1); }
  void advance_to(uint64_t position) { position_ = position; }
  void to_headers(Buffer& out) const;  // appends the three encoded fields

 private:
  std::vector<std::string> steps_;
  uint64_t position_ = 0;
  std::string run_id_;
};

}  // namespace bellhop::proto
