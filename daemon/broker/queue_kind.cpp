#include "daemon/broker/queue_kind.h"

#include "daemon/broker/existing.h"
#include "proto/table.h"

namespace bellhop {

namespace {

using Answer = ControlConnection::Answer;

constexpr uint16_t not_found = 404, precondition_failed = 406;
constexpr const char* no_type = "bellhop-asks";

}  // namespace

Result<QueueKind> kind_of_queue(ControlConnection& connection, const std::string& queue) {
  const Declaration question{Declaration::Kind::queue, queue, "", "", {{"x-queue-type", no_type}}};
  const Answer answer = connection.declare(question);
  QueueKind out;
  if (answer.kind == Answer::Kind::lost) return Error{answer.text};
  if (answer.kind == Answer::Kind::done || answer.code != precondition_failed) {
    out.problem = answer.text;
    return out;
  }
  const Existing existing = differences_of(connection, question, answer.text);
  if (existing.is_lost) return Error{"the connection was lost"};
  for (const Difference& each : existing.differences) {
    if (each.what == "x-queue-type" && (each.is_known || each.is_none)) {
      out.type = each.is_none || each.current == "classic" ? QueueKind::Type::classic
                 : each.current == "quorum"                ? QueueKind::Type::quorum
                 : each.current == "stream"                ? QueueKind::Type::stream
                                                           : QueueKind::Type::unknown;
    }
    if (each.what == "x-delivery-limit" && each.is_known)
      out.delivery_limit = proto::decimal_integer(each.current);
  }
  if (out.type == QueueKind::Type::unknown) out.problem = answer.text;
  return out;
}

Result<std::optional<QueueCounts>> counts_of_queue(ControlConnection& connection, const std::string& queue) {
  const Answer answer = connection.look_for({Declaration::Kind::queue, queue, "", ""});
  if (answer.kind == Answer::Kind::done)
    return std::optional<QueueCounts>{QueueCounts{answer.messages, answer.consumers}};
  if (answer.kind == Answer::Kind::refused && answer.code == not_found) return std::optional<QueueCounts>{};
  return Error{answer.text};
}

}  // namespace bellhop
