// Makes S3 requests dependable: repeats attempts with backoff while the failure is one that passes, bounds
// how many run at one time, and ends those that stand still. Sessions and kinds of work take turns for the
// places (turns.h). An attempt that waits for its time has no place.
//
//   start ─► queued ─► running ─┬─ ok, or a failure that lasts ──────► done
//               ▲               └─ transient, attempts left ─► waiting ─┐
//               └──────────────── backoff, or Retry-After ◄────────────┘
//
// Queued requests wait for credentials that are coming. If none come, that is a failed attempt of each
// request. A request that was refused for its credentials is made once again, if there are others.
//
// One thread: the store's.
#pragma once

#include <uv.h>

#include <functional>
#include <memory>
#include <random>
#include <set>

#include "daemon/claims/s3/s3_credentials_provider.h"
#include "daemon/claims/s3/s3_transfer.h"
#include "daemon/ops/backoff.h"
#include "daemon/ops/turns.h"

namespace bellhop {

class S3Client;

// One request through all its attempts.
class S3Call {
 public:
  S3Request request;
  // In whose line it waits for its turn. Null: no session waits for it.
  const void* owner = nullptr;
  Work work = Work::upkeep;
  // Called before each attempt (counted from 1). May change the request, so that one that broke off goes on.
  std::function<void(uint32_t attempt)> before_attempt;
  // What an answer with a success status lacks to be believed (s3_doubt.h); empty: nothing.
  std::function<std::string(const S3Answer& answer)> doubt;
  // Whether this request is worth another attempt after a failure that usually is not.
  std::function<bool(const S3Answer& answer)> is_transient_too;
  // Gets the last attempt's answer. The call is over when it runs.
  std::function<void(S3Answer answer)> done;
  bool once = false;                // no second attempt
  bool asks_in_doubt = false;       // an answer in doubt ends the call: who made it looks further
  bool has_progressed = false;      // set by whoever takes the answer: the count of attempts starts anew
  bool is_undo = false;             // a store that ends waits for it
  bool may_have_been_done = false;  // an attempt sent all of its request and got no final answer

  bool has_sent_all() const { return transfer_ != nullptr && transfer_->has_sent_all(); }

 private:
  friend class S3Client;
  enum class State { fresh, queued, running, waiting, over };
  State state_ = State::fresh;
  std::unique_ptr<S3Transfer> transfer_;
  uint32_t attempt_ = 0;
  uint64_t due_at_ms_ = 0;
  std::shared_ptr<const S3Credentials> signed_with_;
  bool was_renewed_ = false;  // made again with other credentials
};

class S3Client {
 public:
  S3Client(CurlLoop& loop, S3Settings settings, uint32_t retries,
           std::shared_ptr<S3CredentialsProvider> credentials);
  ~S3Client();
  S3Client(const S3Client&) = delete;
  S3Client& operator=(const S3Client&) = delete;

  const S3Settings& settings() const { return settings_; }
  CurlLoop& loop() { return loop_; }
  uint32_t retries() const { return retries_; }

  void start(const std::shared_ptr<S3Call>& call);
  // Ends the call. None of its callbacks is called any more.
  void cancel(const std::shared_ptr<S3Call>& call);
  // Calls `task` after `wait_ms`, unless the client ends first.
  void after(uint64_t wait_ms, std::function<void()> task);
  // Likewise, after the pause that is due after the n-th failure (counted from 1).
  void after_failure(uint32_t failure, std::function<void()> task);
  // Cancels all calls but undos. Calls `quiet` when no undo is under way, or `patience_ms` is over.
  void finish(uint64_t patience_ms, std::function<void()> quiet);

 private:
  static void drop_callbacks(S3Call& call);
  void pump();
  void run(const std::shared_ptr<S3Call>& call, std::shared_ptr<const S3Credentials> credentials);
  void run_without_credentials(const std::shared_ptr<S3Call>& call);
  bool is_refused(const S3Call& call, const S3Answer& answer);
  void ended(const std::shared_ptr<S3Call>& call, S3Answer answer);
  void leave(const std::shared_ptr<S3Call>& call);
  void tick();
  void arm();
  void check_quiet();

  CurlLoop& loop_;
  const S3Settings settings_;
  const uint32_t retries_;
  const std::shared_ptr<S3CredentialsProvider> credentials_;
  const Backoff backoff_{100, 10000};
  std::minstd_rand random_;
  std::set<std::shared_ptr<S3Call>> calls_;
  Turns<std::shared_ptr<S3Call>> turns_;
  bool pumping_ = false;
  struct Later {
    uint64_t at_ms;
    std::function<void()> task;
  };
  std::vector<Later> later_;
  std::function<void()> quiet_;
  struct Timer;
  Timer* timer_;
};

}  // namespace bellhop
