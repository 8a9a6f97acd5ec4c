#include "daemon/broker/queue_reader.h"

#include <amqp.h>
#include <amqp_framing.h>

namespace bellhop {

namespace {

constexpr uint16_t reading_channel = 2;
constexpr uint64_t all_tags = 0;
constexpr uint32_t answer_timeout_ms = 30000;
// A stream does not say that it is at its end.
constexpr uint32_t stream_silence_ms = 2000;

amqp_bytes_t bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};
}

amqp_field_value_t offset_of(const std::string& text) {
  amqp_field_value_t out{};
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos && text.size() < 19) {
    out.kind = AMQP_FIELD_KIND_I64;
    out.value.i64 = std::stoll(text);
  } else {
    out.kind = AMQP_FIELD_KIND_UTF8;
    out.value.bytes = bytes_of(text);
  }
  return out;
}

Error refused(const Incoming& closed) {
  return {std::to_string(closed.code) + " " + closed.text};
}

}  // namespace

Result<QueueReader> QueueReader::open(ControlConnection& connection, std::string queue) {
  if (auto opened = open_channel(connection.state(), reading_channel); !opened) return Error{opened.error()};
  return QueueReader(connection, std::move(queue));
}

Result<QueueReader> QueueReader::open_stream(ControlConnection& connection, std::string stream,
                                             const std::string& offset, uint16_t messages_max) {
  amqp_connection_state_t const state = connection.state();
  if (auto opened = open_channel(state, reading_channel); !opened) return Error{opened.error()};
  amqp_basic_qos(state, reading_channel, 0, messages_max, 0);
  amqp_table_entry_t entry{amqp_cstring_bytes("x-stream-offset"), offset_of(offset)};
  amqp_basic_consume_t consume{};
  consume.queue = bytes_of(stream);
  consume.arguments = {1, &entry};
  amqp_send_method(state, reading_channel, AMQP_BASIC_CONSUME_METHOD, &consume);
  QueueReader out(connection, std::move(stream));
  out.is_stream_ = true;
  const auto answer = next_incoming(state, answer_timeout_ms);
  if (!answer) return Error{answer.error()};
  if (!answer.value()) return Error{"the broker does not answer"};
  if (answer.value()->kind == Incoming::Kind::channel_closed) return refused(*answer.value());
  return out;
}

Result<std::optional<Incoming>> QueueReader::next() {
  if (!is_stream_) {
    auto taken = take(1);
    if (!taken) return Error{taken.error()};
    if (taken.value().empty()) return std::optional<Incoming>{};
    return std::optional<Incoming>{std::move(taken.value().front())};
  }
  auto came = next_incoming(connection_->state(), stream_silence_ms);
  if (!came) return Error{came.error()};
  if (!came.value()) return std::optional<Incoming>{};
  if (came.value()->kind == Incoming::Kind::channel_closed) return refused(*came.value());
  if (came.value()->kind != Incoming::Kind::message) return Error{"the stream was deleted"};
  return came;
}

Result<std::vector<Incoming>> QueueReader::take(size_t count) {
  amqp_connection_state_t const state = connection_->state();
  amqp_basic_get_t get{};
  get.queue = bytes_of(queue_);
  for (size_t i = 0; i < count; ++i) {
    if (const int status = amqp_send_method(state, reading_channel, AMQP_BASIC_GET_METHOD, &get);
        status != AMQP_STATUS_OK)
      return Error{std::string("the connection to the broker is lost: ") + amqp_error_string2(status)};
  }
  std::vector<Incoming> out;
  for (size_t answers = 0; answers < count;) {
    auto came = next_incoming(state, answer_timeout_ms);
    if (!came) return Error{came.error()};
    if (!came.value()) return Error{"the broker does not answer"};
    Incoming& answer = *came.value();
    if (answer.kind == Incoming::Kind::channel_closed) return refused(answer);
    if (answer.kind == Incoming::Kind::none_left) ++answers;
    if (answer.kind != Incoming::Kind::message) continue;
    ++answers;
    out.push_back(std::move(answer));
  }
  return out;
}

void QueueReader::acknowledge(uint64_t tag) {
  amqp_basic_ack(connection_->state(), reading_channel, tag, 0);
}

void QueueReader::give_back_all(bool by_nack) {
  if (by_nack && !is_stream_) amqp_basic_nack(connection_->state(), reading_channel, all_tags, 1, 1);
  amqp_channel_close(connection_->state(), reading_channel, AMQP_REPLY_SUCCESS);
}

}  // namespace bellhop
