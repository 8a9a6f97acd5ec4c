// A thread with a libuv loop that drives libcurl's transfers (curl_multi_socket_action). Each S3 store has
// one, so that all of its transfers share its connections.
//
//   any thread: post ─► mailbox ─► loop ─► curl_multi ─► CurlTransfer::ended
#pragma once

#include <pthread.h>
#include <uv.h>

#include <functional>
#include <memory>

#include "daemon/claims/s3/curl_library.h"
#include "daemon/ops/mailbox.h"

namespace bellhop {

// One easy handle under way.
class CurlTransfer {
 public:
  virtual ~CurlTransfer() = default;
  virtual CURL* easy() const = 0;
  // The loop's thread, never inside another callback of libcurl. The transfer is off the loop already.
  virtual void ended(CURLcode code) = 0;
};

class CurlLoop {
 public:
  static Result<std::unique_ptr<CurlLoop>> open();
  // Precondition: stopped, or never used.
  ~CurlLoop();
  CurlLoop(const CurlLoop&) = delete;
  CurlLoop& operator=(const CurlLoop&) = delete;

  // Any thread, at any time. After stop() tasks are dropped.
  void post(std::function<void()> task) { mailbox_->post(std::move(task)); }
  // Any other thread. Runs `last` as the last task; then the thread ends and is joined. Precondition: no
  // transfer is left when `last` has run.
  void stop(std::function<void()> last);

  // The rest: only the loop's thread.
  const CurlLibrary& curl() const { return curl_; }
  uv_loop_t* uv() { return &loop_; }
  uint64_t now_ms() { return uv_now(&loop_); }
  void add(CurlTransfer& transfer);
  // Ends the transfer without calling it. Not inside a callback of libcurl.
  void remove(CurlTransfer& transfer);

 private:
  struct Socket;

  explicit CurlLoop(const CurlLibrary& curl) : curl_(curl) {}
  static void* thread_main(void* self);
  static int on_socket(CURL* easy, curl_socket_t fd, int what, void* self, void* socket);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);
  void act(curl_socket_t fd, int events);

  const CurlLibrary& curl_;
  uv_loop_t loop_{};
  uv_timer_t timer_{};
  CURLM* multi_ = nullptr;
  std::shared_ptr<Mailbox> mailbox_;
  pthread_t thread_{};
  bool running_ = false;
};

}  // namespace bellhop
