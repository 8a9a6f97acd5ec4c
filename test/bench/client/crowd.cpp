// Many sessions at once, each with several channels, each channel publishing numbered messages to a queue of
// its own and consuming them. Every message must be confirmed once and come back once, in order, on its own
// channel.

#include <poll.h>

#include <cstdio>
#include <memory>

#include "test/bench/client/connection.h"
#include "test/bench/client/fail.h"
#include "test/bench/client/modes.h"
#include "test/bench/client/stopwatch.h"

namespace bellhop::bench {
namespace {

// One channel's two directions.
class Channel {
 public:
  Channel(Connection& connection, uint16_t id, const Options& options, const std::string& queue)
      : id_(id), options_(options), open_(options.count, true) {
    std::vector<uint8_t> arguments;
    if (id != 1) {
      arguments.assign(1, 0);
      connection.call(kChannelOpen, arguments, kChannelOpenOk, id);
    }
    connection.declare_queue(queue, options.queue_type);
    arguments.assign(1, 0);
    connection.call(kConfirmSelect, arguments, kConfirmSelectOk, id);
    arguments.clear();
    Writer(arguments).u32(0).u16(options.prefetch).u8(0);
    connection.call(kBasicQos, arguments, kBasicQosOk, id);
    arguments.clear();
    Writer(arguments).u16(0).short_string(queue).short_string("").u8(0).u32(0);
    connection.call(kBasicConsume, arguments, kBasicConsumeOk, id);
    message_ = make_message("", queue, options.properties, options.body_bytes, connection.frame_max(), id);
  }

  bool done() const { return confirmed_ == options_.count && received_ == options_.count; }

  // Appends what the window lets go.
  void publish(std::vector<uint8_t>& out) {
    for (; published_ < options_.count && published_ - confirmed_ < options_.window; ++published_) {
      put_u64(message_.bytes.data() + message_.number_offset, published_);
      out.insert(out.end(), message_.bytes.begin(), message_.bytes.end());
    }
  }

  // Takes a frame of this channel; appends the ack if it ends a delivery.
  void handle(const Frame& frame, std::vector<uint8_t>& out) {
    const uint32_t method = frame.type == kMethod ? frame.method() : 0;
    Reader reader(frame.payload);
    if (method == kBasicAck) {
      reader.skip(4);
      const uint64_t tag = reader.u64();
      confirm(tag, (reader.u8() & 1) != 0);
    } else if (method == kBasicDeliver && tag_ == 0) {
      reader.skip(4);
      reader.short_string();
      tag_ = reader.u64();
    } else if (frame.type == kHeader && tag_ != 0 && left_bytes_ == 0) {
      reader.skip(4);
      left_bytes_ = reader.u64();
      if (left_bytes_ != options_.body_bytes) fail("a body has the wrong size");
    } else if (frame.type == kBody && left_bytes_ >= frame.payload.size()) {
      take_body(frame.payload, out);
    } else {
      fail("a frame that nobody awaits, method " + std::to_string(method >> 16) + "." +
           std::to_string(method & 0xFFFF));
    }
  }

 private:
  void confirm(uint64_t tag, bool multiple) {
    if (tag == 0 || tag > published_) fail("a confirm for a tag that is not open");
    for (uint64_t number = multiple ? lowest_ : tag - 1; number < tag; ++number) {
      if (!open_[number] && !multiple) fail("a tag was confirmed twice");
      if (open_[number]) ++confirmed_;
      open_[number] = false;
    }
    while (lowest_ < published_ && !open_[lowest_]) ++lowest_;
  }

  void take_body(std::span<const uint8_t> part, std::vector<uint8_t>& out) {
    if (left_bytes_ == options_.body_bytes && Reader(part).u64() != received_)
      fail("expected message " + std::to_string(received_) + ", got " + std::to_string(Reader(part).u64()));
    left_bytes_ -= part.size();
    if (left_bytes_ > 0) return;
    if (++received_ > options_.count) fail("more deliveries than publishes");
    std::vector<uint8_t> payload;
    Writer(payload).u32(kBasicAck).u64(tag_).u8(0);
    append_frame(out, kMethod, id_, payload);
    tag_ = 0;
  }

  const uint16_t id_;
  const Options& options_;
  Message message_;
  std::vector<bool> open_;  // by message: not yet confirmed
  uint64_t published_ = 0, confirmed_ = 0, lowest_ = 0, received_ = 0;
  uint64_t tag_ = 0, left_bytes_ = 0;  // of the delivery whose frames are coming in; tag 0: none
};

class Session {
 public:
  Session(const Options& options, uint64_t number) : connection_(options.endpoints.at(0)) {
    for (uint16_t id = 1; id <= options.channels; ++id) {
      queues_.push_back(options.queue + "-" + std::to_string(number) + "-" + std::to_string(id));
      channels_.push_back(std::make_unique<Channel>(connection_, id, options, queues_.back()));
    }
  }
  int descriptor() const { return connection_.descriptor(); }
  bool done() const {
    for (const auto& channel : channels_)
      if (!channel->done()) return false;
    return true;
  }
  // Handles what has arrived and writes what may go.
  void step(bool readable) {
    if (readable) connection_.receive();
    std::vector<uint8_t> out;
    do {
      out.clear();
      Frame frame;
      while (connection_.next_frame(frame)) {
        if (frame.channel == 0 || frame.channel > channels_.size())
          fail("a frame of a channel that is not open");
        channels_[frame.channel - 1u]->handle(frame, out);
      }
      for (auto& channel : channels_) channel->publish(out);
      connection_.send(out);
    } while (!out.empty());  // writing may have read
  }
  void finish() {
    for (const std::string& queue : queues_) connection_.delete_queue(queue);
    connection_.close();
  }

 private:
  Connection connection_;
  std::vector<std::string> queues_;
  std::vector<std::unique_ptr<Channel>> channels_;
};

}  // namespace

void crowd(const Options& options) {
  std::vector<std::unique_ptr<Session>> sessions;
  std::vector<pollfd> entries;
  for (uint64_t number = 1; number <= options.sessions; ++number) {
    sessions.push_back(std::make_unique<Session>(options, number));
    entries.push_back({sessions.back()->descriptor(), POLLIN, 0});
  }

  Stopwatch stopwatch(options.cpu_of);
  for (auto& session : sessions) session->step(false);
  for (size_t done = 0; done < sessions.size();) {
    if (::poll(entries.data(), entries.size(), kPatienceMs) <= 0)
      fail("nothing happened on any session for a minute");
    done = 0;
    for (size_t i = 0; i < sessions.size(); ++i) {
      if (entries[i].revents != 0) sessions[i]->step(true);
      if (sessions[i]->done()) ++done;
    }
  }
  stopwatch.stop();

  for (auto& session : sessions) session->finish();
  const double messages = static_cast<double>(options.count * options.sessions * options.channels);
  std::printf("{\"messages_per_s\": %.1f, \"seconds\": %.6f}\n", messages / stopwatch.seconds(),
              stopwatch.seconds());
}

}  // namespace bellhop::bench
