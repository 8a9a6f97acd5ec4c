// Throughput of consuming with manual acks: every delivery is acked by its own basic.ack; with batching, the
// acks of all that one read brought go in one write.

#include <cstdio>

#include "test/bench/client/connection.h"
#include "test/bench/client/fail.h"
#include "test/bench/client/modes.h"
#include "test/bench/client/stopwatch.h"

namespace bellhop::bench {
namespace {

class Consumer {
 public:
  Consumer(Connection& connection, const Options& options) : connection_(connection), options_(options) {}

  // Returns when every message is received and its ack written.
  void run() {
    Frame frame;
    while (received_ < options_.count) {
      bool any = false;
      while (connection_.next_frame(frame)) {
        any = true;
        handle(frame);
        if (!options_.batching) flush();
      }
      flush();
      // Writing may have read, so it is waited for only when there is nothing left to handle.
      if (!any && !connection_.receive()) connection_.wait(false);
    }
  }

 private:
  void handle(const Frame& frame) {
    if (frame.type == kMethod && tag_ == 0) {
      if (frame.method() != kBasicDeliver) fail("something that is no delivery arrived");
      if (received_ == options_.count) fail("more deliveries than expected");
      Reader reader(frame.payload);
      reader.skip(4);
      reader.short_string();
      tag_ = reader.u64();
    } else if (frame.type == kHeader && tag_ != 0 && left_bytes_ == 0) {
      Reader reader(frame.payload);
      reader.skip(4);
      left_bytes_ = reader.u64();
      if (left_bytes_ != options_.body_bytes)
        fail("a body has the wrong size: " + std::to_string(left_bytes_));
    } else if (frame.type == kBody && left_bytes_ != 0) {
      take_body(frame.payload);
    } else {
      fail("a delivery's frames came in the wrong order");
    }
  }

  void take_body(std::span<const uint8_t> part) {
    if (part.size() > left_bytes_) fail("a body is longer than its header says");
    if (left_bytes_ == options_.body_bytes) {
      const uint64_t number = Reader(part).u64();
      if (number != received_)
        fail("expected message " + std::to_string(received_) + ", got " + std::to_string(number));
    }
    left_bytes_ -= part.size();
    if (left_bytes_ > 0) return;
    ++received_;
    std::vector<uint8_t> payload;
    Writer(payload).u32(kBasicAck).u64(tag_).u8(0);
    append_frame(acks_, kMethod, 1, payload);
    tag_ = 0;
  }

  void flush() {
    connection_.send(acks_);
    acks_.clear();
  }

  Connection& connection_;
  const Options& options_;
  uint64_t received_ = 0;
  uint64_t tag_ = 0;         // of the delivery whose frames are coming in; 0: none
  uint64_t left_bytes_ = 0;  // of its body
  std::vector<uint8_t> acks_;
};

}  // namespace

void consume(const Options& options) {
  Connection connection(options.endpoints.at(0));
  std::vector<uint8_t> arguments;
  Writer(arguments).u32(0).u16(options.prefetch).u8(0);
  connection.call(kBasicQos, arguments, kBasicQosOk);
  arguments.clear();
  Writer(arguments).u16(0).short_string(options.queue).short_string("bench").u8(0).u32(0);

  Stopwatch stopwatch(options.cpu_of);
  connection.call(kBasicConsume, arguments, kBasicConsumeOk);
  Consumer(connection, options).run();
  stopwatch.stop();

  // Closing the channel puts back what was not acked. A quorum queue also puts back acks that its channel
  // still holds in a queue of its own, so there the prefetch alone shows it: only the last `prefetch` acks
  // can have been lost on the way.
  if (options.queue_type == "classic") connection.reopen_channel();
  connection.await_messages(options.queue, 0);
  if (!options.keep_queue) connection.delete_queue(options.queue);
  connection.close();
  const auto count = static_cast<double>(options.count);
  std::printf("{\"messages_per_s\": %.1f, \"seconds\": %.6f, \"cpu_us_per_message\": %.4f}\n",
              count / stopwatch.seconds(), stopwatch.seconds(),
              static_cast<double>(stopwatch.cpu_ns()) / 1e3 / count);
}

}  // namespace bellhop::bench
