#include "daemon/broker/existing.h"

namespace bellhop {

namespace {

// More than a queue has arguments; each question costs a channel.
constexpr size_t differences_max = 24;

}  // namespace

Existing differences_of(ControlConnection& connection, const Declaration& item, const std::string& refusal) {
  Existing out;
  Declaration asked = item;
  std::string text = refusal;
  while (out.differences.size() < differences_max) {
    const auto difference = parse_difference(text);
    if (!difference) return out;
    out.differences.push_back(*difference);
    if (!take_over(asked, *difference)) return out;
    const auto answer = connection.declare(asked);
    if (answer.kind == ControlConnection::Answer::Kind::done) {
      out.is_complete = true;
      return out;
    }
    out.is_lost = answer.kind == ControlConnection::Answer::Kind::lost;
    if (out.is_lost) return out;
    text = answer.text;
  }
  return out;
}

}  // namespace bellhop
