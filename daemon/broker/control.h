// Declares the pipelines with `declare: true` at start. Without any it logs in, and the log says when the
// broker refuses that, or cannot be reached, and when it can. It goes through rabbitmq-c, on a thread of its
// own that exists only if there are credentials, over one connection that is closed afterwards. Sessions do
// not wait for it.
//
//     connect ─► log in ─► declare one after the other ─► done
//        ▲          │            ├─ there with other arguments (406): one warning, used as it is, the next
//        one │          │            ├─ refused (403 ...): logged, not tried again, the next one └─ pause
//        ◄─┴────────────┴─ connection lost: what is left again
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "config/config.h"
#include "daemon/broker/declarations.h"
#include "daemon/ops/file_descriptor.h"
#include "proto/result.h"

namespace bellhop {

class ControlConnection;
class TlsContext;

// What bellhop's own looks at the broker last found.
enum class BrokerSeen : uint8_t { reached, away, refuses };

class Control {
 public:
  using Saw = std::function<void(BrokerSeen)>;  // called on its thread; empty: nobody wants to know

  // Starts the thread if there are credentials or a client certificate; else a pipeline that should be
  // declared gets a warning. Declaring is tried again with backoff until the broker has answered it all; a
  // login alone until a broker has answered. `tls` is null when no URL is an amqps:// URL.
  Control(std::shared_ptr<const config::Config> config, std::shared_ptr<const TlsContext> tls, Saw saw = {});
  // stop().
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Wakes the thread wherever it waits, and joins it. Only a name lookup under way is waited for.
  void stop();
  // Waits until there is nothing more to do, but no longer than `timeout_ms`. True: there is nothing more,
  // also after stop(). A login alone is nothing to wait for once it was tried.
  bool wait_until_done(uint32_t timeout_ms);

 private:
  void run(std::deque<Declaration> left);
  void log_in_once_answered();
  bool try_login();
  void say_not_let_in(const config::BrokerUrl& url, const ControlConnection* refused,
                      const std::string& reason);
  void saw(BrokerSeen seen) const;
  void say_done();
  Result<void> try_url(const config::BrokerUrl& url, std::deque<Declaration>& left);
  Result<void> declare_all(ControlConnection& connection, const config::BrokerUrl& url,
                           std::deque<Declaration>& left);
  bool lend_to_stop(int fd);
  bool pause(uint32_t ms);

  std::shared_ptr<const config::Config> config_;
  std::shared_ptr<const TlsContext> tls_;
  const Saw saw_;
  FileDescriptor wake_;  // an eventfd, readable once stop() was called: wakes a connect
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // under the lock
  bool done_ = true;       // under the lock
  int broker_fd_ = -1;     // under the lock; stop() shuts it down, which wakes a blocking call of rabbitmq-c
  std::set<std::string> told_;  // its thread: why a login failed, each cause once
  std::thread thread_;
};

}  // namespace bellhop
