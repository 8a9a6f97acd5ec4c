// LogQueue stands between those who log and the descriptor that the log goes to. They append to a bounded
// queue and go on; a thread of the queue's own writes. So a log that nobody reads (a full pipe, a frozen
// collector, `| less`) costs lines, and never holds up a session or the daemon's end.
//
//   any thread ── put ──► queue (256 KiB) ── swap ──► the writer's thread ── write ──► descriptor
//                           └ full: the line is dropped and counted; the count is told when lines flow again
#pragma once

#include <spdlog/formatter.h>
#include <spdlog/sinks/sink.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace bellhop {

class LogQueue : public spdlog::sinks::sink {
 public:
  static constexpr size_t queue_bytes_max = 256 * 1024;

  // `fd` must stay open while the process lives: the thread may stay in a write for ever, so nobody waits for
  // its end. Precondition for a useful log: the descriptor blocks, or can be polled.
  LogQueue(int fd, std::unique_ptr<spdlog::formatter> formatter);
  // Drops what is queued; see finish().
  ~LogQueue() override;

  // Any thread. Waits only while another line is copied.
  void log(const spdlog::details::log_msg& message) override;
  // Does nothing: every line is written as soon as possible.
  void flush() override {}
  void set_pattern(const std::string&) override {}
  // Call it before the first line.
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override;

  // Any thread. Waits until everything logged before is written, but no longer than `at_most`. False: some of
  // it is not written.
  bool finish(std::chrono::milliseconds at_most);
  // Any thread. The number of lines lost since the start.
  uint64_t dropped() const;

 private:
  struct State;  // shared with the thread, which may outlive us
  static void write_lines(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace bellhop
