#include "daemon/claims/s3/curl_loop.h"

#include <signal.h>

#include <string>

namespace bellhop {

namespace {
constexpr long idle_connections_max = 64;
}

// Watches one of libcurl's sockets. Freed when libuv has let go of it.
struct CurlLoop::Socket {
  uv_poll_t poll{};
  CurlLoop* owner = nullptr;
  curl_socket_t fd = CURL_SOCKET_BAD;
};

Result<std::unique_ptr<CurlLoop>> CurlLoop::open() {
  const auto library = CurlLibrary::load();
  if (!library) return Error{"an S3 store needs libcurl: " + library.error()};
  std::unique_ptr<CurlLoop> self(new CurlLoop(*library.value()));
  if (const int error = uv_loop_init(&self->loop_); error != 0)
    return Error{std::string("cannot open a loop: ") + uv_strerror(error)};
  self->running_ = true;
  uv_timer_init(&self->loop_, &self->timer_);
  self->timer_.data = self.get();
  auto mailbox = Mailbox::open(&self->loop_);
  self->multi_ = self->curl_.multi_init();
  if (mailbox) self->mailbox_ = mailbox.value();
  bool started = false;
  if (mailbox && self->multi_ != nullptr) {
    self->curl_.multi_setopt(self->multi_, CURLMOPT_SOCKETFUNCTION, &CurlLoop::on_socket);
    self->curl_.multi_setopt(self->multi_, CURLMOPT_SOCKETDATA, self.get());
    self->curl_.multi_setopt(self->multi_, CURLMOPT_TIMERFUNCTION, &CurlLoop::on_timer);
    self->curl_.multi_setopt(self->multi_, CURLMOPT_TIMERDATA, self.get());
    self->curl_.multi_setopt(self->multi_, CURLMOPT_MAXCONNECTS, idle_connections_max);
    // Signals are for the threads that wait for them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&self->thread_, nullptr, &CurlLoop::thread_main, self.get()) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  if (started) return self;
  if (self->mailbox_) self->mailbox_->close();
  uv_close(reinterpret_cast<uv_handle_t*>(&self->timer_), nullptr);
  thread_main(self.get());
  self->running_ = false;
  return Error{"cannot start a thread for S3"};
}

void* CurlLoop::thread_main(void* self) {
  auto* const owner = static_cast<CurlLoop*>(self);
  uv_run(&owner->loop_, UV_RUN_DEFAULT);
  if (owner->multi_ != nullptr) owner->curl_.multi_cleanup(owner->multi_);
  uv_run(&owner->loop_, UV_RUN_DEFAULT);  // sockets that went with it
  uv_loop_close(&owner->loop_);
  return nullptr;
}

void CurlLoop::stop(std::function<void()> last) {
  if (!running_) return;
  post([this, last = std::move(last)] {
    if (last) last();
    uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
    mailbox_->close();
  });
  pthread_join(thread_, nullptr);
  running_ = false;
}

CurlLoop::~CurlLoop() {
  stop({});
}

void CurlLoop::add(CurlTransfer& transfer) {
  curl_.easy_setopt(transfer.easy(), CURLOPT_PRIVATE, &transfer);
  curl_.multi_add_handle(multi_, transfer.easy());
}

void CurlLoop::remove(CurlTransfer& transfer) {
  curl_.multi_remove_handle(multi_, transfer.easy());
}

int CurlLoop::on_socket(CURL*, curl_socket_t fd, int what, void* self, void* socket) {
  auto* const owner = static_cast<CurlLoop*>(self);
  auto* watched = static_cast<Socket*>(socket);
  if (what == CURL_POLL_REMOVE) {
    if (watched == nullptr) return 0;
    uv_close(reinterpret_cast<uv_handle_t*>(&watched->poll),
             [](uv_handle_t* handle) { delete static_cast<Socket*>(handle->data); });
    return 0;
  }
  if (watched == nullptr) {
    watched = new Socket;
    watched->owner = owner;
    watched->fd = fd;
    watched->poll.data = watched;
    if (uv_poll_init_socket(&owner->loop_, &watched->poll, fd) != 0) {
      delete watched;
      return -1;
    }
    owner->curl_.multi_assign(owner->multi_, fd, watched);
  }
  const int events =
      ((what & CURL_POLL_IN) != 0 ? UV_READABLE : 0) | ((what & CURL_POLL_OUT) != 0 ? UV_WRITABLE : 0);
  uv_poll_start(&watched->poll, events, [](uv_poll_t* poll, int status, int ready) {
    const auto* const at = static_cast<Socket*>(poll->data);
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    if ((ready & UV_READABLE) != 0) flags |= CURL_CSELECT_IN;
    if ((ready & UV_WRITABLE) != 0) flags |= CURL_CSELECT_OUT;
    at->owner->act(at->fd, flags);
  });
  return 0;
}

int CurlLoop::on_timer(CURLM*, long timeout_ms, void* self) {
  auto* const owner = static_cast<CurlLoop*>(self);
  if (uv_is_closing(reinterpret_cast<uv_handle_t*>(&owner->timer_)) != 0) return 0;
  if (timeout_ms < 0) {
    uv_timer_stop(&owner->timer_);
    return 0;
  }
  uv_timer_start(
      &owner->timer_,
      [](uv_timer_t* timer) { static_cast<CurlLoop*>(timer->data)->act(CURL_SOCKET_TIMEOUT, 0); },
      static_cast<uint64_t>(timeout_ms), 0);
  return 0;
}

void CurlLoop::act(curl_socket_t fd, int events) {
  int running = 0;
  curl_.multi_socket_action(multi_, fd, events, &running);
  int queued = 0;
  while (const CURLMsg* message = curl_.multi_info_read(multi_, &queued)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* const easy = message->easy_handle;
    const CURLcode code = message->data.result;
    char* transfer = nullptr;
    curl_.easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
    curl_.multi_remove_handle(multi_, easy);
    reinterpret_cast<CurlTransfer*>(transfer)->ended(code);
  }
}

}  // namespace bellhop
