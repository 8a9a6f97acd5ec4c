// The life of a session's thread: its loop, and the turn that follows each event. The rest of the class:
// session_opening.cpp, session_frames.cpp, session_reading.cpp, session_time.cpp, session_ends.cpp.
#include "daemon/door/amqp/session/session.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "daemon/ops/trouble.h"

namespace bellhop {

using namespace proto;

namespace {

constexpr size_t handshake_frame_bytes_max = 128 * 1024;

// What answers a protocol header where TLS is spoken (RFC 8446 sections 5.1 and 6).
bool is_tls_alert(Bytes answer) {
  return answer.size() >= 2 && answer[0] == 21 && answer[1] == 3;
}

}  // namespace

Session::Session(Shared& shared, Accepted accepted, uint64_t id, std::string refusal,
                 std::function<void(uint64_t id)> ended)
    : shared_(shared),
      id_(id),
      opened_with_(shared.current.get()->config),
      tcp_(accepted.tcp),
      peer_(std::move(accepted.peer)),
      refusal_(std::move(refusal)),
      ended_(std::move(ended)),
      fd_(std::move(accepted.fd)),
      state_(shared, id, tcp_ != nullptr ? Door::tcp : Door::unix_socket, peer_),
      memory_(*shared.budget, shared.held_for_clients) {}

Session::~Session() {
  if (thread_.joinable()) thread_.join();
}

Result<void> Session::start() {
  if (int error = uv_loop_init(&loop_); error != 0)
    return Error{std::string("cannot open a loop: ") + uv_strerror(error)};
  Result<void> opened = open_loop();
  if (opened) return opened;
  if (mailbox_ != nullptr) mailbox_->close();
  uv_run(&loop_, UV_RUN_DEFAULT);
  uv_loop_close(&loop_);
  return opened;
}

Result<void> Session::open_loop() {
  auto mailbox = Mailbox::open(&loop_, [this] { turn(); });
  if (!mailbox) return Error{mailbox.error()};
  mailbox_ = mailbox.value();
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return Error{std::string("cannot start a thread: ") + error.what()};
  }
  return {};
}

void Session::look_at_configuration() {
  mailbox_->post([] {});
}

void Session::drain() {
  mailbox_->post([this] {
    state_.draining = told_to_drain_ = true;
    hurry();
    if (stage_ < Stage::running) {
      end_reason_ = "bellhop is shutting down";
      state_.meter.ends(SessionEnd::drained);
      finish();
    }
  });
}

void Session::stop(std::string why, uint64_t within_ms) {
  mailbox_->post([this, why = std::move(why), within_ms] {
    stop_within_ms_ = within_ms;
    hurry();
    if (stage_ < Stage::running) {
      end_reason_ = why;
      state_.meter.ends(SessionEnd::drained);
      finish();
    } else {
      if (stage_ == Stage::running) log_warn(not_ended_in_time, what_is_unsettled());
      close_by_bellhop(320, "CONNECTION_FORCED - " + why, 0);
    }
  });
}

LogFields Session::what_is_unsettled() const {
  return about({{"unconfirmed", unconfirmed_.load(std::memory_order_relaxed)},
                {"unacknowledged", unacknowledged_.load(std::memory_order_relaxed)}});
}

LogFields Session::about(std::initializer_list<LogField> more) const {
  return state_.who({{"peer", peer_}}).add(more);
}

void Session::run() {
  client_ = std::make_unique<Link>(std::move(fd_), *this);
  uv_timer_init(&loop_, &timer_);
  timer_.data = this;
  client_deadline_ms_ = uv_now(&loop_) + state_.config().limits.handshake_timeout_ms;
  schedule_tick(state_.config().limits.handshake_timeout_ms);
  if (auto started = client_->start(&loop_); !started) {
    end_reason_ = started.error();
    finish();
  }
  uv_run(&loop_, UV_RUN_DEFAULT);
  relay_.reset();
  client_.reset();
  broker_.reset();
  uv_run(&loop_, UV_RUN_DEFAULT);
  uv_loop_close(&loop_);
  ended_(id_);
}

// A turn looks at both links, whichever it was.
void Session::on_bytes(Link& link) {
  if (&link == broker_.get() && relay_ != nullptr) relay_->broker_had_its_turn();
  turn();
}
void Session::on_writable_again(Link&) {
  turn();
}

void Session::on_end(Link& link, std::string reason) {
  if (finished_) return;
  leg_ended(link, reason);
  turn();
}

// --- a turn ---

void Session::turn() {
  if (finished_) return;
  state_.meter.now_ms = static_cast<uint32_t>(now_ms());
  if (relay_ != nullptr && shared_.current.generation() != state_.snapshot->generation)
    relay_->use(shared_.current.get());
  if (stage_ == Stage::greeting) greet();
  stalled_ = false;
  if (state_.client_gone) client_->outbox().clear();
  for (bool again = true; again;) {
    for (bool progress = stage_ >= Stage::handshake && !finished_; progress && !finished_;) {
      progress = run_client();
      if (run_broker()) {
        progress = true;
        stalled_ = false;  // it may have waited for just that answer, and nothing else would wake it
      }
      if (pump_relay()) progress = true;
    }
    if (finished_) return;
    if (state_.client_gone) client_->outbox().clear();
    // Each leg is written once a batch; what was borrowed from the other leg's buffer is sent or copied here.
    bool full = is_full();
    if (broker_ != nullptr && broker_leg_ != Leg::closed) broker_->flush();
    if (client_leg_ != Leg::closed) client_->flush();
    if (relay_ != nullptr) {
      relay_->detach_client_frames();
      relay_->detach_broker_frames();
    }
    // What stopped at a full outbox goes on when the flush emptied it: no event would come for that.
    again = !finished_ && ((full && !is_full()) || (may_pump() && relay_->may_read_last()));
  }
  check_ends();
  if (finished_) return;
  // An end may have said more to the broker (parks): no event would come for it.
  if (broker_leg_ == Leg::open && !broker_->outbox().empty()) broker_->flush();
  decide_reading();
}

bool Session::may_pump() const {
  return relay_ != nullptr && (stage_ == Stage::running || !farewell_.empty());
}

// Does what waited. True: frames that could not be handled before can be now, and no event would come for
// them.
bool Session::pump_relay() {
  if (!may_pump()) return false;
  const bool client_could = client_may_advance(), broker_could = broker_may_advance();
  const bool had_place = relay_->has_place_for_upload();
  relay_->pump();
  if (!had_place && relay_->has_place_for_upload()) stalled_ = false;
  return (!client_could && client_may_advance()) || (!broker_could && broker_may_advance());
}

bool Session::run_client() {
  bool progress = false;
  Link& link = *client_;
  while (!finished_ && client_may_advance()) {
    if (stage_ == Stage::running && client_leg_ == Leg::open && farewell_.empty()) {
      const size_t taken_bytes = relay_->on_whole_publishes(link.unread());
      link.consume(taken_bytes);
      if (taken_bytes != 0) progress = true;
    }
    size_t frame_max = stage_ == Stage::handshake ? handshake_frame_bytes_max : state_.frame_bytes_max;
    SplitResult split = split_frame(link.unread(), frame_max);
    if (split.status == Split::need_more) {
      link.expect(split.need_bytes);
      break;
    }
    if (split.status == Split::error) {
      close_by_bellhop(501, std::string("FRAME_ERROR - ") + split.problem, 0);
      // No frame can be told from the next any more. What still comes is read and dropped, so that the client
      // can finish its write and read why it was closed; a close-ok cannot be awaited.
      wait_for_client_end();
      link.consume(link.unread().size());
      break;
    }
    if (!on_client_frame(split.frame)) {
      stalled_ = true;
      break;
    }
    if (link.is_closed()) break;
    link.consume(split.frame.raw.size());
    progress = true;
  }
  return progress;
}

bool Session::run_broker() {
  if (broker_ == nullptr) return false;
  bool progress = false;
  Link& link = *broker_;
  while (!finished_ && broker_may_advance()) {
    size_t frame_max = std::max<size_t>(handshake_frame_bytes_max, state_.broker_frame_bytes_max);
    SplitResult split = split_frame(link.unread(), frame_max, broker_header_frame_bytes_max);
    if (split.status == Split::need_more) {
      link.expect(split.need_bytes);
      break;
    }
    if (split.status == Split::error || !on_broker_frame(split.frame)) {
      const bool is_tls =
          stage_ == Stage::handshake && !handshake_->has_begun() && is_tls_alert(link.unread());
      const std::string what = is_tls ? "the broker speaks TLS there: the URL should begin with amqps://"
                                      : "the broker broke the protocol";
      tell_trouble("broker", broker_name_ + what, what,
                   about({{"broker", broker_name_},
                          {"reason", split.status == Split::error ? split.problem : "an unexpected frame"}}),
                   spdlog::level::err);
      end_broker_leg();
      close_by_bellhop(541, "INTERNAL_ERROR - " + what, 0);
      break;
    }
    if (link.is_closed()) break;
    link.consume(split.frame.raw.size());
    progress = true;
  }
  skip_broker_turn();
  return progress;
}

}  // namespace bellhop
