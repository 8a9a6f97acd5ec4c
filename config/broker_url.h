// A broker's URL: amqp://[user:password@]host[:port][/vhost]. Parsed here because rabbitmq-c's parser takes a
// trailing `/` for the empty virtual host.
#pragma once

#include <string>
#include <string_view>

#include "config/config.h"
#include "proto/result.h"

namespace bellhop::config {

inline constexpr const char* broker_url_form = "amqp://[user:password@]host[:port][/vhost]";

// User, password and vhost are percent-decoded. `/` alone names no vhost; `/%2F` names "/". Errors read on
// from the key's name and never show the URL: it may hold a password.
Result<BrokerUrl> parse_broker_url(std::string_view text);

}  // namespace bellhop::config
