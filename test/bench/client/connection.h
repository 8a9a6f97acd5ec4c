// One AMQP connection of the bench client over a raw non-blocking socket: connects, logs in, and hands out
// frames. Used by one thread. Everything here may block for at most kPatienceMs and then ends the process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "test/bench/client/wire.h"

namespace bellhop::bench {

constexpr int kPatienceMs = 60000;

// "tcp:HOST:PORT" (HOST a numeric IPv4 address) or "unix:PATH". Returns a connected, non-blocking descriptor.
int connect_to(const std::string& endpoint);

class Connection {
 public:
  // Connects, logs in as guest, opens "/" without heartbeats, and opens channel 1.
  explicit Connection(const std::string& endpoint);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  uint32_t frame_max() const { return frame_max_; }
  int descriptor() const { return descriptor_; }

  // Writes the bytes, waiting while the socket is full.
  void send(std::span<const uint8_t> bytes);
  // Sends a method whose arguments are `arguments`.
  void send_method(uint32_t method, std::span<const uint8_t> arguments, uint16_t channel = 1);

  // Waits until the socket can be read (or written, if asked). Ends the process after kPatienceMs.
  void wait(bool for_writing);
  // Reads once what has arrived; false if nothing had.
  bool receive();
  // The next whole frame among what has been received. A channel.close or connection.close from the peer ends
  // the process with its text. Heartbeats are skipped.
  bool next_frame(Frame& frame);
  // Waits for the next frame.
  Frame await_frame();
  // Waits for this method; any other frame ends the process. The arguments are valid until the next read.
  std::span<const uint8_t> await_method(uint32_t method);
  // send_method and await_method.
  std::span<const uint8_t> call(uint32_t method, std::span<const uint8_t> arguments, uint32_t reply,
                                uint16_t channel = 1);

  // Queue and channel methods that the benches share. Queues are durable.
  struct QueueState {
    uint32_t messages = 0;
  };
  void declare_queue(const std::string& name, const std::string& type);
  QueueState inspect_queue(const std::string& name);
  // Waits until the queue holds exactly this many ready messages: a quorum queue's counter lags behind its
  // confirms.
  void await_messages(const std::string& name, uint64_t messages);
  void bind_queue(const std::string& name, const std::string& exchange, const std::string& routing_key);
  void delete_queue(const std::string& name);
  void select_confirms();
  void reopen_channel();
  void close();

 private:
  void log_in();

  int descriptor_;
  uint32_t frame_max_ = 8192;
  std::vector<uint8_t> in_;
  size_t in_begin_ = 0, in_end_ = 0;
};

}  // namespace bellhop::bench
