#include "daemon/broker/control.h"

#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "daemon/broker/blocking_connect.h"
#include "daemon/broker/tls_bridge.h"

namespace bellhop {
namespace {

constexpr amqp_channel_t control_channel = 1;
constexpr uint32_t pause_ms_min = 500;
constexpr uint32_t pause_ms_max = 30'000;
constexpr timeval answer_timeout{10, 0};
// With EXTERNAL RabbitMQ takes the certificate's name whatever is said, and rabbitmq-c cannot say nothing.
constexpr const char* unused_identity = "bellhop";

amqp_bytes_t bytes_of(const std::string& text) {
  return {text.size(), const_cast<char*>(text.data())};
}
std::string text_of(amqp_bytes_t bytes) {
  return {static_cast<const char*>(bytes.bytes), bytes.len};
}

std::string text_of(const amqp_rpc_reply_t& reply) {
  if (reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION) return amqp_error_string2(reply.library_error);
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_connection_close_t*>(reply.reply.decoded);
    return std::to_string(close->reply_code) + " " + text_of(close->reply_text);
  }
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    const auto* close = static_cast<const amqp_channel_close_t*>(reply.reply.decoded);
    return std::to_string(close->reply_code) + " " + text_of(close->reply_text);
  }
  return "an answer that was not expected";
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

amqp_rpc_reply_t declare(amqp_connection_state_t connection, const Declaration& item) {
  switch (item.kind) {
    case Declaration::Kind::exchange:
      amqp_exchange_declare(connection, control_channel, bytes_of(item.name), amqp_cstring_bytes("direct"), 0,
                            1, 0, 0, amqp_empty_table);
      break;
    case Declaration::Kind::queue: {
      std::vector<amqp_table_entry_t> entries;
      for (const auto& [key, value] : item.arguments) {
        amqp_table_entry_t entry{};
        entry.key = bytes_of(key);
        entry.value.kind = AMQP_FIELD_KIND_UTF8;
        entry.value.value.bytes = bytes_of(value);
        entries.push_back(entry);
      }
      const amqp_table_t arguments{static_cast<int>(entries.size()), entries.data()};
      amqp_queue_declare(connection, control_channel, bytes_of(item.name), 0, 1, 0, 0, arguments);
      break;
    }
    case Declaration::Kind::binding:
      amqp_queue_bind(connection, control_channel, bytes_of(item.name), bytes_of(item.exchange),
                      bytes_of(item.key), amqp_empty_table);
      break;
  }
  return amqp_get_rpc_reply(connection);
}

Result<void> open_channel(amqp_connection_state_t connection) {
  amqp_channel_open(connection, control_channel);
  const amqp_rpc_reply_t reply = amqp_get_rpc_reply(connection);
  if (!is_normal(reply)) return Error{"cannot open a channel: " + text_of(reply)};
  return {};
}

}  // namespace

Control::Control(std::shared_ptr<const config::Config> config, const TlsContext* tls)
    : config_(std::move(config)), tls_(tls) {
  std::vector<Declaration> wanted = declarations_of(*config_);
  if (wanted.empty()) return;
  if (!config_->broker.has_credentials() && !config_->broker.has_certificate_login()) {
    spdlog::warn(
        "pipelines not declared, the configuration has no broker credentials (broker.username and password, "
        "in the URL, or broker.tls.cert)");
    return;
  }
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  done_ = false;
  thread_ = std::thread(&Control::run, this, std::move(wanted));
}

Control::~Control() {
  stop();
}

void Control::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    if (broker_fd_ >= 0) ::shutdown(broker_fd_, SHUT_RDWR);
  }
  changed_.notify_all();
  if (wake_fd_ >= 0) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        ::write(wake_fd_, &one, sizeof one);  // cannot block: it is written once
  }
  if (thread_.joinable()) thread_.join();
  if (wake_fd_ >= 0) ::close(std::exchange(wake_fd_, -1));
}

bool Control::wait_until_done(uint32_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return done_; });
}

// --- the thread ---

void Control::run(std::vector<Declaration> left) {
  const config::Broker& broker = config_->broker;
  uint32_t pause_ms = pause_ms_min;
  do {
    for (const config::BrokerUrl& url : broker.urls) {
      const Result<void> tried = try_url(url, left);
      if (left.empty()) break;
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) break;
      if (!tried)
        spdlog::warn("pipelines not declared yet broker={} reason=\"{}\"", url.shown, tried.error());
    }
    if (left.empty()) break;
    if (!pause(pause_ms)) break;
    pause_ms = std::min(pause_ms * 2, pause_ms_max);
  } while (true);
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

// False: stopped.
bool Control::pause(uint32_t ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_; });
}

// False: stopped. A negative fd takes it back, before it is closed.
bool Control::lend_to_stop(int fd) {
  const std::lock_guard<std::mutex> lock(mutex_);
  broker_fd_ = fd;
  return !stopping_;
}

Result<void> Control::try_url(const config::BrokerUrl& url, std::vector<Declaration>& left) {
  // A connect of our own, since rabbitmq-c's cannot be woken.
  Result<Connected> made = connect_blocking(url, tls_, wake_fd_, config_->broker.connect_timeout_ms);
  if (!made) return Error{made.error()};
  int fd = made.value().fd;
  std::unique_ptr<TlsBridge> bridge;
  if (made.value().tls != nullptr) {
    Result<std::unique_ptr<TlsBridge>> opened = TlsBridge::open(fd, std::move(made.value().tls));
    if (!opened) return Error{opened.error()};
    bridge = std::move(opened.value());
    fd = bridge->take_plain_fd();
  }
  amqp_connection_state_t const connection = amqp_new_connection();
  amqp_socket_t* const socket = connection != nullptr ? amqp_tcp_socket_new(connection) : nullptr;
  if (socket == nullptr) {
    if (connection != nullptr) amqp_destroy_connection(connection);
    ::close(fd);
    return Error{"out of memory"};
  }
  amqp_tcp_socket_set_sockfd(socket, fd);  // the connection's to close from now on
  Result<void> outcome;
  if (lend_to_stop(fd)) outcome = declare_all(connection, url, left);
  lend_to_stop(-1);
  amqp_destroy_connection(connection);
  return outcome;
}

// Takes off `left` what was answered.
Result<void> Control::declare_all(amqp_connection_state_t_* connection, const config::BrokerUrl& url,
                                  std::vector<Declaration>& left) {
  const config::Broker& broker = config_->broker;
  const std::string vhost = vhost_of(broker, url);
  amqp_set_handshake_timeout(connection, &answer_timeout);
  amqp_set_rpc_timeout(connection, &answer_timeout);
  if (!broker.has_credentials() && !broker.has_certificate_login(url))
    return Error{"the configuration has no credentials for this URL"};
  const amqp_rpc_reply_t login =
      broker.has_credentials()
          ? amqp_login(connection, vhost.c_str(), 0, 131072, 0, AMQP_SASL_METHOD_PLAIN,
                       broker.username_for(url).c_str(), broker.password_for(url).c_str())
          : amqp_login(connection, vhost.c_str(), 0, 131072, 0, AMQP_SASL_METHOD_EXTERNAL, unused_identity);
  if (!is_normal(login)) return Error{"cannot log in to vhost `" + vhost + "`: " + text_of(login)};
  if (Result<void> opened = open_channel(connection); !opened) return opened;

  size_t declared = 0, refused = 0;
  while (!left.empty()) {
    const amqp_rpc_reply_t reply = declare(connection, left.front());
    if (closed_the_channel(reply)) {
      // It is there with other properties (406), or we may not (403). Asking again would get the same answer.
      spdlog::error("declaration refused item=\"{}\" vhost={} broker={} reason=\"{}\"", left.front().text(),
                    vhost, url.shown, text_of(reply));
      ++refused;
      amqp_channel_close_ok_t ok{};
      amqp_send_method(connection, control_channel, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
      left.erase(left.begin());
      if (Result<void> opened = open_channel(connection); !opened) return opened;
      continue;
    }
    if (!is_normal(reply)) return Error{left.front().text() + ": " + text_of(reply)};
    ++declared;
    left.erase(left.begin());
    amqp_maybe_release_buffers(connection);
  }
  spdlog::info("pipelines declared broker={} vhost={} items={} refused={}", url.shown, vhost, declared,
               refused);
  amqp_connection_close(connection, AMQP_REPLY_SUCCESS);
  return {};
}

}  // namespace bellhop
