// Declares the pipelines with `declare: true` at start. Without any it logs in once, and the log says when
// the broker refuses that. It goes through rabbitmq-c, on a thread of its own that exists only if there are
// credentials, over one connection that is closed afterwards. Sessions do not wait for it.
//
//     connect ─► log in ─► declare one after the other ─► done
//        ▲          │            ├─ there with other arguments (406): one warning, used as it is, the next
//        one │          │            ├─ refused (403 ...): logged, not tried again, the next one └─ pause
//        ◄─┴────────────┴─ connection lost: what is left again
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "config/config.h"
#include "daemon/broker/declarations.h"
#include "daemon/ops/file_descriptor.h"
#include "proto/result.h"

namespace bellhop {

class ControlConnection;
class TlsContext;

class Control {
 public:
  // Starts the thread if there are credentials or a client certificate; else a pipeline that should be
  // declared gets a warning. Declaring is tried again with backoff until the broker has answered it all; a
  // login alone is tried once. `tls` is null when no URL is an amqps:// URL.
  Control(std::shared_ptr<const config::Config> config, std::shared_ptr<const TlsContext> tls);
  // stop().
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Wakes the thread wherever it waits, and joins it. Only a name lookup under way is waited for.
  void stop();
  // Waits until there is nothing more to do, but no longer than `timeout_ms`. True: there is nothing more,
  // also after stop().
  bool wait_until_done(uint32_t timeout_ms);

 private:
  void run(std::deque<Declaration> left);
  void try_login();
  Result<void> try_url(const config::BrokerUrl& url, std::deque<Declaration>& left);
  Result<void> declare_all(ControlConnection& connection, const config::BrokerUrl& url,
                           std::deque<Declaration>& left);
  bool lend_to_stop(int fd);
  bool pause(uint32_t ms);

  std::shared_ptr<const config::Config> config_;
  std::shared_ptr<const TlsContext> tls_;
  FileDescriptor wake_;  // an eventfd, readable once stop() was called: wakes a connect
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // under the lock
  bool done_ = true;       // under the lock
  int broker_fd_ = -1;     // under the lock; stop() shuts it down, which wakes a blocking call of rabbitmq-c
  std::thread thread_;
};

}  // namespace bellhop
