#include "daemon/broker/control.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <utility>

#include "daemon/broker/existing.h"
#include "daemon/ops/backoff.h"
#include "daemon/ops/trouble.h"

namespace bellhop {
namespace {

constexpr Backoff round_backoff{500, 30'000};
constexpr uint16_t precondition_failed = 406;
constexpr uint16_t internal_error = 541;

// One line for what is there with other properties, and used as it is.
void warn_of(const Existing& existing, const Declaration& item, const std::string& vhost) {
  const char* const kind = item.kind == Declaration::Kind::queue ? "queue" : "exchange";
  std::string text_of_advice = advice(existing.differences, item, vhost);
  if (text_of_advice.starts_with("; ")) text_of_advice.erase(0, 2);
  log_warn(std::string(kind) + " exists with other arguments and is used as it is",
           {{kind, item.name},
            {"vhost", vhost},
            {"differences",
             describe(existing.differences, item) + (existing.is_complete ? "" : ", and perhaps more")},
            if_known("advice", text_of_advice)});
}

}  // namespace

Control::Control(std::shared_ptr<const config::Config> config, std::shared_ptr<const TlsContext> tls, Saw saw)
    : config_(std::move(config)), tls_(std::move(tls)), saw_(std::move(saw)) {
  const std::vector<Declaration> wanted = declarations_of(*config_);
  if (!config_->broker.has_credentials() && !config_->broker.has_certificate_login()) {
    if (wanted.empty()) return;
    log_warn(
        "pipelines not declared: the configuration has no credentials for the broker; set broker.username "
        "and broker.password, or declare: false");
    return;
  }
  wake_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  done_ = false;
  thread_ = std::thread(&Control::run, this, std::deque<Declaration>(wanted.begin(), wanted.end()));
}

Control::~Control() {
  stop();
}

void Control::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    if (broker_fd_ >= 0) ::shutdown(broker_fd_, SHUT_RDWR);
  }
  changed_.notify_all();
  if (wake_.is_open()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        ::write(wake_.get(), &one, sizeof one);  // cannot block: it is written once
  }
  if (thread_.joinable()) thread_.join();
  wake_.close();
}

bool Control::wait_until_done(uint32_t timeout_ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return done_; });
}

// --- the thread ---

void Control::run(std::deque<Declaration> left) {
  const config::Broker& broker = config_->broker;
  if (left.empty()) log_in_once_answered();
  std::minstd_rand random(std::random_device{}());
  uint32_t failed_rounds = 0;
  while (!left.empty()) {
    for (const config::BrokerUrl& url : broker.urls) {
      const Result<void> tried = try_url(url, left);
      if (left.empty()) break;
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) break;
      if (!tried)
        tell_trouble("pipelines not declared", url.shown + ": " + subject_of_reason(tried.error()),
                     "pipelines not declared yet, bellhop retries",
                     {{"broker", url.shown}, {"reason", tried.error()}});
    }
    if (left.empty()) break;
    if (!pause(round_backoff.wait_ms(++failed_rounds, random))) break;
  }
  say_done();
}

void Control::say_done() {
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void Control::saw(BrokerSeen seen) const {
  if (saw_) saw_(seen);
}

// Sessions would find out as well, one by one, and only when somebody connects. A broker that is away is
// tried again, so that the log says when it is there; one that says no is not: that is for a person to mend.
void Control::log_in_once_answered() {
  std::minstd_rand random(std::random_device{}());
  for (uint32_t failed_rounds = 0; !try_login();) {
    say_done();
    if (!pause(round_backoff.wait_ms(++failed_rounds, random))) return;
  }
}

// The first broker that lets bellhop in ends it. True: one has answered, or bellhop ends.
bool Control::try_login() {
  bool has_answer = false;
  for (const config::BrokerUrl& url : config_->broker.urls) {
    auto opened = ControlConnection::open(config_->broker, url, tls_, wake_.get());
    Result<void> outcome;
    if (!opened) {
      outcome = Error{opened.error()};
    } else if (lend_to_stop(opened.value()->fd())) {
      outcome = opened.value()->log_in();
      if (outcome) {
        log_info("broker lets bellhop in", {{"broker", url.shown}, {"vhost", opened.value()->vhost()}});
        saw(BrokerSeen::reached);
        opened.value()->close();
      }
    }
    if (!lend_to_stop(-1) || outcome) return true;
    const ControlConnection* const refused =
        opened && opened.value()->was_refused() ? opened.value().get() : nullptr;
    if (refused != nullptr) has_answer = true;
    if (refused != nullptr && refused->lacks_mechanism() && !config_->broker.has_credentials())
      continue;  // then each client's own login is passed on
    if (told_.insert(url.shown + subject_of_reason(outcome.error())).second)
      say_not_let_in(url, refused, outcome.error());
  }
  if (!has_answer) saw(BrokerSeen::away);
  return has_answer;
}

// `refused` is null when the broker has not answered. A virtual host that no configuration names may be one
// that no client asks for.
void Control::say_not_let_in(const config::BrokerUrl& url, const ControlConnection* refused,
                             const std::string& reason) {
  if (refused == nullptr) {
    log_warn("broker cannot be reached at start, bellhop serves all the same",
             {{"broker", url.shown}, {"key", "broker.url"}, {"reason", reason}});
  } else if (refused->refuses_vhost() && !url.vhost) {
    saw(BrokerSeen::reached);
    log_warn("broker refuses the virtual host that a client gets by default",
             {{"broker", url.shown}, {"vhost", refused->vhost()}, {"reason", reason}});
  } else {
    saw(BrokerSeen::refuses);
    log_error("broker refuses bellhop's login: check the credentials under broker in the configuration",
              {{"broker", url.shown}, {"vhost", refused->vhost()}, {"reason", reason}});
  }
}

// False: stopped.
bool Control::pause(uint32_t ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  return !changed_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_; });
}

// False: stopped. A negative fd takes it back, before it is closed.
bool Control::lend_to_stop(int fd) {
  const std::lock_guard<std::mutex> lock(mutex_);
  broker_fd_ = fd;
  return !stopping_;
}

Result<void> Control::try_url(const config::BrokerUrl& url, std::deque<Declaration>& left) {
  auto opened = ControlConnection::open(config_->broker, url, tls_, wake_.get());
  ControlConnection* const connection = opened ? opened.value().get() : nullptr;
  Result<void> outcome;
  bool is_let_in = false;
  if (connection == nullptr) {
    outcome = Error{opened.error()};
  } else if (lend_to_stop(connection->fd())) {
    outcome = connection->log_in();
    is_let_in = outcome.ok();
    if (is_let_in) outcome = declare_all(*connection, url, left);
  }
  if (lend_to_stop(-1) && !outcome && !is_let_in) {
    const bool was_refused = connection != nullptr && connection->was_refused();
    if (!was_refused) saw(BrokerSeen::away);
    if (told_.insert(url.shown + subject_of_reason(outcome.error())).second)
      say_not_let_in(url, was_refused ? connection : nullptr, outcome.error());
  }
  return outcome;
}

// Logged in. Takes off `left` what was answered.
Result<void> Control::declare_all(ControlConnection& connection, const config::BrokerUrl& url,
                                  std::deque<Declaration>& left) {
  using Kind = ControlConnection::Answer::Kind;
  if (!told_.empty())
    log_info("broker lets bellhop in", {{"broker", url.shown}, {"vhost", connection.vhost()}});
  told_.clear();
  saw(BrokerSeen::reached);
  size_t declared = 0, refused = 0, different = 0;
  while (!left.empty()) {
    const Declaration& item = left.front();
    const auto answer = connection.declare(item);
    if (answer.kind == Kind::done) {
      ++declared;
      left.pop_front();
      continue;
    }
    // RabbitMQ 4 ends the connection with 541 when a name with other letters than ASCII's makes the text of a
    // refusal too long.
    if (answer.kind == Kind::lost && answer.code != internal_error)
      return Error{item.text() + ": " + answer.text};
    if (answer.kind == Kind::refused && answer.code == precondition_failed) {
      const Existing existing = differences_of(connection, item, answer.text);
      if (!existing.differences.empty()) {
        warn_of(existing, item, connection.vhost());
        ++different;
        left.pop_front();
        if (existing.is_lost) return Error{"the connection was lost"};
        continue;
      }
    }
    // Asking again would get the same answer.
    log_error("declaration refused", {{"item", item.text()},
                                      {"vhost", connection.vhost()},
                                      {"broker", url.shown},
                                      {"reason", answer.text}});
    ++refused;
    left.pop_front();
    if (answer.kind == Kind::lost) return Error{"the connection was lost: " + answer.text};
  }
  log_info("pipelines declared", {{"broker", url.shown},
                                  {"vhost", connection.vhost()},
                                  {"items", declared},
                                  {"refused", refused},
                                  {"different", different}});
  connection.close();
  return {};
}

}  // namespace bellhop
