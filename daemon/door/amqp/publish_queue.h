// PublishQueue: a channel's order towards the broker. A publish whose body is still on its way to a store
// keeps every later method of its channel waiting (ARCHITECTURE.md, "Order survives concurrency"). A
// container: who releases what is up/publish_pump.h.
//
// One thread (the session's).
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "daemon/door/amqp/publish.h"
#include "daemon/door/amqp/session_memory.h"
#include "daemon/door/amqp/tap_line.h"
#include "proto/method.h"

namespace bellhop {

class PublishQueue {
 public:
  // What the client sent after something that is not finished yet.
  struct Entry {
    enum class Kind : uint8_t { publish, method, job };
    Kind kind = Kind::method;
    Buffer frames;                    // publish: frames for the broker so far; method: the client's frame
    bool open = false;                // publish: more of its body is to come
    std::shared_ptr<PublishJob> job;  // job
    std::unique_ptr<Sent> sent;       // publish: what to remember of it
    PublishMark mark = {};            // publish: how it is counted
    std::unique_ptr<TapLine> tapped;  // publish: told to the taps when it goes on; null: nobody looked
    MemoryLease memory;               // of `frames`, while it is queued
  };

  // `memory` outlives it.
  explicit PublishQueue(SessionMemory& memory) : memory_(memory) {}
  ~PublishQueue() { clear(); }
  PublishQueue(const PublishQueue&) = delete;
  PublishQueue& operator=(const PublishQueue&) = delete;

  bool empty() const { return entries_.empty(); }
  // Preconditions: not empty().
  Entry& front() { return entries_.front(); }
  Entry& back() { return entries_.back(); }
  size_t publishes() const {
    return static_cast<size_t>(std::count_if(entries_.begin(), entries_.end(), [](const Entry& each) {
      return each.kind != Entry::Kind::method;
    }));
  }
  // The client's channel.close stands at the end.
  bool ends_with_close() const {
    return !entries_.empty() && entries_.back().kind == Entry::Kind::method &&
           proto::method_number(Bytes(entries_.back().frames).subspan(proto::frame_head_bytes)) ==
               proto::method::channel_close;
  }

  void push(Entry entry) {
    entry.memory =
        MemoryLease(memory_, MemoryUse::queued_publish,
                    entry.frames.size() + (entry.tapped != nullptr ? entry.tapped->text.size() : 0));
    entries_.push_back(std::move(entry));
  }
  // One more frame of the last, which is open.
  void append(Bytes frame) {
    put(back().frames, frame);
    back().memory.grow(frame.size());
  }
  Entry pop_front() {
    Entry entry = std::move(entries_.front());
    entries_.pop_front();
    entry.memory.end();
    return entry;
  }
  // Drops the last, or all: uploads are aborted, stored payloads removed.
  void drop_back() {
    end(entries_.back());
    entries_.pop_back();
  }
  void clear() {
    for (Entry& entry : entries_) end(entry);
    entries_.clear();
  }

 private:
  static void end(Entry& entry) {
    if (entry.job != nullptr) entry.job->end_transfer();
  }

  SessionMemory& memory_;
  std::deque<Entry> entries_;
};

}  // namespace bellhop
