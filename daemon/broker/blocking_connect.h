// Connects to a broker for a thread that may wait: name resolved, socket connected and, for an amqps:// URL,
// the TLS handshake done. A session's Connector does the same without waiting.
#pragma once

#include "config/config.h"
#include "daemon/broker/connector.h"
#include "proto/result.h"

namespace bellhop {

// Blocking. Tries each address of `url` in turn, each for at most `timeout_ms`. Gives up at once when
// `wake_fd` becomes readable; only a name lookup under way is waited for. `wake_fd` -1: nothing wakes it.
// `tls` is null when `url` is no amqps:// URL. Error: why the last address failed.
Result<Connected> connect_blocking(const config::BrokerUrl& url, std::shared_ptr<const TlsContext> tls,
                                   int wake_fd, uint32_t timeout_ms);

}  // namespace bellhop
