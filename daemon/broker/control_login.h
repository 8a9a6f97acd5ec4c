// A command's own connection to the broker: with the configuration's credentials, to the first broker of the
// list that lets it in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/broker/control_connection.h"
#include "daemon/wire/tls_context.h"

namespace bellhop {

struct BrokerLogin {
  std::shared_ptr<const TlsContext> tls;
  std::unique_ptr<ControlConnection> connection;  // null: nobody let it in, `problems` say why
  std::string shown_url;
  std::vector<std::string> problems;  // of the brokers that were tried before, one a line
  bool has_no_credentials = false;    // the configuration has none: nothing was tried
};

// `config` must outlive it. `vhost` is empty for the one that the configuration leads to. Waits.
BrokerLogin log_in_to_broker(const config::Broker& config, const std::string& vhost);

}  // namespace bellhop
