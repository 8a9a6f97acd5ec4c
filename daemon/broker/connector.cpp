#include "daemon/broker/connector.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/ops/trouble.h"

namespace bellhop {
namespace {

constexpr uint64_t pause_ms_min = 100;
constexpr uint64_t pause_ms_max = 2000;
constexpr uint64_t attempt_ms_min = 500;

// Each of libuv's requests and handles lives in a box that its own last callback frees; the connector only
// lets go of it.
template <typename Box, typename Handle>
void close_box(Box* box, Handle& handle) {
  box->owner = nullptr;
  handle.data = box;
  uv_close(reinterpret_cast<uv_handle_t*>(&handle),
           [](uv_handle_t* raw) { delete static_cast<Box*>(raw->data); });
}

}  // namespace

struct Connector::Timer {
  uv_timer_t timer;
  Connector* owner;
};
struct Connector::Lookup {
  uv_getaddrinfo_t request;
  Connector* owner;
};
struct Connector::Attempt {
  uv_poll_t poll;
  Connector* owner;
  int fd;
  std::unique_ptr<TlsStream> tls;  // null: none is wanted
  bool is_connected = false;       // and the TLS handshake is under way
};

Connector::Connector(uv_loop_t* loop, const config::Broker& broker, const TlsContext* tls,
                     std::atomic<size_t>& preferred_url, Done done, uint64_t after_ms,
                     std::optional<uint64_t> deadline_ms)
    : loop_(loop),
      broker_(broker),
      tls_(tls),
      preferred_url_(preferred_url),
      done_(std::move(done)),
      deadline_ms_(deadline_ms.value_or(uv_now(loop) + broker.connect_timeout_ms)),
      attempt_ms_max_(std::max(attempt_ms_min, broker.connect_timeout_ms / (broker.urls.size() + 1))),
      pause_ms_(pause_ms_min),
      random_(static_cast<unsigned>(uv_hrtime() ^ reinterpret_cast<uintptr_t>(this))),
      timer_(new Timer),
      last_failure_(broker.urls.size()) {
  if (!broker_.urls.empty())
    url_index_ = preferred_url_.load(std::memory_order_relaxed) % broker_.urls.size();
  timer_->owner = this;
  uv_timer_init(loop_, &timer_->timer);
  timer_->timer.data = timer_;
  arm(after_ms);
}

Connector::~Connector() {
  if (attempt_ != nullptr) ::close(end_attempt());
  forget_lookup();
  close_box(timer_, timer_->timer);
}

uint64_t Connector::left_ms() const {
  const uint64_t now = uv_now(loop_);
  return now < deadline_ms_ ? deadline_ms_ - now : 0;
}

void Connector::arm(uint64_t after_ms) {
  uv_timer_start(&timer_->timer, on_timer, after_ms, 0);
}

void Connector::on_timer(uv_timer_t* raw) {
  Connector* const self = static_cast<Timer*>(raw->data)->owner;
  if (self->attempt_ != nullptr) {
    // An attempt that had not its share of the time says less than an earlier one did.
    if (self->left_ms() > 0 || self->last_failure_[self->url_index_].empty())
      self->failed((self->attempt_->is_connected
                        ? "the TLS handshake with " + self->attempt_address() + " did not end"
                        : "no answer from " + self->attempt_address()) +
                   " in time");
    ::close(self->end_attempt());
  } else if (self->lookup_ != nullptr) {
    self->forget_lookup();
    self->failed("the name was not resolved in time");
    self->next_url();
  }
  self->go_on();
}

// Goes as far as it can without waiting. May destroy the connector, by done_: the last thing that a callback
// does.
void Connector::go_on() {
  while (true) {
    if (broker_.urls.empty() || left_ms() == 0) {
      give_up();
      return;
    }
    if (tried_in_round_ == broker_.urls.size()) {
      pause();
      return;
    }
    if (!resolved_) {
      if (const auto known = Address::without_lookup(url())) {
        addresses_.assign(1, *known);
        address_index_ = 0;
        resolved_ = true;
      } else {
        begin_lookup();
        if (lookup_ != nullptr) return;
        next_url();
        continue;
      }
    }
    if (address_index_ == addresses_.size()) {
      next_url();
      continue;
    }
    if (begin_attempt(addresses_[address_index_++])) return;
  }
}

void Connector::next_url() {
  url_index_ = (url_index_ + 1) % broker_.urls.size();
  ++tried_in_round_;
  resolved_ = false;
  addresses_.clear();
  address_index_ = 0;
}

// Between half and the whole of a pause that doubles each round, so that the sessions of a host do not come
// back in step.
void Connector::pause() {
  tried_in_round_ = 0;
  if (pause_ms_ == pause_ms_min)
    tell_trouble(trouble_no_broker, "yet", "no broker is reached yet, trying again" + failures());
  std::uniform_int_distribution<uint64_t> jitter(pause_ms_ / 2, pause_ms_);
  arm(std::min(jitter(random_), left_ms()));
  pause_ms_ = std::min(pause_ms_ * 2, pause_ms_max);
}

void Connector::begin_lookup() {
  auto lookup = std::make_unique<Lookup>();
  lookup->owner = this;
  lookup->request.data = lookup.get();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  const int error = uv_getaddrinfo(loop_, &lookup->request, on_resolved, url().host.c_str(), nullptr, &hints);
  if (error != 0) {
    failed(std::string("cannot resolve the name: ") + uv_strerror(error));
    return;
  }
  lookup_ = lookup.release();  // freed in on_resolved
  // With one URL there is nothing else to spend the time on, and a lookup given up goes on in its thread.
  arm(broker_.urls.size() == 1 ? left_ms() : std::min(left_ms(), attempt_ms_max_));
}

void Connector::on_resolved(uv_getaddrinfo_t* request, int status, addrinfo* list) {
  const std::unique_ptr<Lookup> lookup(static_cast<Lookup*>(request->data));
  Connector* const self = lookup->owner;
  if (self != nullptr) {
    self->lookup_ = nullptr;
    if (status != 0) {
      self->failed(std::string("cannot resolve the name: ") + uv_strerror(status));
      self->next_url();
    } else {
      self->addresses_ = Address::from_resolved(list, self->url().port);
      self->address_index_ = 0;
      self->resolved_ = true;
      if (self->addresses_.empty()) self->failed("the name has no IP address");
    }
  }
  uv_freeaddrinfo(list);
  if (self != nullptr) self->go_on();
}

void Connector::forget_lookup() {
  if (lookup_ == nullptr) return;
  lookup_->owner = nullptr;
  uv_cancel(reinterpret_cast<uv_req_t*>(&lookup_->request));  // on_resolved comes either way
  lookup_ = nullptr;
}

// True: there is something to wait for, or done_ was called. False: failed, go on.
bool Connector::begin_attempt(const Address& address) {
  bool connected = false;
  const int fd = begin_connect(address, connected);
  if (fd < 0) {
    failed(address.text() + ": " + std::strerror(errno));
    return false;
  }
  const bool wants_tls = url().transport == config::Transport::tls;
  if (connected && !wants_tls) {
    succeed(fd, nullptr);
    return true;
  }
  auto attempt = std::make_unique<Attempt>();
  if (wants_tls) attempt->tls = std::make_unique<TlsStream>(*tls_, url());
  attempt->owner = this;
  attempt->fd = fd;
  attempt->poll.data = attempt.get();
  if (const int error = uv_poll_init(loop_, &attempt->poll, fd); error != 0) {
    ::close(fd);
    failed(std::string("cannot watch a socket: ") + uv_strerror(error));
    return false;
  }
  attempt_ = attempt.release();  // freed by its close callback
  uv_poll_start(&attempt_->poll, UV_WRITABLE, on_poll);
  arm(std::min(left_ms(), attempt_ms_max_));
  return true;
}

void Connector::on_poll(uv_poll_t* poll, int, int) {
  Connector* const self = static_cast<Attempt*>(poll->data)->owner;
  if (self != nullptr) self->try_attempt();
}

// The socket has something to tell. (libuv's own status only says that there is an error.)
void Connector::try_attempt() {
  Attempt& attempt = *attempt_;
  std::string problem;
  if (!attempt.is_connected) {
    const int error = connect_outcome(attempt.fd);
    if (error != 0) problem = std::strerror(error);
    attempt.is_connected = error == 0;
  }
  if (attempt.is_connected && attempt.tls != nullptr) {
    const TlsStream::Step step = attempt.tls->handshake(attempt.fd);
    if (step == TlsStream::Step::waiting) {
      uv_poll_start(&attempt.poll, UV_READABLE | (attempt.tls->has_unsent() ? UV_WRITABLE : 0), on_poll);
      return;
    }
    if (step == TlsStream::Step::failed) problem = attempt.tls->error();
  }
  std::unique_ptr<TlsStream> tls = std::move(attempt.tls);
  const int fd = end_attempt();
  if (problem.empty()) {
    succeed(fd, std::move(tls));
    return;
  }
  ::close(fd);
  failed(attempt_address() + ": " + problem);
  go_on();
}

// Gives back the descriptor, which uv_close has taken out of the epoll set. Precondition: there is an
// attempt.
int Connector::end_attempt() {
  Attempt* const attempt = std::exchange(attempt_, nullptr);
  attempt->tls.reset();
  close_box(attempt, attempt->poll);
  return attempt->fd;
}

void Connector::failed(std::string reason) {
  last_failure_[url_index_] = std::move(reason);
}

void Connector::succeed(int fd, std::unique_ptr<TlsStream> tls) {
  uv_timer_stop(&timer_->timer);
  preferred_url_.store(url_index_, std::memory_order_relaxed);
  const Done done = std::move(done_);
  done(Connected{fd, &url(), std::move(tls)});  // may destroy us
}

// What each broker's last failure was.
std::string Connector::failures() const {
  std::string text;
  for (size_t i = 0; i < broker_.urls.size(); ++i) {
    text += (i == 0 ? ": " : "; ") + broker_.urls[i].shown + ": ";
    text += last_failure_[i].empty() ? "not tried, the time was up" : last_failure_[i];
  }
  return text;
}

void Connector::give_up() {
  uv_timer_stop(&timer_->timer);
  const std::string text =
      "no broker could be reached in " + std::to_string(broker_.connect_timeout_ms) + " ms" + failures();
  const Done done = std::move(done_);
  done(Error{text});  // may destroy us
}

}  // namespace bellhop
