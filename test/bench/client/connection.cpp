#include "test/bench/client/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "test/bench/client/fail.h"

namespace bellhop::bench {
namespace {

constexpr size_t kReadBufferBytes = size_t{512} * 1024;

int connect_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) fail("socket path too long: " + path);
  std::memcpy(address.sun_path, path.data(), path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    fail_errno("connect to " + path);
  return descriptor;
}

int connect_tcp(const std::string& host, const std::string& port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::stoi(port)));
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) fail("not an IPv4 address: " + host);
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    fail_errno("connect to " + host + ":" + port);
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return descriptor;
}

// channel.close and connection.close both start with code and text.
std::string close_text(const Frame& frame) {
  Reader reader(frame.payload);
  reader.skip(4);
  const uint16_t code = reader.u16();
  return std::to_string(code) + " " + reader.short_string();
}

}  // namespace

int connect_to(const std::string& endpoint) {
  int descriptor = -1;
  const size_t port_colon = endpoint.rfind(':');
  if (endpoint.starts_with("unix:")) {
    descriptor = connect_unix(endpoint.substr(5));
  } else if (endpoint.starts_with("tcp:") && port_colon > 4) {
    descriptor = connect_tcp(endpoint.substr(4, port_colon - 4), endpoint.substr(port_colon + 1));
  } else {
    fail("an endpoint is tcp:HOST:PORT or unix:PATH, not " + endpoint);
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
  return descriptor;
}

Connection::Connection(const std::string& endpoint)
    : descriptor_(connect_to(endpoint)), in_(kReadBufferBytes) {
  log_in();
}

Connection::~Connection() {
  ::close(descriptor_);
}

void Connection::log_in() {
  static constexpr uint8_t kGreeting[] = {'A', 'M', 'Q', 'P', 0, 0, 9, 1};
  send(kGreeting);
  await_method(kConnectionStart);

  // basic.nack as a capability, or the broker closes the channel instead of refusing one message.
  std::vector<uint8_t> capabilities, client_properties, arguments;
  Writer(capabilities).short_string("basic.nack").u8('t').u8(1);
  Writer(client_properties).short_string("capabilities").u8('F');
  Writer(client_properties).u32(static_cast<uint32_t>(capabilities.size())).raw(capabilities);
  Writer(arguments).u32(static_cast<uint32_t>(client_properties.size())).raw(client_properties);
  Writer(arguments)
      .short_string("PLAIN")
      .long_string(std::string_view("\0guest\0guest", 12))
      .short_string("en_US");
  send_method(kConnectionStartOk, arguments, 0);

  Reader tune(await_method(kConnectionTune));
  const uint16_t channel_max = tune.u16();
  frame_max_ = tune.u32();
  arguments.clear();
  Writer(arguments).u16(channel_max).u32(frame_max_).u16(0);
  send_method(kConnectionTuneOk, arguments, 0);

  arguments.clear();
  Writer(arguments).short_string("/").short_string("").u8(0);
  send_method(kConnectionOpen, arguments, 0);
  await_method(kConnectionOpenOk);
  arguments.assign(1, 0);
  call(kChannelOpen, arguments, kChannelOpenOk);
}

void Connection::send(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      wait(true);
      // Taking in what arrives meanwhile keeps two full sockets from waiting for each other.
      receive();
    } else {
      fail_errno("send");
    }
  }
}

void Connection::send_method(uint32_t method, std::span<const uint8_t> arguments, uint16_t channel) {
  std::vector<uint8_t> payload, frame;
  Writer(payload).u32(method).raw(arguments);
  append_frame(frame, kMethod, channel, payload);
  send(frame);
}

void Connection::wait(bool for_writing) {
  pollfd entry{descriptor_, static_cast<short>(POLLIN | (for_writing ? POLLOUT : 0)), 0};
  int ready;
  do {
    ready = ::poll(&entry, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) fail("nothing happened on the connection for a minute");
  if (ready < 0) fail_errno("poll");
}

bool Connection::receive() {
  if (in_begin_ == in_end_) {
    in_begin_ = in_end_ = 0;
  } else if (in_begin_ > 0 && in_.size() - in_end_ < in_.size() / 4) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  if (in_end_ == in_.size()) return false;  // full: frames must be taken out first
  const ssize_t got = ::recv(descriptor_, in_.data() + in_end_, in_.size() - in_end_, 0);
  if (got == 0) fail("the peer closed the connection");
  if (got < 0 && errno == EAGAIN) return false;
  if (got < 0) fail_errno("recv");
  in_end_ += static_cast<size_t>(got);
  return true;
}

bool Connection::next_frame(Frame& frame) {
  for (;;) {
    const std::span<const uint8_t> have(in_.data() + in_begin_, in_end_ - in_begin_);
    if (have.size() < 8) return false;
    Reader reader(have);
    frame.type = reader.u8();
    frame.channel = reader.u16();
    const size_t payload_bytes = reader.u32();
    if (payload_bytes + 8 > in_.size()) fail("a frame from the peer is larger than the read buffer");
    if (have.size() < payload_bytes + 8) return false;
    if (have[payload_bytes + 7] != 0xCE) fail("a frame from the peer has no end mark");
    frame.payload = have.subspan(7, payload_bytes);
    in_begin_ += payload_bytes + 8;
    if (frame.type == kHeartbeat) continue;
    if (frame.type == kMethod) {
      const uint32_t method = frame.method();
      if (method == kChannelClose || method == kConnectionClose)
        fail("closed by the peer: " + close_text(frame));
    }
    return true;
  }
}

Frame Connection::await_frame() {
  Frame frame;
  while (!next_frame(frame))
    if (!receive()) wait(false);
  return frame;
}

std::span<const uint8_t> Connection::await_method(uint32_t method) {
  const Frame frame = await_frame();
  if (frame.type != kMethod || frame.method() != method)
    fail("expected method " + std::to_string(method >> 16) + "." + std::to_string(method & 0xFFFF) +
         ", got frame type " + std::to_string(frame.type) +
         (frame.type == kMethod ? ", method " + std::to_string(frame.method() >> 16) + "." +
                                      std::to_string(frame.method() & 0xFFFF)
                                : ""));
  return frame.payload.subspan(4);
}

std::span<const uint8_t> Connection::call(uint32_t method, std::span<const uint8_t> arguments, uint32_t reply,
                                          uint16_t channel) {
  send_method(method, arguments, channel);
  return await_method(reply);
}

void Connection::declare_queue(const std::string& name, const std::string& type) {
  std::vector<uint8_t> table, arguments;
  Writer(table).short_string("x-queue-type").u8('S').long_string(type);
  constexpr uint8_t kDurable = 2;
  Writer(arguments)
      .u16(0)
      .short_string(name)
      .u8(kDurable)
      .u32(static_cast<uint32_t>(table.size()))
      .raw(table);
  call(kQueueDeclare, arguments, kQueueDeclareOk);
}

Connection::QueueState Connection::inspect_queue(const std::string& name) {
  std::vector<uint8_t> arguments;
  constexpr uint8_t kPassive = 1;
  Writer(arguments).u16(0).short_string(name).u8(kPassive).u32(0);
  Reader reply(call(kQueueDeclare, arguments, kQueueDeclareOk));
  reply.short_string();
  return {.messages = reply.u32()};
}

void Connection::await_messages(const std::string& name, uint64_t messages) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  uint32_t seen;
  while ((seen = inspect_queue(name).messages) != messages)
    if (std::chrono::steady_clock::now() > deadline)
      fail("queue " + name + " holds " + std::to_string(seen) + " messages instead of " +
           std::to_string(messages));
}

void Connection::bind_queue(const std::string& name, const std::string& exchange,
                            const std::string& routing_key) {
  std::vector<uint8_t> arguments;
  constexpr uint8_t kDurable = 2;
  Writer(arguments).u16(0).short_string(exchange).short_string("direct").u8(kDurable).u32(0);
  call(kExchangeDeclare, arguments, kExchangeDeclareOk);
  arguments.clear();
  Writer(arguments).u16(0).short_string(name).short_string(exchange).short_string(routing_key).u8(0).u32(0);
  call(kQueueBind, arguments, kQueueBindOk);
}

void Connection::delete_queue(const std::string& name) {
  std::vector<uint8_t> arguments;
  Writer(arguments).u16(0).short_string(name).u8(0);
  call(kQueueDelete, arguments, kQueueDeleteOk);
}

void Connection::select_confirms() {
  const std::vector<uint8_t> wait_for_reply(1, 0);
  call(kConfirmSelect, wait_for_reply, kConfirmSelectOk);
}

void Connection::reopen_channel() {
  std::vector<uint8_t> arguments;
  Writer(arguments).u16(200).short_string("").u16(0).u16(0);
  call(kChannelClose, arguments, kChannelCloseOk);
  arguments.assign(1, 0);
  call(kChannelOpen, arguments, kChannelOpenOk);
}

void Connection::close() {
  std::vector<uint8_t> arguments;
  Writer(arguments).u16(200).short_string("").u16(0).u16(0);
  send_method(kConnectionClose, arguments, 0);
  await_method(kConnectionCloseOk);
}

}  // namespace bellhop::bench
