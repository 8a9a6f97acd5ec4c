#include "daemon/broker/incoming.h"

#include <amqp.h>
#include <amqp_framing.h>

namespace bellhop {

namespace {

// A message that has begun comes to its end soon, or the connection is no good.
constexpr uint32_t content_timeout_ms = 30000;
// A broker's own limit is 128 MiB (3.10), or what its operator allows.
constexpr uint64_t body_bytes_max = uint64_t{512} << 20;
constexpr size_t fixed_header_bytes = 12;  // class, weight, body size

std::string text_of(amqp_bytes_t bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}
Bytes view(amqp_bytes_t bytes) {
  return {static_cast<const uint8_t*>(bytes.bytes), bytes.len};
}

// False: nothing came in time.
Result<bool> wait_frame(amqp_connection_state_t state, amqp_frame_t& frame, uint32_t timeout_ms) {
  const timeval wait{static_cast<time_t>(timeout_ms / 1000),
                     static_cast<suseconds_t>(timeout_ms % 1000 * 1000)};
  const int status = amqp_simple_wait_frame_noblock(state, &frame, &wait);
  if (status == AMQP_STATUS_TIMEOUT) return false;
  if (status != AMQP_STATUS_OK)
    return Error{std::string("the connection to the broker is lost: ") + amqp_error_string2(status)};
  return true;
}

Result<void> wait_content(amqp_connection_state_t state, uint16_t channel, uint8_t type,
                          amqp_frame_t& frame) {
  const auto came = wait_frame(state, frame, content_timeout_ms);
  if (!came) return Error{came.error()};
  if (!came.value()) return Error{"the broker began a message and did not end it"};
  if (frame.channel != channel || frame.frame_type != type)
    return Error{"the broker sent something else in the middle of a message"};
  return {};
}

Result<void> read_content(amqp_connection_state_t state, Incoming& into) {
  amqp_frame_t frame;
  if (auto came = wait_content(state, into.channel, AMQP_FRAME_HEADER, frame); !came) return came;
  const uint64_t body_bytes = frame.payload.properties.body_size;
  if (body_bytes > body_bytes_max)
    return Error{"a message of " + std::to_string(body_bytes) + " bytes is too large to be looked at"};
  into.header.assign(fixed_header_bytes, 0);
  into.header[1] = AMQP_BASIC_CLASS;
  store_u32(into.header.data() + 4, static_cast<uint32_t>(body_bytes >> 32));
  store_u32(into.header.data() + 8, static_cast<uint32_t>(body_bytes));
  put(into.header, view(frame.payload.properties.raw));
  while (into.body.size() < body_bytes) {
    if (auto came = wait_content(state, into.channel, AMQP_FRAME_BODY, frame); !came) return came;
    put(into.body, view(frame.payload.body_fragment));
  }
  return {};
}

template <typename Method>
void take_message(const void* decoded, Incoming& into) {
  const auto* got = static_cast<const Method*>(decoded);
  into.kind = Incoming::Kind::message;
  into.tag = got->delivery_tag;
  into.redelivered = got->redelivered != 0;
  into.exchange = text_of(got->exchange);
  into.routing_key = text_of(got->routing_key);
}

template <typename Method>
void take_confirm(const void* decoded, Incoming::Kind kind, Incoming& into) {
  const auto* got = static_cast<const Method*>(decoded);
  into.kind = kind;
  into.tag = got->delivery_tag;
  into.multiple = got->multiple != 0;
}

// Takes over what a method says. True: a message follows it.
bool take_method(amqp_connection_state_t state, const amqp_frame_t& frame, Incoming& into) {
  using Kind = Incoming::Kind;
  const void* const decoded = frame.payload.method.decoded;
  switch (frame.payload.method.id) {
    case AMQP_BASIC_GET_OK_METHOD:
      take_message<amqp_basic_get_ok_t>(decoded, into);
      return true;
    case AMQP_BASIC_DELIVER_METHOD:
      take_message<amqp_basic_deliver_t>(decoded, into);
      return true;
    case AMQP_BASIC_RETURN_METHOD: {
      const auto* got = static_cast<const amqp_basic_return_t*>(decoded);
      into.kind = Kind::returned;
      into.code = got->reply_code;
      into.text = text_of(got->reply_text);
      into.exchange = text_of(got->exchange);
      into.routing_key = text_of(got->routing_key);
      return true;
    }
    case AMQP_BASIC_GET_EMPTY_METHOD:
      into.kind = Kind::none_left;
      return false;
    case AMQP_BASIC_ACK_METHOD:
      take_confirm<amqp_basic_ack_t>(decoded, Kind::acked, into);
      return false;
    case AMQP_BASIC_NACK_METHOD:
      take_confirm<amqp_basic_nack_t>(decoded, Kind::nacked, into);
      return false;
    case AMQP_CONNECTION_BLOCKED_METHOD:
      into.kind = Kind::blocked;
      return false;
    case AMQP_CONNECTION_UNBLOCKED_METHOD:
      into.kind = Kind::unblocked;
      return false;
    case AMQP_BASIC_CANCEL_METHOD:
      into.kind = Kind::cancelled;
      return false;
    case AMQP_CHANNEL_CLOSE_METHOD: {
      const auto* got = static_cast<const amqp_channel_close_t*>(decoded);
      into.kind = Kind::channel_closed;
      into.code = got->reply_code;
      into.text = text_of(got->reply_text);
      amqp_channel_close_ok_t ok{};
      amqp_send_method(state, frame.channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
      return false;
    }
    default:
      return false;
  }
}

}  // namespace

Result<std::optional<Incoming>> next_incoming(amqp_connection_state_t_* state, uint32_t timeout_ms) {
  amqp_maybe_release_buffers(state);
  amqp_frame_t frame;
  const auto came = wait_frame(state, frame, timeout_ms);
  if (!came) return Error{came.error()};
  if (!came.value()) return std::optional<Incoming>{};
  Incoming out;
  out.channel = frame.channel;
  if (frame.frame_type != AMQP_FRAME_METHOD) return std::optional<Incoming>{std::move(out)};
  if (frame.payload.method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_connection_close_t*>(frame.payload.method.decoded);
    const std::string why = std::to_string(close->reply_code) + " " + text_of(close->reply_text);
    amqp_connection_close_ok_t ok{};
    amqp_send_method(state, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
    return Error{"the broker closed the connection: " + why};
  }
  if (take_method(state, frame, out)) {
    if (auto read = read_content(state, out); !read) return Error{read.error()};
  }
  return std::optional<Incoming>{std::move(out)};
}

Result<void> open_channel(amqp_connection_state_t_* state, uint16_t channel) {
  amqp_channel_open(state, channel);
  const amqp_rpc_reply_t reply = amqp_get_rpc_reply(state);
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return {};
  return Error{"the broker opens no channel " + std::to_string(channel)};
}

}  // namespace bellhop
