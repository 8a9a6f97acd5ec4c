// What bellhop itself says to a broker at start: the pipelines with `declare: true`. Through rabbitmq-c, on a
// thread of its own that exists only if there is such a pipeline, over one connection that is closed
// afterwards. Sessions do not wait for it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "config/config.h"

namespace bellhop {

// One idempotent declaration, with what depends on it being in the same list after it.
struct Declaration {
  enum class Kind { exchange, queue, binding };
  Kind kind;
  std::string name;      // the exchange (durable, direct) or queue (durable); for a binding the queue
  std::string exchange;  // of a binding
  std::string key;       // of a binding
  std::vector<std::pair<std::string, std::string>> arguments;  // of a queue; all are strings

  std::string text() const;  // for logs: `queue fulfilment.validate`
};

// wire-contract sections 3 and 4: exchange P; for each step s the quorum queue P.s bound with key s, its
// P.s.dlq and P.s.parked, and the two exchanges acemq.dlx and acemq.retry that tie them together. Pure.
std::vector<Declaration> declarations_of(const config::Pipeline& pipeline);

class Control {
 public:
  // Starts the thread if there is something to declare and the configuration has credentials to do it with;
  // without credentials it logs a warning. Retries with backoff until a broker was reached and every item was
  // answered.
  explicit Control(std::shared_ptr<const config::Config> config);
  // stop().
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Main thread. Wakes the thread wherever it waits, and joins it. (A name lookup under way is waited for.)
  void stop();
  // True once there is nothing (more) to do. Waits at most so long.
  bool wait_until_done(uint32_t timeout_ms);

 private:
  void run();
  bool declare_once(std::vector<Declaration>& left, std::string& reason);

  std::shared_ptr<const config::Config> config_;
  std::thread thread_;
  int wake_fd_ = -1;  // an eventfd, readable once stop was called
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // under the lock
  bool done_ = false;      // under the lock
  int broker_fd_ = -1;     // under the lock; shut down by stop() to wake a blocking call of rabbitmq-c
};

}  // namespace bellhop
