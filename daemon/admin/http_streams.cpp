#include "daemon/admin/http_streams.h"

#include <pthread.h>

#include <chrono>
#include <system_error>
#include <utility>

namespace bellhop {

namespace {

constexpr std::chrono::milliseconds pause{50}, last_wait{200};
constexpr size_t block_bytes = 4096;

}  // namespace

struct HttpStreams::Open {
  Open(HttpStreams& streams, MHD_Connection* its, std::shared_ptr<HttpStream> what)
      : all(streams), connection(its), stream(std::move(what)) {
    const std::lock_guard<std::mutex> lock(all.mutex_);
    all.open_++;
  }
  // Its last byte was sent, or its connection ended.
  ~Open() {
    const std::lock_guard<std::mutex> lock(all.mutex_);
    all.open_--;
    all.changed_.notify_all();
  }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;

  HttpStreams& all;
  MHD_Connection* const connection;
  const std::shared_ptr<HttpStream> stream;
};

HttpStreams::~HttpStreams() {
  end();
}

MHD_Response* HttpStreams::response_of(MHD_Connection* connection, std::shared_ptr<HttpStream> stream) {
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { bring_back(); });
    } catch (const std::system_error&) {
      return nullptr;
    }
  }
  // A client that stands still is not idle: what it misses is counted.
  http_.set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
  auto* const open = new Open(*this, connection, std::move(stream));
  MHD_Response* const response = http_.create_response_from_callback(
      MHD_SIZE_UNKNOWN, block_bytes, read, open, [](void* ended) { delete static_cast<Open*>(ended); });
  if (response == nullptr) delete open;
  return response;
}

ssize_t HttpStreams::read(void* raw, uint64_t /*position*/, char* out, size_t bytes_max) {
  auto& open = *static_cast<Open*>(raw);
  if (const size_t bytes = open.stream->read(out, bytes_max); bytes != 0) return static_cast<ssize_t>(bytes);
  return open.all.wait_for_more(open.connection) ? 0 : MHD_CONTENT_READER_END_OF_STREAM;
}

// False: there will be no more.
bool HttpStreams::wait_for_more(MHD_Connection* connection) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ended_) return false;
  http_.suspend_connection(connection);
  suspended_.push_back(connection);
  if (suspended_.size() == 1) changed_.notify_all();
  return true;
}

void HttpStreams::bring_back() {
  pthread_setname_np(pthread_self(), "tap");
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_) {
    changed_.wait(lock, [this] { return ended_ || !suspended_.empty(); });
    changed_.wait_for(lock, pause, [this] { return ended_; });
    for (MHD_Connection* connection : std::exchange(suspended_, {})) http_.resume_connection(connection);
  }
}

void HttpStreams::end() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_ = true;
    for (MHD_Connection* connection : std::exchange(suspended_, {})) http_.resume_connection(connection);
    changed_.notify_all();
    changed_.wait_for(lock, last_wait, [this] { return open_ == 0; });
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace bellhop
