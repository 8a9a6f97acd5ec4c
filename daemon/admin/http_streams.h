// HttpStreams: answers that go on as long as somebody reads them. The server's thread asks each for more when
// its socket takes more, and leaves those alone that have nothing: a thread of this class's own brings them
// back a moment later. So neither a stream without news nor a client that stands still holds up another
// connection.
//
//   read ─► bytes ─► chunk ─► read …
//     └ nothing ─► suspended ─ pause ─► resumed ─► read
//
// The thread begins with the first stream.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/admin/microhttpd_library.h"

namespace bellhop {

// The body of an answer without an end of its own.
class HttpStream {
 public:
  HttpStream() = default;
  virtual ~HttpStream() = default;
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;
  // The server's thread; never waits. Fills the first bytes of `out`. 0: there is nothing now.
  virtual size_t read(char* out, size_t bytes_max) = 0;
};

class HttpStreams {
 public:
  explicit HttpStreams(const MicrohttpdLibrary& http) : http_(http) {}
  // end().
  ~HttpStreams();
  HttpStreams(const HttpStreams&) = delete;
  HttpStreams& operator=(const HttpStreams&) = delete;

  // The server's thread. Null: out of memory. The response owns the stream from now on.
  MHD_Response* response_of(MHD_Connection* connection, std::shared_ptr<HttpStream> stream);
  // Main thread, before the server's thread is stopped. Each stream ends in order; a client that does not
  // read that is waited for no longer than last_wait.
  void end();

 private:
  struct Open;
  static ssize_t read(void* raw, uint64_t position, char* out, size_t bytes_max);
  bool wait_for_more(MHD_Connection* connection);
  void bring_back();

  const MicrohttpdLibrary& http_;
  std::mutex mutex_;  // the four below
  std::condition_variable changed_;
  std::vector<MHD_Connection*> suspended_;
  size_t open_ = 0;
  bool ended_ = false;
  std::thread thread_;  // the server's thread begins it, end() joins it
};

}  // namespace bellhop
