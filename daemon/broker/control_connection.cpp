#include "daemon/broker/control_connection.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "daemon/broker/blocking_connect.h"
#include "daemon/broker/tls_bridge.h"

namespace bellhop {
namespace {

constexpr amqp_channel_t control_channel = 1;
constexpr int frame_bytes_max_asked = 131072;
constexpr timeval answer_timeout{10, 0};
// With EXTERNAL RabbitMQ takes the certificate's name whatever is said, and rabbitmq-c cannot say nothing.
constexpr const char* unused_identity = "bellhop";

amqp_bytes_t bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};
}
std::string text_of(amqp_bytes_t bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

struct Close {
  uint16_t code = 0;
  std::string text;
};

// What the broker closed the connection or the channel with.
Close close_of(const amqp_rpc_reply_t& reply) {
  if (reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_connection_close_t*>(reply.reply.decoded);
    return {close->reply_code, text_of(close->reply_text)};
  }
  if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_channel_close_t*>(reply.reply.decoded);
    return {close->reply_code, text_of(close->reply_text)};
  }
  return {0, "an answer that was not expected"};
}

std::string text_of(const amqp_rpc_reply_t& reply) {
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) return amqp_error_string2(reply.library_error);
  const Close close = close_of(reply);
  return (close.code == 0 ? "" : std::to_string(close.code) + " ") + close.text;
}

bool is_normal(const amqp_rpc_reply_t& reply) {
  return reply.reply_type == AMQP_RESPONSE_NORMAL;
}
bool closed_the_channel(const amqp_rpc_reply_t& reply) {
  return reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD;
}

// The virtual host of a pipeline is not configured by itself. It is the one that a client gets which asks for
// the default: the URL's own if it names one; else "/", or the first of `vhosts` if those leave "/" out;
// through vhost_map.
std::string vhost_of(const config::Broker& broker, const config::BrokerUrl& url) {
  if (url.vhost) return *url.vhost;
  std::string asked = "/";
  if (!broker.vhosts.empty() &&
      std::find(broker.vhosts.begin(), broker.vhosts.end(), asked) == broker.vhosts.end()) {
    asked = broker.vhosts.front();
  }
  const auto mapped = broker.vhost_map.find(asked);
  return mapped == broker.vhost_map.end() ? asked : mapped->second;
}

amqp_field_value_t field_of(const ArgumentValue& value) {
  amqp_field_value_t out{};
  if (const auto* text = std::get_if<std::string>(&value)) {
    out.kind = AMQP_FIELD_KIND_UTF8;
    out.value.bytes = bytes_of(*text);
  } else if (const auto* small = std::get_if<int32_t>(&value)) {
    out.kind = AMQP_FIELD_KIND_I32;
    out.value.i32 = *small;
  } else if (const auto* large = std::get_if<int64_t>(&value)) {
    out.kind = AMQP_FIELD_KIND_I64;
    out.value.i64 = *large;
  } else {
    out.kind = AMQP_FIELD_KIND_BOOLEAN;
    out.value.boolean = std::get<bool>(value) ? 1 : 0;
  }
  return out;
}

}  // namespace

ControlConnection::ControlConnection(const config::Broker& broker, const config::BrokerUrl& url)
    : broker_(broker), url_(url), vhost_(vhost_of(broker, url)) {}

ControlConnection::~ControlConnection() {
  if (connection_ != nullptr) amqp_destroy_connection(connection_);
}

Result<std::unique_ptr<ControlConnection>> ControlConnection::open(const config::Broker& broker,
                                                                   const config::BrokerUrl& url,
                                                                   std::shared_ptr<const TlsContext> tls,
                                                                   int wake_fd) {
  // A connect of our own, since rabbitmq-c's cannot be woken.
  Result<Connected> made = connect_blocking(url, std::move(tls), wake_fd, broker.connect_timeout_ms);
  if (!made) return Error{made.error()};
  std::unique_ptr<ControlConnection> out(new ControlConnection(broker, url));
  FileDescriptor fd = std::move(made.value().fd);
  if (made.value().tls != nullptr) {
    Result<std::unique_ptr<TlsBridge>> bridge = TlsBridge::open(std::move(fd), std::move(made.value().tls));
    if (!bridge) return Error{bridge.error()};
    out->bridge_ = std::move(bridge.value());
    fd = out->bridge_->take_plain_end();
  }
  out->connection_ = amqp_new_connection();
  amqp_socket_t* const socket = out->connection_ != nullptr ? amqp_tcp_socket_new(out->connection_) : nullptr;
  if (socket == nullptr) return Error{"out of memory"};
  out->fd_ = fd.release();
  amqp_tcp_socket_set_sockfd(socket, out->fd_);  // the connection's to close from now on
  return out;
}

Result<void> ControlConnection::log_in() {
  amqp_set_handshake_timeout(connection_, &answer_timeout);
  amqp_set_rpc_timeout(connection_, &answer_timeout);
  if (!broker_.has_credentials() && !broker_.has_certificate_login(url_))
    return Error{"the configuration has no credentials for this URL"};
  const amqp_rpc_reply_t login =
      broker_.has_credentials()
          ? amqp_login(connection_, vhost_.c_str(), 0, frame_bytes_max_asked, 0, AMQP_SASL_METHOD_PLAIN,
                       broker_.username_for(url_).c_str(), broker_.password_for(url_).c_str())
          : amqp_login(connection_, vhost_.c_str(), 0, frame_bytes_max_asked, 0, AMQP_SASL_METHOD_EXTERNAL,
                       unused_identity);
  if (!is_normal(login)) {
    lacks_mechanism_ = login.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION &&
                       login.library_error == AMQP_STATUS_BROKER_UNSUPPORTED_SASL_METHOD;
    was_refused_ = lacks_mechanism_ || login.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION;
    refuses_vhost_ =
        login.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && close_of(login).code == AMQP_NOT_ALLOWED;
    const std::string whom =
        broker_.has_credentials() ? "as user '" + broker_.username_for(url_) + "'" : "by the certificate";
    return Error{"cannot log in " + whom + " to vhost '" + vhost_ + "': " + text_of(login)};
  }
  return open_channel();
}

std::string ControlConnection::user() const {
  return broker_.has_credentials() ? broker_.username_for(url_) : std::string();
}

size_t ControlConnection::frame_bytes_max() const {
  const int agreed = amqp_get_frame_max(connection_);
  return agreed > 0 ? static_cast<size_t>(agreed) : static_cast<size_t>(frame_bytes_max_asked);
}

std::pair<int, int> ControlConnection::broker_version() const {
  const amqp_table_t* const properties = amqp_get_server_properties(connection_);
  std::pair<int, int> out{0, 0};
  for (int i = 0; i < properties->num_entries; ++i) {
    const amqp_table_entry_t& entry = properties->entries[i];
    if (text_of(entry.key) != "version" || entry.value.kind != AMQP_FIELD_KIND_UTF8) continue;
    const std::string version = text_of(entry.value.value.bytes);
    const char* const end = version.data() + version.size();
    const auto major = std::from_chars(version.data(), end, out.first);
    if (major.ptr != end) std::from_chars(major.ptr + 1, end, out.second);
  }
  return out;
}

Result<void> ControlConnection::open_channel() {
  amqp_channel_open(connection_, control_channel);
  const amqp_rpc_reply_t reply = amqp_get_rpc_reply(connection_);
  if (!is_normal(reply)) return Error{"cannot open a channel: " + text_of(reply)};
  return {};
}

ControlConnection::Answer ControlConnection::declare(const Declaration& item) {
  return send(item, false);
}

ControlConnection::Answer ControlConnection::look_for(const Declaration& item) {
  return send(item, true);
}

ControlConnection::Answer ControlConnection::send(const Declaration& item, bool passive) {
  std::vector<amqp_table_entry_t> entries;
  for (const auto& [key, value] : item.arguments) entries.push_back({bytes_of(key), field_of(value)});
  const amqp_table_t arguments{static_cast<int>(entries.size()), entries.data()};
  const amqp_boolean_t is_passive = passive ? 1 : 0, durable = item.durable ? 1 : 0,
                       auto_delete = item.auto_delete ? 1 : 0;
  switch (item.kind) {
    case Declaration::Kind::exchange:
      amqp_exchange_declare(connection_, control_channel, bytes_of(item.name), bytes_of(item.type),
                            is_passive, durable, auto_delete, item.internal ? 1 : 0, arguments);
      break;
    case Declaration::Kind::queue:
      amqp_queue_declare(connection_, control_channel, bytes_of(item.name), is_passive, durable, 0,
                         auto_delete, arguments);
      break;
    case Declaration::Kind::binding:
      amqp_queue_bind(connection_, control_channel, bytes_of(item.name), bytes_of(item.exchange),
                      bytes_of(item.key), amqp_empty_table);
      break;
  }
  const amqp_rpc_reply_t reply = amqp_get_rpc_reply(connection_);
  Answer answer;
  if (is_normal(reply)) {
    if (reply.reply.id == AMQP_QUEUE_DECLARE_OK_METHOD) {
      const auto* there = static_cast<const amqp_queue_declare_ok_t*>(reply.reply.decoded);
      answer.messages = there->message_count;
      answer.consumers = there->consumer_count;
    }
    amqp_maybe_release_buffers(connection_);
    return answer;
  }
  answer.text = text_of(reply);
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION) answer.code = close_of(reply).code;
  answer.kind = Answer::Kind::lost;
  if (!closed_the_channel(reply)) return answer;
  amqp_channel_close_ok_t ok{};
  amqp_send_method(connection_, control_channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
  const Result<void> opened = open_channel();
  if (opened)
    answer.kind = Answer::Kind::refused;
  else
    answer.text = opened.error();
  return answer;
}

void ControlConnection::close() {
  amqp_connection_close(connection_, AMQP_REPLY_SUCCESS);
}

}  // namespace bellhop
