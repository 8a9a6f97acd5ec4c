// Opens a session's connection to a broker: each URL in turn, each of its addresses, round after round with a
// growing pause, until one answers or the time is up.
//
//     start ─► URL i ─► resolve ─► address ─► connected ─► (TLS) ─────► done(Connected)
//               ▲           └──────────┴─ failed ─► next address, next URL
//               └─ pause 100 ms .. 2 s ◄─ all URLs failed            time up ─► done(Error)
//
// 1. The first round begins at the URL that worked last (for any session), so a dead first broker does not
// cost each session a timeout.
// 2. An attempt gets a share of the whole time, so that one silent broker leaves time for the others.
// 3. A name is resolved on libuv's thread pool; an IP literal or a Unix socket's path is not.
// 4. A TLS handshake belongs to its attempt: when it fails, or takes too long, the next address has its turn.
// One thread: the loop's.
#pragma once

#include <uv.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "config/config.h"
#include "daemon/broker/address.h"
#include "daemon/broker/tls_stream.h"
#include "proto/result.h"

namespace bellhop {

struct Connected {
  int fd;  // non-blocking; the receiver's to close
  const config::BrokerUrl* url;
  std::unique_ptr<TlsStream> tls;  // for an amqps:// URL, its handshake done
};

class Connector {
 public:
  using Done = std::function<void(Result<Connected>)>;

  // Begins at once. `done` is called once, from the loop, never from here; it may destroy the connector.
  // `broker` and `preferred_url` (shared by all sessions) must outlive the connector, `broker` and `tls` also
  // what `done` was given. `tls` is null when no URL is an amqps:// one.
  // `after_ms` holds back the first attempt, `deadline_ms` (the loop's time) replaces the configured timeout:
  // for a search that goes on.
  Connector(uv_loop_t* loop, const config::Broker& broker, const TlsContext* tls,
            std::atomic<size_t>& preferred_url, Done done, uint64_t after_ms = 0,
            std::optional<uint64_t> deadline_ms = std::nullopt);
  // At any time; `done` is not called any more. libuv's handles and a lookup under way are let go by their
  // own callbacks, so the loop has to run on until they came (a name server that does not answer can take its
  // own time).
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
  void failed(std::string reason);
  void try_attempt();
  std::string attempt_address() const { return addresses_[address_index_ - 1].text(); }
  int end_attempt();
  void forget_lookup();
  void arm(uint64_t after_ms);
  void succeed(int fd, std::unique_ptr<TlsStream> tls);
  std::string failures() const;
  void give_up();

  uv_loop_t* loop_;
  const config::Broker& broker_;
  const TlsContext* tls_;
  std::atomic<size_t>& preferred_url_;
  Done done_;
  uint64_t deadline_ms_;
  uint64_t attempt_ms_max_;
  uint64_t pause_ms_;
  std::minstd_rand random_;

  Timer* timer_ = nullptr;
  Lookup* lookup_ = nullptr;
  Attempt* attempt_ = nullptr;
  size_t url_index_ = 0;
  size_t tried_in_round_ = 0;
  bool resolved_ = false;  // addresses_ are those of url()
  std::vector<Address> addresses_;
  size_t address_index_ = 0;
  std::vector<std::string> last_failure_;  // by URL
};

}  // namespace bellhop
