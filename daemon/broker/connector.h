// Opens a session's connection to a broker. It tries each URL and each of its addresses, round after round
// with a growing pause, until one says connection.start or the time is up. A node that only accepts the
// connection (it is frozen, or a balancer has no node behind it) does not count as reached.
//
//     start ─► URL i ─► resolve ─► address ─► connected ─► (TLS) ─► connection.start ─► done(Connected)
//               ▲           └──────────┴──────────┴──────────┴─ failed ─► next address, next URL
//               └─ pause up to 2 s (ops/backoff.h) ◄─ all URLs failed                    time up ─►
//               done(Error)
//
// 1. The first round begins at the URL that worked last (for any session), and addresses that failed lately
// come last: a dead or silent node does not cost each session a timeout.
// 2. An attempt gets a share of the whole time, so that one silent node leaves time for the others.
// 3. A name is resolved on libuv's thread pool; an IP literal or a Unix socket's path is not.
// 4. A TLS handshake belongs to its attempt: when it fails, or takes too long, the next address has its turn.
// One thread: the loop's.
#pragma once

#include <uv.h>

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "config/config.h"
#include "daemon/broker/address.h"
#include "daemon/broker/broker_nodes.h"
#include "daemon/ops/file_descriptor.h"
#include "daemon/wire/tls_stream.h"
#include "proto/result.h"

namespace bellhop {

struct Connected {
  FileDescriptor fd;  // non-blocking
  const config::BrokerUrl* url;
  std::unique_ptr<TlsStream> tls;  // for an amqps:// URL, its handshake done
  // The answer to the protocol header that a Connector sent: a whole frame, or bytes that are none.
  Buffer answer{};
};

class Connector {
 public:
  using Done = std::function<void(Result<Connected>)>;

  // Begins at once. The loop calls `done` once, never this constructor; `done` may destroy the connector.
  // `broker` and `nodes` (shared by all sessions) must outlive the connector; `broker` must also outlive what
  // `done` gets. `tls` is null when no URL is an amqps:// URL. Error: no broker was reached
  // within broker.connect_timeout, and what failed at each.
  Connector(uv_loop_t* loop, const config::Broker& broker, std::shared_ptr<const TlsContext> tls,
            BrokerNodes& nodes, Done done);
  // At any time; `done` is not called any more. libuv lets go of handles and of a lookup under way in its own
  // callbacks, so the loop has to run until they came. (A name server that does not answer can take its own
  // time.)
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

 private:
  struct Lookup;
  struct Attempt;
  struct Timer;
  static void on_timer(uv_timer_t* raw);
  static void on_resolved(uv_getaddrinfo_t* request, int status, addrinfo* list);
  static void on_poll(uv_poll_t* poll, int status, int events);

  const config::BrokerUrl& url() const { return broker_.urls[url_index_]; }
  uint64_t left_ms() const;
  void go_on();
  bool begin_attempt(const Address& address);
  void begin_lookup();
  void next_url();
  void pause();
  void node_failed(const std::string& address, const std::string& reason);
  void failed(std::string reason);
  void try_attempt();
  bool receive_answer(std::string& problem);
  std::string what_did_not_come() const;
  void begin_round();
  bool put_failed_last();
  bool postpone_url();
  bool is_only_choice() const;
  std::string attempt_address() const { return addresses_[address_index_ - 1].text(); }
  FileDescriptor end_attempt();
  void forget_lookup();
  void arm(uint64_t after_ms);
  void succeed(FileDescriptor fd, std::unique_ptr<TlsStream> tls, Buffer answer);
  std::string failures() const;
  void give_up();

  uv_loop_t* loop_;
  const config::Broker& broker_;
  std::shared_ptr<const TlsContext> tls_;
  BrokerNodes& nodes_;
  Done done_;
  uint64_t deadline_ms_;
  uint64_t attempt_ms_max_;
  uint32_t failed_rounds_ = 0;
  std::minstd_rand random_;

  Timer* timer_ = nullptr;
  Lookup* lookup_ = nullptr;
  Attempt* attempt_ = nullptr;
  size_t url_index_ = 0;
  std::deque<size_t> round_;     // URLs that this round has still to try, the front one is url_index_
  std::vector<bool> postponed_;  // by URL: it is at the end of this round because all its addresses failed
  bool resolved_ = false;        // addresses_ are those of url()
  std::vector<Address> addresses_;
  size_t address_index_ = 0;
  std::vector<std::string> last_failure_;  // by URL
};

}  // namespace bellhop
