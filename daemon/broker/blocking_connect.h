// A connection to a broker for a thread that may wait: resolved, connected and, for an amqps:// URL, with its
// TLS handshake done. What a session's Connector does without waiting.
#pragma once

#include "config/config.h"
#include "daemon/broker/connector.h"
#include "proto/result.h"

namespace bellhop {

// Each address of `url` in turn, at most `timeout_ms` for one. Gives up at once when `wake_fd` becomes
// readable (only a name lookup under way is waited for). `tls` is null when `url` is no amqps:// one.
Result<Connected> connect_blocking(const config::BrokerUrl& url, const TlsContext* tls, int wake_fd,
                                   uint32_t timeout_ms);

}  // namespace bellhop
