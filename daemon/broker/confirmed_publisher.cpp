#include "daemon/broker/confirmed_publisher.h"

#include <amqp.h>
#include <amqp_framing.h>

#include <algorithm>

#include "proto/content_header.h"

namespace bellhop {

namespace {

using Fate = Outcome::Fate;

constexpr uint16_t publishing_channel = 3;
constexpr uint32_t silence_max_ms = 60000;
constexpr size_t fixed_header_bytes = 12;  // class, weight, body size: rabbitmq-c decodes what is behind them

amqp_bytes_t bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};
}
amqp_bytes_t bytes_of(Bytes bytes) {
  return {bytes.size(), const_cast<uint8_t*>(bytes.data())};
}

std::string_view message_id_of(Bytes header) {
  const auto decoded = proto::decode_content_header(header);
  return decoded ? decoded.value().text(proto::message_id) : std::string_view{};
}

// A return has no number. It is of one that looks like it; when several do, it is taken for all of them:
// better one too many that is thought not to be there.
bool is_return_of(const Incoming& returned, const Outgoing& sent) {
  return returned.exchange == sent.exchange && returned.routing_key == sent.routing_key &&
         std::equal(returned.body.begin(), returned.body.end(), sent.body.begin(), sent.body.end()) &&
         message_id_of(returned.header) == message_id_of(sent.header);
}

}  // namespace

Result<void> ConfirmedPublisher::open() {
  if (is_open_) return {};
  amqp_connection_state_t const state = connection_->state();
  if (auto opened = open_channel(state, publishing_channel); !opened) return opened;
  if (amqp_confirm_select(state, publishing_channel) == nullptr)
    return Error{"the broker gives no confirms on a channel"};
  is_open_ = true;
  published_ = 0;
  return {};
}

Result<void> ConfirmedPublisher::send(const Outgoing& message) {
  amqp_connection_state_t const state = connection_->state();
  amqp_pool_t pool;
  init_amqp_pool(&pool, 4096);
  void* properties = nullptr;
  int status = amqp_decode_properties(AMQP_BASIC_CLASS, &pool,
                                      bytes_of(message.header.subspan(fixed_header_bytes)), &properties);
  if (status >= 0)
    status = amqp_basic_publish(
        state, publishing_channel, bytes_of(message.exchange), bytes_of(message.routing_key), 1, 0,
        static_cast<const amqp_basic_properties_t*>(properties), bytes_of(message.body));
  empty_amqp_pool(&pool);
  if (status < 0) return Error{std::string("a message cannot be sent: ") + amqp_error_string2(status)};
  ++published_;
  return {};
}

Result<std::vector<Outcome>> ConfirmedPublisher::publish(const std::vector<Outgoing>& messages) {
  if (auto opened = open(); !opened) return Error{opened.error()};
  const uint64_t first = published_ + 1;
  for (const Outgoing& message : messages) {
    if (auto sent = send(message); !sent) return Error{sent.error()};
  }
  std::vector<Outcome> out(messages.size());
  std::vector<bool> is_settled(messages.size(), false);
  size_t left = messages.size();
  const auto settle = [&](uint64_t tag, bool multiple, Fate fate) {
    for (size_t i = 0; i < out.size(); ++i) {
      const uint64_t number = first + i;
      if (is_settled[i] || (multiple ? tag != 0 && number > tag : number != tag)) continue;
      is_settled[i] = true;
      --left;
      if (out[i].fate != Fate::returned) out[i].fate = fate;
    }
  };
  while (left > 0) {
    const auto came = next_incoming(connection_->state(), silence_max_ms);
    if (!came) return Error{came.error()};
    if (!came.value())
      return Error{is_blocked_ ? "the broker takes no publishes now: it has a memory or disk alarm"
                               : "the broker has confirmed nothing for 60 s"};
    const Incoming& answer = *came.value();
    if (answer.kind == Incoming::Kind::blocked && !is_blocked_) {
      is_blocked_ = true;
      on_blocked_();
    }
    if (answer.kind == Incoming::Kind::unblocked) is_blocked_ = false;
    if (answer.channel != publishing_channel) continue;
    if (answer.kind == Incoming::Kind::acked) settle(answer.tag, answer.multiple, Fate::confirmed);
    if (answer.kind == Incoming::Kind::nacked) settle(answer.tag, answer.multiple, Fate::nacked);
    if (answer.kind == Incoming::Kind::returned) {
      for (size_t i = 0; i < out.size(); ++i) {
        if (!is_settled[i] && is_return_of(answer, messages[i]))
          out[i] = {Fate::returned, std::to_string(answer.code) + " " + answer.text};
      }
    }
    if (answer.kind == Incoming::Kind::channel_closed) {
      is_open_ = false;
      for (size_t i = 0; i < out.size(); ++i) {
        if (!is_settled[i])
          out[i] = {messages.size() == 1 ? Fate::refused : Fate::unknown,
                    std::to_string(answer.code) + " " + answer.text};
      }
      return out;
    }
  }
  return out;
}

}  // namespace bellhop
