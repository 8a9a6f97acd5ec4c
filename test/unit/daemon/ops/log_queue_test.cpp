#include "daemon/ops/log_queue.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "daemon/ops/log.h"
#include "test/support/catch.h"

using namespace bellhop;
using namespace std::chrono_literals;

namespace {

// A pipe whose reader stands still until it is asked to read. The write end stays open for the queue's
// thread.
struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    read_end = ends[0];
    write_end = ends[1];
    ::fcntl(read_end, F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    if (read_end >= 0) ::close(read_end);
  }
  std::string read_some() const {
    std::string out(1 << 16, '\0');
    const ssize_t got = ::read(read_end, out.data(), out.size());
    out.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return out;
  }
};

// How many lines the log says to have dropped.
uint64_t told_in(const std::string& text) {
  const std::string words = "warn log lines dropped count=";
  uint64_t sum = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    sum += std::strtoull(text.c_str() + at + words.size(), nullptr, 10);
  return sum;
}

spdlog::logger logger_on(const std::shared_ptr<LogQueue>& queue) {
  return {"test", queue};
}

}  // namespace

TEST_CASE("what is logged is written in order, each line whole", "[log]") {
  Pipe pipe;
  auto queue = std::make_shared<LogQueue>(pipe.write_end, text_log_formatter());
  auto logger = logger_on(queue);
  for (int i = 0; i < 100; ++i) logger.warn("line {}", i);
  REQUIRE(queue->finish(10s));
  const std::string text = pipe.read_some();
  size_t at = 0;
  for (int i = 0; i < 100; ++i) {
    at = text.find("warn line " + std::to_string(i) + "\n", at);
    REQUIRE(at != std::string::npos);
  }
  REQUIRE(queue->dropped() == 0);
}

TEST_CASE("a log that nobody reads blocks nobody, and says what was dropped when it is read", "[log]") {
  Pipe pipe;
  auto queue = std::make_shared<LogQueue>(pipe.write_end, text_log_formatter());
  auto logger = logger_on(queue);
  const std::string padding(500, 'x');
  // The pipe takes 64 KiB, the queue four times that: the rest has no place.
  constexpr int lines = 5000;
  for (int i = 0; i < lines; ++i) logger.warn("line {} {}", i, padding);
  REQUIRE_FALSE(queue->finish(50ms));
  const uint64_t dropped = queue->dropped();
  REQUIRE(dropped > lines / 2);
  REQUIRE(dropped < lines);

  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (told_in(text) < dropped && std::chrono::steady_clock::now() < deadline) text += pipe.read_some();
  REQUIRE(told_in(text) == dropped);
  // It stands where they would have been, and is told once.
  logger.warn("the last line");
  REQUIRE(queue->finish(10s));
  text += pipe.read_some();
  REQUIRE(text.find("the last line") > text.rfind("log lines dropped"));
  REQUIRE(told_in(text) == dropped);
  size_t found = 0;
  for (size_t at = text.find("warn line "); at != std::string::npos; at = text.find("warn line ", at + 1))
    ++found;
  REQUIRE(found + dropped == lines);
}

TEST_CASE("a reader that is gone costs lines, not the process", "[log]") {
  signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  ::close(std::exchange(pipe.read_end, -1));
  auto queue = std::make_shared<LogQueue>(pipe.write_end, text_log_formatter());
  auto logger = logger_on(queue);
  logger.warn("nobody hears this");
  REQUIRE(queue->finish(10s));
  REQUIRE(queue->dropped() == 1);
}

TEST_CASE("a descriptor that does not block is waited for", "[log]") {
  Pipe pipe;
  ::fcntl(pipe.write_end, F_SETFL, O_NONBLOCK);
  auto queue = std::make_shared<LogQueue>(pipe.write_end, text_log_formatter());
  auto logger = logger_on(queue);
  const std::string padding(1000, 'x');
  for (int i = 0; i < 100; ++i) logger.warn("line {} {}", i, padding);
  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (text.find("line 99 ") == std::string::npos && std::chrono::steady_clock::now() < deadline)
    text += pipe.read_some();
  REQUIRE(text.find("line 99 ") != std::string::npos);
  REQUIRE(queue->dropped() == 0);
}
