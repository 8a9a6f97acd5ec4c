// A broker's URL:
//
//     amqp://[user:password@]host[:port][/vhost]         TCP, port 5672
//     amqps://[user:password@]host[:port][/vhost]        TLS, port 5671
//     amqp+unix://[user:password@]/path[?vhost=vhost]    a Unix socket
//
// Parsed here because rabbitmq-c's parser takes a trailing `/` for the empty virtual host.
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"
#include "proto/result.h"

namespace bellhop::config {

inline constexpr const char* broker_url_form =
    "amqp://[user:password@]host[:port][/vhost], amqps://... likewise, "
    "amqp+unix://[user:password@]/path[?vhost=vhost]";

// User, password, vhost and path are percent-decoded. `/` alone names no vhost; `/%2F` names "/", as does
// `?vhost=/`. Errors read on from the key's name and never show the URL: it may hold a password.
Result<BrokerUrl> parse_broker_url(std::string_view text);

}  // namespace bellhop::config
