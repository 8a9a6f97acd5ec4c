#include "daemon/cli/inspect/replay_words.h"

#include "config/units.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr size_t short_string_bytes_max = 255;
constexpr uint64_t per_second_max = 1'000'000;

}  // namespace

Result<ReplayTarget> parse_target(std::string_view text) {
  const size_t at = text.find('/');
  if (at == std::string_view::npos)
    return Error{"has no '/': EXCHANGE/KEY, or /QUEUE for a queue through the default exchange"};
  ReplayTarget out{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
  if (out.exchange.empty() && out.routing_key.empty()) return Error{"names neither an exchange nor a queue"};
  if (out.exchange.size() > short_string_bytes_max || out.routing_key.size() > short_string_bytes_max)
    return Error{"an exchange and a routing key have at most 255 bytes"};
  return out;
}

bool HeaderMatch::matches(Bytes header_fields) const {
  const auto field = proto::find_field(header_fields, header);
  return field && proto::field_text(*field) == text;
}

Result<HeaderMatch> parse_match(std::string_view text) {
  const size_t at = text.find('=');
  if (at == std::string_view::npos || at == 0) return Error{"is not HEADER=TEXT"};
  return HeaderMatch{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

Result<uint64_t> parse_rate(std::string_view text) {
  const std::string_view number = text.ends_with("/s") ? text.substr(0, text.size() - 2) : std::string_view{};
  const auto rate = config::parse_integer(number);
  if (!rate || rate.value() == 0 || rate.value() > per_second_max)
    return Error{"is not N/s, with N from 1 to 1000000"};
  return rate.value();
}

}  // namespace bellhop
