#include "daemon/claims/s3/s3_client.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace bellhop {

namespace {
constexpr uint64_t stall_check_ms = 250;
// One session's small payloads are as many requests as it has transfers; its large ones come in parts, four
// at a time of each. These may take half of the places. A request lasts as long as it has bytes to send, and
// nothing takes its place from it: so who has none gets one, also when large payloads have all the others.
constexpr Shares shares{.all_max = 64, .one_kind_max = 56, .one_line_max = 32, .with_first_places_max = 128};
}  // namespace

// Freed when libuv has let go of it.
struct S3Client::Timer {
  uv_timer_t uv{};
};

// A callback may hold what holds the call.
void S3Client::drop_callbacks(S3Call& call) {
  call.done = nullptr;
  call.before_attempt = nullptr;
  call.doubt = nullptr;
  call.is_transient_too = nullptr;
  call.request.sink = nullptr;
}

S3Client::S3Client(CurlLoop& loop, S3Settings settings, uint32_t retries,
                   std::shared_ptr<S3CredentialsProvider> credentials)
    : loop_(loop),
      settings_(std::move(settings)),
      retries_(retries),
      credentials_(std::move(credentials)),
      random_(static_cast<uint32_t>(std::random_device{}())),
      turns_(shares),
      timer_(new Timer) {
  uv_timer_init(loop.uv(), &timer_->uv);
  timer_->uv.data = this;
  credentials_->watch([this] { pump(); });
}

S3Client::~S3Client() {
  quiet_ = nullptr;
  credentials_->watch(nullptr);
  while (!calls_.empty()) cancel(*calls_.begin());
  timer_->uv.data = timer_;
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_->uv),
           [](uv_handle_t* handle) { delete static_cast<Timer*>(handle->data); });
}

void S3Client::start(const std::shared_ptr<S3Call>& call) {
  calls_.insert(call);
  call->state_ = S3Call::State::queued;
  turns_.push_back(call->owner, call->work, call);
  pump();
}

void S3Client::cancel(const std::shared_ptr<S3Call>& call) {
  if (call->state_ == S3Call::State::over || call->state_ == S3Call::State::fresh) return;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): `call` may be an entry of ours, which goes
  const std::shared_ptr<S3Call> kept = call;
  kept->transfer_.reset();
  leave(kept);
  drop_callbacks(*kept);
  check_quiet();
  pump();
}

// The call's place goes to the next.
void S3Client::leave(const std::shared_ptr<S3Call>& call) {
  if (call->state_ == S3Call::State::running) turns_.ended(call->owner, call->work);
  if (call->state_ == S3Call::State::queued) turns_.erase(call->owner, call->work, call);
  call->state_ = S3Call::State::over;
  calls_.erase(call);
}

void S3Client::pump() {
  if (pumping_) return;  // the loop below goes on with what has changed
  pumping_ = true;
  while (turns_.has_next()) {
    auto credentials = credentials_->now();
    if (!credentials && credentials_->is_coming()) break;
    const std::shared_ptr<S3Call> call = std::move(turns_.take()->job);
    if (credentials)
      run(call, std::move(credentials));
    else
      run_without_credentials(call);
  }
  pumping_ = false;
  arm();
}

void S3Client::run(const std::shared_ptr<S3Call>& call, std::shared_ptr<const S3Credentials> credentials) {
  call->state_ = S3Call::State::running;
  call->attempt_++;
  call->signed_with_ = std::move(credentials);
  if (call->before_attempt) call->before_attempt(call->attempt_);
  call->transfer_ = std::make_unique<S3Transfer>(loop_, settings_, call->signed_with_.get(), call->request,
                                                 [this, weak = std::weak_ptr(call)](S3Answer answer) {
                                                   if (const auto alive = weak.lock())
                                                     ended(alive, std::move(answer));
                                                 });
}

void S3Client::run_without_credentials(const std::shared_ptr<S3Call>& call) {
  call->state_ = S3Call::State::running;
  call->attempt_++;
  S3Answer answer;
  answer.unsent = true;
  answer.transport_error = credentials_->problem();
  ended(call, std::move(answer));
}

// For its credentials, and there may be others.
bool S3Client::is_refused(const S3Call& call, const S3Answer& answer) {
  if (answer.ok()) credentials_->accepted();
  if (call.was_renewed_ || !call.signed_with_ || answer.status < 400 || answer.status >= 500) return false;
  const std::string code = s3_code(answer);
  const bool is_about_them = answer.status == 401 || answer.status == 403 || code == "ExpiredToken" ||
                             code == "ExpiredTokenException" || code == "InvalidToken" ||
                             code == "TokenRefreshRequired" || code == "InvalidAccessKeyId";
  return is_about_them && credentials_->renew(*call.signed_with_);
}

void S3Client::ended(const std::shared_ptr<S3Call>& call, S3Answer answer) {
  call->transfer_.reset();
  // A sink that refuses a piece ends the transfer with CURLE_WRITE_ERROR.
  if (call->doubt && answer.status >= 200 && answer.status < 300 &&
      (answer.code == CURLE_OK || answer.code == CURLE_WRITE_ERROR) && !answer.endless)
    answer.doubt = call->doubt(answer);
  if (std::exchange(call->has_progressed, false)) call->attempt_ = 1;
  if (is_refused(*call, answer)) {
    call->was_renewed_ = true;
    call->attempt_--;
    call->state_ = S3Call::State::queued;
    turns_.ended(call->owner, call->work);
    turns_.push_front(call->owner, call->work, call);
    pump();
    return;
  }
  const bool transient = outcome_of(answer) == S3Outcome::transient ||
                         (!answer.ok() && call->is_transient_too && call->is_transient_too(answer));
  if (transient && answer.sent_all) call->may_have_been_done = true;
  const bool is_asked = call->asks_in_doubt && !answer.doubt.empty();
  if (transient && !call->once && !is_asked && call->attempt_ <= retries_) {
    call->state_ = S3Call::State::waiting;
    turns_.ended(call->owner, call->work);
    call->due_at_ms_ = loop_.now_ms() +
                       std::max<uint64_t>(backoff_.wait_ms(call->attempt_, random_), retry_after_ms(answer));
    pump();
    return;
  }
  leave(call);
  {
    const auto done = std::exchange(call->done, nullptr);
    drop_callbacks(*call);
    if (done) done(std::move(answer));
  }
  // Only now: it may have started another undo, and what it held names an undone key.
  check_quiet();
  pump();
}

void S3Client::after(uint64_t wait_ms, std::function<void()> task) {
  later_.push_back({loop_.now_ms() + wait_ms, std::move(task)});
  arm();
}

void S3Client::after_failure(uint32_t failure, std::function<void()> task) {
  after(backoff_.wait_ms(failure, random_), std::move(task));
}

void S3Client::tick() {
  const uint64_t now = loop_.now_ms();
  std::vector<std::shared_ptr<S3Call>> stalled;
  for (const auto& call : calls_) {
    if (call->transfer_ != nullptr && call->transfer_->is_stalled()) stalled.push_back(call);
    if (call->state_ == S3Call::State::waiting && call->due_at_ms_ <= now) {
      call->state_ = S3Call::State::queued;
      turns_.push_back(call->owner, call->work, call);
    }
  }
  for (const auto& call : stalled) {
    if (call->transfer_ != nullptr) call->transfer_->end_as_stalled();
  }
  std::vector<std::function<void()>> due;
  std::erase_if(later_, [&](Later& each) {
    if (each.at_ms > now) return false;
    due.push_back(std::move(each.task));
    return true;
  });
  for (const auto& task : due) task();
  pump();
}

void S3Client::arm() {
  uint64_t next = std::numeric_limits<uint64_t>::max();
  if (turns_.running() != 0) next = loop_.now_ms() + stall_check_ms;
  for (const auto& call : calls_) {
    if (call->state_ == S3Call::State::waiting) next = std::min(next, call->due_at_ms_);
  }
  for (const Later& each : later_) next = std::min(next, each.at_ms);
  if (next == std::numeric_limits<uint64_t>::max()) {
    uv_timer_stop(&timer_->uv);
    return;
  }
  const uint64_t now = loop_.now_ms();
  uv_timer_start(
      &timer_->uv, [](uv_timer_t* timer) { static_cast<S3Client*>(timer->data)->tick(); },
      next > now ? next - now : 0, 0);
}

void S3Client::finish(uint64_t patience_ms, std::function<void()> quiet) {
  const auto calls = calls_;
  for (const auto& call : calls) {
    if (!call->is_undo) cancel(call);
  }
  quiet_ = std::move(quiet);
  after(patience_ms, [this] {
    if (const auto called = std::exchange(quiet_, nullptr)) called();
  });
  check_quiet();
}

void S3Client::check_quiet() {
  if (!quiet_) return;
  if (std::any_of(calls_.begin(), calls_.end(), [](const auto& call) { return call->is_undo; })) return;
  std::exchange(quiet_, nullptr)();
}

}  // namespace bellhop
