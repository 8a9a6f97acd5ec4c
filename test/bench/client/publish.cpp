// Throughput of publishing with confirms.
//
// A ring holds `window` copies of one ready message. Message n goes out of slot n % window, where only its
// number is written anew; a slot is free again when its message is confirmed. So what may go is always one or
// two runs of bytes, and one sendmsg.

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "test/bench/client/connection.h"
#include "test/bench/client/fail.h"
#include "test/bench/client/modes.h"
#include "test/bench/client/stopwatch.h"

namespace bellhop::bench {
namespace {

class Publisher {
 public:
  Publisher(Connection& connection, const Options& options, const Message& message)
      : connection_(connection),
        count_(options.count),
        window_(std::min(options.window, options.count)),
        batching_(options.batching),
        number_offset_(message.number_offset),
        slot_bytes_(message.bytes.size()),
        settled_(window_, false) {
    ring_.reserve(window_ * slot_bytes_);
    for (uint64_t i = 0; i < window_; ++i)
      ring_.insert(ring_.end(), message.bytes.begin(), message.bytes.end());
  }

  // Returns when every message is confirmed.
  void run() {
    while (lowest_ < count_) {
      number_free_slots();
      const bool blocked = !write_out();
      connection_.wait(blocked);
      connection_.receive();
      Frame frame;
      while (connection_.next_frame(frame)) handle(frame);
    }
  }

  uint64_t writes() const { return writes_; }

 private:
  void number_free_slots() {
    for (; next_ < count_ && next_ - lowest_ < window_; ++next_) {
      const size_t slot = next_ % window_;
      put_u64(ring_.data() + slot * slot_bytes_ + number_offset_, next_);
      settled_[slot] = false;
    }
  }

  // False when the socket took less than there was.
  bool write_out() {
    const uint64_t end = next_ * slot_bytes_;
    while (sent_bytes_ < end) {
      const uint64_t message_end = (sent_bytes_ / slot_bytes_ + 1) * slot_bytes_;
      const uint64_t wanted = (batching_ ? end : message_end) - sent_bytes_;
      const uint64_t offset = sent_bytes_ % ring_.size();
      const uint64_t first = std::min<uint64_t>(wanted, ring_.size() - offset);
      iovec parts[2] = {{ring_.data() + offset, first}, {ring_.data(), wanted - first}};
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = wanted > first ? 2 : 1;
      const ssize_t sent = ::sendmsg(connection_.descriptor(), &message, MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) return false;
      if (sent < 0) fail_errno("send");
      ++writes_;
      sent_bytes_ += static_cast<uint64_t>(sent);
    }
    return true;
  }

  void handle(const Frame& frame) {
    if (frame.type != kMethod || frame.method() != kBasicAck)
      fail(frame.type == kMethod && frame.method() == kBasicNack ? "a publish was refused (basic.nack)"
                                                                 : "something that is no confirm arrived");
    Reader reader(frame.payload);
    reader.skip(4);
    const uint64_t tag = reader.u64();
    const bool multiple = (reader.u8() & 1) != 0;
    if (tag == 0 || tag > next_ || tag <= lowest_)
      fail("a confirm for tag " + std::to_string(tag) + " that is not open");
    if (multiple) {
      for (uint64_t number = lowest_; number < tag; ++number) settled_[number % window_] = true;
    } else {
      if (settled_[(tag - 1) % window_]) fail("tag " + std::to_string(tag) + " was confirmed twice");
      settled_[(tag - 1) % window_] = true;
    }
    while (lowest_ < next_ && settled_[lowest_ % window_]) ++lowest_;
  }

  Connection& connection_;
  const uint64_t count_, window_;
  const bool batching_;
  const size_t number_offset_, slot_bytes_;
  std::vector<uint8_t> ring_;
  std::vector<bool> settled_;  // by slot
  uint64_t lowest_ = 0;        // the first message that is not confirmed
  uint64_t next_ = 0;          // the first message that has no slot yet
  uint64_t sent_bytes_ = 0;    // of the endless row of messages
  uint64_t writes_ = 0;
};

}  // namespace

void publish(const Options& options) {
  Connection connection(options.endpoints.at(0));
  connection.declare_queue(options.queue, options.queue_type);
  if (const size_t colon = options.bind.find(':'); colon != std::string::npos)
    connection.bind_queue(options.queue, options.bind.substr(0, colon), options.bind.substr(colon + 1));
  connection.select_confirms();
  const Message message = make_message(options.exchange, options.routing_key, options.properties,
                                       options.body_bytes, connection.frame_max());
  Publisher publisher(connection, options, message);

  Stopwatch stopwatch(options.cpu_of);
  publisher.run();
  stopwatch.stop();

  connection.await_messages(options.queue, options.count);
  if (!options.keep_queue) connection.delete_queue(options.queue);
  connection.close();
  const auto count = static_cast<double>(options.count);
  std::printf(
      "{\"messages_per_s\": %.1f, \"seconds\": %.6f, \"cpu_us_per_message\": %.4f, \"messages_per_write\": "
      "%.2f}\n",
      count / stopwatch.seconds(), stopwatch.seconds(), static_cast<double>(stopwatch.cpu_ns()) / 1e3 / count,
      count / static_cast<double>(publisher.writes()));
}

}  // namespace bellhop::bench
