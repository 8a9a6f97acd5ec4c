// A broker's URL:
//
//     amqp://[user:password@]host[:port][/vhost]         TCP, port 5672
//     amqps://[user:password@]host[:port][/vhost]        TLS, port 5671
//     amqp+unix://[user:password@]/path[?vhost=vhost]    a Unix socket
//
// bellhop parses it itself, because rabbitmq-c's parser takes a trailing `/` for the empty virtual host.
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"
#include "proto/result.h"

namespace bellhop::config {

inline constexpr const char* broker_url_form =
    "amqp://[user:password@]host[:port][/vhost], amqps://... likewise, "
    "amqp+unix://[user:password@]/path[?vhost=vhost]";

// User, password, vhost and path are percent-decoded. `/` alone names no vhost; `/%2F` and `?vhost=/` name
// "/". Errors continue the key's name and never show the URL, because it may hold a password.
Result<BrokerUrl> parse_broker_url(std::string_view text);

}  // namespace bellhop::config
