#include "daemon/broker/connector.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "daemon/ops/backoff.h"
#include "daemon/ops/trouble.h"
#include "proto/frame.h"

namespace bellhop {
namespace {

constexpr Backoff round_backoff{100, 2000};
constexpr uint64_t attempt_ms_min = 500;
constexpr const char* trouble_node = "broker node";
constexpr size_t answer_bytes_max = 128 * 1024;  // RabbitMQ's start has half a kilobyte

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
  FileDescriptor fd;
  std::unique_ptr<TlsStream> tls;  // null: none is wanted
  enum class Stage { connecting, securing, asking } stage = Stage::connecting;
  Outbox header{};  // asking: what is to be sent of the protocol header
  Buffer answer{};
};

Connector::Connector(uv_loop_t* loop, const config::Broker& broker, std::shared_ptr<const TlsContext> tls,
                     BrokerNodes& nodes, Done done)
    : loop_(loop),
      broker_(broker),
      tls_(std::move(tls)),
      nodes_(nodes),
      done_(std::move(done)),
      deadline_ms_(uv_now(loop) + broker.connect_timeout_ms),
      attempt_ms_max_(std::max(attempt_ms_min, broker.connect_timeout_ms / (broker.urls.size() + 1))),
      random_(static_cast<unsigned>(uv_hrtime() ^ reinterpret_cast<uintptr_t>(this))),
      timer_(new Timer),
      last_failure_(broker.urls.size()) {
  begin_round();
  timer_->owner = this;
  uv_timer_init(loop_, &timer_->timer);
  timer_->timer.data = timer_;
  arm(0);
}

Connector::~Connector() {
  if (attempt_ != nullptr) end_attempt();
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
      self->node_failed(self->attempt_address(), self->what_did_not_come() + " in time");
    self->end_attempt();
  } else if (self->lookup_ != nullptr) {
    self->forget_lookup();
    self->node_failed(self->url().shown, "the name was not resolved in time");
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
    if (round_.empty()) {
      pause();
      return;
    }
    url_index_ = round_.front();
    if (!resolved_) {
      if (const auto known = Address::without_lookup(url())) {
        addresses_.assign(1, *known);
        address_index_ = 0;
        resolved_ = true;
      } else {
        // A lookup that hangs keeps one of libuv's few threads: it is not begun again while there are others.
        if (nodes_.failed_lately(url().shown, uv_hrtime() / 1000000) && postpone_url()) continue;
        begin_lookup();
        if (lookup_ != nullptr) return;
        next_url();
        continue;
      }
    }
    if (address_index_ == 0 && put_failed_last()) continue;
    if (address_index_ == addresses_.size()) {
      next_url();
      continue;
    }
    if (begin_attempt(addresses_[address_index_++])) return;
  }
}

void Connector::begin_round() {
  const size_t count = broker_.urls.size();
  for (size_t i = 0; i < count; ++i) round_.push_back((nodes_.preferred() + i) % count);
  postponed_.assign(count, false);
}

// Addresses that failed lately come after the others of their URL. If all of them did, the URL comes after
// the other URLs of the round: true.
bool Connector::put_failed_last() {
  const uint64_t now_ms = uv_hrtime() / 1000000;
  const auto bad = std::stable_partition(addresses_.begin(), addresses_.end(), [&](const Address& address) {
    return !nodes_.failed_lately(address.text(), now_ms);
  });
  return bad == addresses_.begin() && !addresses_.empty() && postpone_url();
}

// To the end of the round, once. False: it is there already.
bool Connector::postpone_url() {
  if (round_.size() < 2 || postponed_[url_index_]) return false;
  postponed_[url_index_] = true;
  round_.push_back(url_index_);
  next_url();
  return true;
}

void Connector::next_url() {
  round_.pop_front();
  resolved_ = false;
  addresses_.clear();
  address_index_ = 0;
}

void Connector::pause() {
  begin_round();
  if (++failed_rounds_ == 1)
    tell_trouble(trouble_no_broker, "yet", "no broker reached yet, bellhop retries",
                 {{"reason", failures()}});
  arm(std::min<uint64_t>(round_backoff.wait_ms(failed_rounds_, random_), left_ms()));
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
      self->node_failed(self->url().shown, std::string("cannot resolve the name: ") + uv_strerror(status));
      self->next_url();
    } else {
      self->addresses_ = Address::from_resolved(list, self->url().port);
      self->address_index_ = 0;
      self->resolved_ = true;
      self->nodes_.reached(self->url().shown);
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
  FileDescriptor fd = begin_connect(address, connected);
  if (!fd.is_open()) {
    node_failed(address.text(), address.text() + ": " + std::strerror(errno));
    return false;
  }
  const bool wants_tls = url().transport == config::Transport::tls;
  auto attempt = std::make_unique<Attempt>();
  if (wants_tls) attempt->tls = std::make_unique<TlsStream>(tls_, url());
  attempt->owner = this;
  attempt->fd = std::move(fd);
  attempt->poll.data = attempt.get();
  if (const int error = uv_poll_init(loop_, &attempt->poll, attempt->fd.get()); error != 0) {
    failed(std::string("cannot watch a socket: ") + uv_strerror(error));
    return false;
  }
  attempt_ = attempt.release();  // freed by its close callback
  uv_poll_start(&attempt_->poll, UV_WRITABLE, on_poll);
  // The share of a URL is divided among its addresses. Where there is no other to try it has all the time.
  const uint64_t share_ms = std::max(attempt_ms_min, attempt_ms_max_ / addresses_.size());
  arm(is_only_choice() ? left_ms() : std::min(left_ms(), share_ms));
  return true;
}

bool Connector::is_only_choice() const {
  return broker_.urls.size() == 1 && addresses_.size() == 1;
}

void Connector::on_poll(uv_poll_t* poll, int, int) {
  Connector* const self = static_cast<Attempt*>(poll->data)->owner;
  if (self != nullptr) self->try_attempt();
}

// The socket has something to tell. (libuv's own status only says that there is an error.)
void Connector::try_attempt() {
  using Stage = Attempt::Stage;
  Attempt& attempt = *attempt_;
  std::string problem;
  if (attempt.stage == Stage::connecting) {
    const int error = connect_outcome(attempt.fd.get());
    if (error != 0) problem = std::strerror(error);
    attempt.stage = attempt.tls != nullptr ? Stage::securing : Stage::asking;
    if (attempt.tls == nullptr) attempt.header.append(proto::protocol_header);
  }
  if (problem.empty() && attempt.stage == Stage::securing) {
    const TlsStream::Step step = attempt.tls->handshake(attempt.fd.get());
    if (step == TlsStream::Step::waiting) {
      uv_poll_start(&attempt.poll, UV_READABLE | (attempt.tls->has_unsent() ? UV_WRITABLE : 0), on_poll);
      return;
    }
    if (step == TlsStream::Step::failed) problem = attempt.tls->error();
    attempt.stage = Stage::asking;
    attempt.header.append(proto::protocol_header);
  }
  if (problem.empty() && !receive_answer(problem)) return;
  std::unique_ptr<TlsStream> tls = std::move(attempt.tls);
  Buffer answer = std::move(attempt.answer);
  FileDescriptor fd = end_attempt();
  if (problem.empty()) {
    succeed(std::move(fd), std::move(tls), std::move(answer));
    return;
  }
  fd.close();
  node_failed(attempt_address(), attempt_address() + ": " + problem);
  go_on();
}

// Sends the protocol header, and reads until the answer is a whole frame or surely none (the session then
// says what it is instead). False: there is more to wait for.
bool Connector::receive_answer(std::string& problem) {
  Attempt& attempt = *attempt_;
  const auto tls_problem = [&](const char* what) {
    return errno == EPROTO && attempt.tls != nullptr && !attempt.tls->error().empty()
               ? attempt.tls->error()
               : "no connection.start came: " + std::string(what) + ": " + std::strerror(errno);
  };
  const auto has_unsent = [&] {
    return !attempt.header.empty() || (attempt.tls != nullptr && attempt.tls->has_unsent());
  };
  // A failure to write is not the last word: why the peer ended may be there to read.
  std::string write_problem;
  if (has_unsent() && (attempt.tls != nullptr ? attempt.tls->flush(attempt.fd.get(), attempt.header)
                                              : attempt.header.flush(attempt.fd.get())) < 0)
    write_problem = tls_problem("writing failed");
  while (true) {
    const proto::SplitResult split = proto::split_frame(attempt.answer, answer_bytes_max);
    if (split.status != proto::Split::need_more) return true;
    const size_t had = attempt.answer.size();
    attempt.answer.resize(had + 4096);
    const ssize_t received = attempt.tls != nullptr
                                 ? attempt.tls->receive(attempt.fd.get(), attempt.answer.data() + had, 4096)
                                 : ::recv(attempt.fd.get(), attempt.answer.data() + had, 4096, 0);
    const int error = errno;
    attempt.answer.resize(had + static_cast<size_t>(std::max<ssize_t>(received, 0)));
    if (received > 0) continue;
    errno = error;
    if (received == 0) {
      problem = "no connection.start came: the peer closed the connection";
    } else if (error == EINTR) {
      continue;
    } else if (error != EAGAIN && error != EWOULDBLOCK) {
      problem = tls_problem("reading failed");
    } else if (!write_problem.empty()) {
      problem = write_problem;
    } else {
      uv_poll_start(&attempt.poll, UV_READABLE | (has_unsent() ? UV_WRITABLE : 0), on_poll);
      return false;
    }
    return true;
  }
}

std::string Connector::what_did_not_come() const {
  switch (attempt_->stage) {
    case Attempt::Stage::connecting:
      return "no answer from " + attempt_address();
    case Attempt::Stage::securing:
      return "the TLS handshake with " + attempt_address() + " did not end";
    case Attempt::Stage::asking:
      return attempt_address() + " accepted the connection and sent no connection.start";
  }
  return "";
}

// Gives back the descriptor, which uv_close has taken out of the epoll set. Precondition: there is an
// attempt.
FileDescriptor Connector::end_attempt() {
  Attempt* const attempt = std::exchange(attempt_, nullptr);
  attempt->tls.reset();
  close_box(attempt, attempt->poll);
  return std::move(attempt->fd);
}

// An attempt failed: others come first for a while, and the log names the node.
void Connector::node_failed(const std::string& address, const std::string& reason) {
  nodes_.failed(address, uv_hrtime() / 1000000);
  tell_trouble(trouble_node, address, "node not reached",
               {{"broker", url().shown}, {"node", address}, {"reason", reason}});
  failed(reason);
}

void Connector::failed(std::string reason) {
  last_failure_[url_index_] = std::move(reason);
}

void Connector::succeed(FileDescriptor fd, std::unique_ptr<TlsStream> tls, Buffer answer) {
  uv_timer_stop(&timer_->timer);
  nodes_.prefer(url_index_);
  nodes_.reached(attempt_address());
  if (has_trouble())
    trouble_over(trouble_node, attempt_address(), "node reached again",
                 {{"broker", url().shown}, {"node", attempt_address()}});
  const Done done = std::move(done_);
  done(Connected{std::move(fd), &url(), std::move(tls), std::move(answer)});  // may destroy us
}

// What each broker's last failure was.
std::string Connector::failures() const {
  std::string text;
  for (size_t i = 0; i < broker_.urls.size(); ++i) {
    text += (i == 0 ? "" : "; ") + broker_.urls[i].shown + ": ";
    text += last_failure_[i].empty() ? "not tried, no time was left" : last_failure_[i];
  }
  return text;
}

void Connector::give_up() {
  uv_timer_stop(&timer_->timer);
  const std::string text = "no broker could be reached within broker.connect_timeout (" +
                           std::to_string(broker_.connect_timeout_ms) + " ms): " + failures();
  const Done done = std::move(done_);
  done(Error{text});  // may destroy us
}

}  // namespace bellhop
