// bellhop's own connection to a broker, through rabbitmq-c, for a thread that may wait. It logs in with the
// configuration's credentials and opens one channel for declarations. One owner, one thread; its calls block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "config/config.h"
#include "daemon/broker/declarations.h"
#include "proto/result.h"

struct amqp_connection_state_t_;  // rabbitmq-c's

namespace bellhop {

class TlsBridge;
class TlsContext;

class ControlConnection {
 public:
  struct Answer {
    enum class Kind { done, refused, lost };
    Kind kind = Kind::done;
    uint16_t code =
        0;  // what the broker closed the channel (refused) or the connection (lost) with; 0: neither
    std::string text;                      // why not, for a person. After a refusal a new channel is open
    uint32_t messages = 0, consumers = 0;  // of a queue that is there
  };

  // Connects to one URL. `tls` and `wake_fd` are as in connect_blocking.
  static Result<std::unique_ptr<ControlConnection>> open(const config::Broker& broker,
                                                         const config::BrokerUrl& url,
                                                         std::shared_ptr<const TlsContext> tls, int wake_fd);
  ~ControlConnection();
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;

  // The descriptor that blocking calls wait on. Another thread may shut it down to end them.
  int fd() const { return fd_; }
  // Call it before anything below. Errors: the broker refuses, or the configuration has no credentials for
  // this URL.
  Result<void> log_in();
  // Why log_in() failed: the broker said no, and not just nothing; it offers no such login; it refuses the
  // virtual host.
  bool was_refused() const { return was_refused_; }
  bool lacks_mechanism() const { return lacks_mechanism_; }
  bool refuses_vhost() const { return refuses_vhost_; }
  const std::string& vhost() const { return vhost_; }
  // Before log_in: another virtual host than the configuration leads to.
  void use_vhost(std::string vhost) { vhost_ = std::move(vhost); }
  // The rest after log_in. Whom the broker takes it for; empty when that was the certificate's to say.
  std::string user() const;
  // As the broker says it: "3.10.8". {0, 0} when it does not.
  std::pair<int, int> broker_version() const;
  // The largest frame that both sides take.
  size_t frame_bytes_max() const;
  // For what moves messages on other channels than this class's own, which is 1 (incoming.h).
  amqp_connection_state_t_* state() const { return connection_; }

  // Declares or binds.
  Answer declare(const Declaration& item);
  // Looks whether an exchange or a queue is there, whatever its properties: refused with 404 when it is not.
  Answer look_for(const Declaration& item);
  // Closes the connection in order.
  void close();

 private:
  ControlConnection(const config::Broker& broker, const config::BrokerUrl& url);
  Answer send(const Declaration& item, bool passive);
  Result<void> open_channel();

  const config::Broker& broker_;
  const config::BrokerUrl& url_;
  std::string vhost_;
  std::unique_ptr<TlsBridge> bridge_;  // outlives the connection
  amqp_connection_state_t_* connection_ = nullptr;
  int fd_ = -1;  // the connection's
  bool was_refused_ = false, lacks_mechanism_ = false, refuses_vhost_ = false;
};

}  // namespace bellhop
