#include "daemon/ops/log_queue.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/details/log_msg.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

constexpr size_t kept_bytes_max = 16 * 1024;  // of a buffer that was needed once
constexpr size_t stack_bytes = 128 * 1024;

// False: the descriptor takes nothing any more.
bool write_whole(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(fd, text.data() + done, text.size() - done);
    if (written >= 0) {
      done += static_cast<size_t>(written);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      // Another process that has the same terminal or pipe made it non-blocking.
      pollfd waited{fd, POLLOUT, 0};
      ::poll(&waited, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct LogQueue::State {
  int fd;
  std::mutex mutex;  // all below
  std::condition_variable filled, written;
  std::unique_ptr<spdlog::formatter> formatter;
  std::string queue;
  size_t queued_lines = 0;
  uint64_t dropped = 0;
  uint64_t dropped_told = 0;
  bool has_thread = false;
  bool writing = false;
  bool ended = false;
};

LogQueue::LogQueue(int fd, std::unique_ptr<spdlog::formatter> formatter) : state_(new State) {
  state_->fd = fd;
  state_->formatter = std::move(formatter);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  // Signals are for the threads that wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  auto* const shared = new std::shared_ptr<State>(state_);
  pthread_t thread;
  const auto main = [](void* raw) -> void* {
    pthread_setname_np(pthread_self(), "log");
    const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(raw));
    write_lines(*state);
    return nullptr;
  };
  state_->has_thread = pthread_create(&thread, &attributes, main, shared) == 0;
  if (!state_->has_thread) delete shared;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
}

LogQueue::~LogQueue() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->ended = true;
  state_->filled.notify_one();
}

void LogQueue::set_formatter(std::unique_ptr<spdlog::formatter> formatter) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->formatter = std::move(formatter);
}

void LogQueue::log(const spdlog::details::log_msg& message) {
  // The formatter is set once and keeps no state of a line, so lines are made outside of the lock.
  spdlog::memory_buf_t line;
  state_->formatter->format(message, line);
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (!state_->has_thread) {  // the process could not even start a thread: better slow than silent
    if (!write_whole(state_->fd, {line.data(), line.size()})) state_->dropped++;
    return;
  }
  if (state_->queue.size() + line.size() > queue_bytes_max) {
    state_->dropped++;
    return;
  }
  state_->queue.append(line.data(), line.size());
  state_->queued_lines++;
  if (!state_->writing) state_->filled.notify_one();
}

void LogQueue::write_lines(const std::shared_ptr<State>& state) {
  std::string text;
  std::unique_lock<std::mutex> lock(state->mutex);
  while (true) {
    state->filled.wait(lock, [&] { return !state->queue.empty() || state->ended; });
    if (state->ended) return;
    text.clear();
    if (text.capacity() > kept_bytes_max) text.shrink_to_fit();
    text.swap(state->queue);
    const size_t lines = std::exchange(state->queued_lines, 0);
    const uint64_t dropped = state->dropped, told_before = state->dropped_told;
    if (dropped != told_before) {
      // They would have come between what is in `text` and what is queued from now on.
      const std::string told =
          "log lines dropped" +
          LogFields{{"count", dropped - told_before}, {"reason", "nobody read them fast enough"}}.encoded();
      spdlog::memory_buf_t line;
      state->formatter->format({"bellhop", spdlog::level::warn, told}, line);
      text.append(line.data(), line.size());
      state->dropped_told = dropped;
    }
    state->writing = true;
    lock.unlock();
    const bool whole = write_whole(state->fd, text);
    lock.lock();
    state->writing = false;
    if (!whole) {  // the disk is full, or the reader is gone: it is told when it can be
      state->dropped += lines;
      state->dropped_told = told_before;
    }
    if (state->queue.empty()) state->written.notify_all();
  }
}

bool LogQueue::finish(std::chrono::milliseconds at_most) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  return state_->written.wait_for(lock, at_most, [&] { return state_->queue.empty() && !state_->writing; });
}

uint64_t LogQueue::dropped() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->dropped;
}

}  // namespace bellhop
