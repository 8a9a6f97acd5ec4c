#include "daemon/door/amqp/session/handshake.h"

#include <algorithm>

#include "daemon/ops/trouble.h"
#include "proto/table.h"

namespace bellhop {

using namespace proto;

namespace {

// A session's buffers hold whole frames, so what may be negotiated has a bound.
constexpr uint32_t frame_bytes_offer_max = 1024 * 1024;
constexpr uint32_t frame_bytes_offer_default = 128 * 1024;

std::string too_high(const char* what, uint64_t chosen, uint64_t offered) {
  std::string shown = std::to_string(chosen) + (chosen == 0 ? " (no limit)" : "");
  return std::string("NOT_ALLOWED - negotiated ") + what + " = " + shown +
         " is higher than the maximum allowed value (" + std::to_string(offered) + ")";
}

// What the client calls its connection, else what it is. Empty: it says neither.
std::string_view client_name(Bytes properties) {
  if (properties.size() < 4) return {};
  std::string_view product;
  TableCursor cursor(properties.subspan(4));
  while (const auto field = cursor.next()) {
    if (field->name == "connection_name") return field_string(*field).value_or(std::string_view{});
    if (field->name == "product") product = field_string(*field).value_or(std::string_view{});
  }
  return product;
}

}  // namespace

Login login_of(const std::string& mechanism, const std::string& response) {
  Login login;
  if (mechanism == "PLAIN") {
    // [authorization] NUL user NUL password
    size_t first = response.find('\0');
    size_t second = first == std::string::npos ? first : response.find('\0', first + 1);
    if (second == std::string::npos) return login;
    login.user = response.substr(first + 1, second - first - 1);
    login.password = response.substr(second + 1);
  } else if (mechanism == "AMQPLAIN") {
    TableCursor cursor(as_bytes(response));
    while (auto field = cursor.next()) {
      auto text = field_string(*field);
      if (text && field->name == "LOGIN") login.user = *text;
      if (text && field->name == "PASSWORD") login.password = *text;
    }
  }
  return login;
}

void Handshake::unexpected(const Frame& frame, const char* from) {
  uint32_t number = method_number(frame.payload);
  host_.close_connection(503,
                         std::string("COMMAND_INVALID - method ") + std::to_string(number >> 16) + "." +
                             std::to_string(number & 0xFFFF) + " from " + from +
                             " is out of order in the handshake",
                         number);
}

void Handshake::on_broker(const Frame& frame) {
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  if (number == method::connection_start && step_ == Step::start) {
    if (auto mechanisms = decode_start_mechanisms(frame.payload)) mechanisms_ = mechanisms.value();
    to_client_.borrow(frame.raw);
    step_ = Step::start_ok;
  } else if (number == method::connection_secure && step_ == Step::tune && passes_on_) {
    to_client_.borrow(frame.raw);
    challenged_ = true;
  } else if (number == method::connection_tune && step_ == Step::tune) {
    auto tune = decode_tune(frame.payload);
    if (!tune) return unexpected(frame, "the broker");
    on_tune(tune.value());
  } else if (number == method::connection_open_ok && step_ == Step::open_ok) {
    to_client_.borrow(frame.raw);
    step_ = Step::done;
  } else {
    unexpected(frame, "the broker");
  }
}

void Handshake::on_client(const Frame& frame) {
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  if (number == method::connection_start_ok && step_ == Step::start_ok) {
    on_start_ok(frame);
  } else if (number == method::connection_secure_ok && challenged_) {
    to_broker_.borrow(frame.raw);
    challenged_ = false;
  } else if (number == method::connection_tune_ok && step_ == Step::tune_ok) {
    auto tune = decode_tune(frame.payload);
    if (!tune) return unexpected(frame, "the client");
    on_tune_ok(tune.value());
  } else if (number == method::connection_open && step_ == Step::open) {
    on_open(frame);
  } else {
    unexpected(frame, "the client");
  }
}

void Handshake::on_start_ok(const Frame& frame) {
  auto decoded = decode_start_ok(frame.payload);
  if (!decoded) {
    host_.close_connection(502, "SYNTAX_ERROR - connection.start-ok: " + decoded.error(),
                           method::connection_start_ok);
    return;
  }
  StartOk& start_ok = decoded.value();
  state_.meter.set_client(client_name(start_ok.client_properties));
  Login login = login_of(start_ok.mechanism, start_ok.response);
  client_user_ = login.user;
  if (!check_client(start_ok)) return;
  const config::Broker& broker = state_.config().broker;
  if (broker.has_credentials()) {
    const std::string& user = broker.username_for(url_);
    const std::string& password = broker.password_for(url_);
    state_.broker_user = user;
    state_.has_own_login = true;
    log_in(start_ok, "PLAIN", std::string(1, '\0') + user + std::string(1, '\0') + password);
  } else if (broker.has_certificate_login(url_) && offers("EXTERNAL")) {
    // The broker derives the user from the certificate by rules of its own, so broker_user stays unknown.
    log_in(start_ok, "EXTERNAL", "");
  } else {
    passes_on_ = true;
    state_.broker_user = login.user;
    to_broker_.borrow(frame.raw);
    step_ = Step::tune;
  }
}

bool Handshake::offers(const std::string& mechanism) const {
  return (" " + mechanisms_ + " ").find(" " + mechanism + " ") != std::string::npos;
}

// As bellhop itself, with the client's other properties.
void Handshake::log_in(StartOk& start_ok, const std::string& mechanism, const std::string& response) {
  if (!offers(mechanism)) {
    tell_trouble("login", url_.shown, "the broker does not offer the login that bellhop's credentials need",
                 state_.who({{"broker", url_.shown}, {"login", mechanism}, {"offered", mechanisms_}}),
                 spdlog::level::err);
    host_.close_connection(541, "INTERNAL_ERROR - the broker offers no " + mechanism +
                                    " login, and bellhop's credentials need it");
    return;
  }
  start_ok.mechanism = mechanism;
  start_ok.response = response;
  put_start_ok(to_broker_.tail(), start_ok);
  step_ = Step::tune;
}

// ARCHITECTURE.md, "Who may log in": on TCP the client's credentials are checked against `users`; on a Unix
// socket the peer check was made at accept.
bool Handshake::check_client(const StartOk& start_ok) {
  if (tcp_ == nullptr || tcp_->users.empty()) return true;
  Login login = login_of(start_ok.mechanism, start_ok.response);
  auto known = tcp_->users.find(login.user);
  // Compared without an early end, so that time does not tell how much of a guess was right.
  unsigned differs = known == tcp_->users.end() || known->second.size() != login.password.size() ? 1U : 0U;
  for (size_t at = 0; differs == 0 && at < login.password.size(); ++at) {
    differs |= static_cast<unsigned>(known->second[at] ^ login.password[at]) & 0xFFU;
  }
  if (differs == 0) return true;
  tell_trouble("login refused", login.user, "login refused",
               state_.who({{"user", login.user}, {"mechanism", start_ok.mechanism}}));
  host_.close_connection(
      403, "ACCESS_REFUSED - Login was refused using authentication mechanism " + start_ok.mechanism +
               " by bellhop: user and password are not among this TCP listener's own (listen[].users)");
  return false;
}

void Handshake::on_tune(const Tune& offered) {
  const bool has_limit = offered.frame_max_bytes != 0;
  state_.broker_frame_bytes_max =
      has_limit ? std::min(offered.frame_max_bytes, frame_bytes_offer_max) : frame_bytes_offer_max;
  offered_.frame_max_bytes = has_limit ? state_.broker_frame_bytes_max : frame_bytes_offer_default;
  // bellhop keeps one of the broker's channels for itself; 0 means 65535. If the broker allows only one, the
  // client gets it.
  uint16_t broker_max = offered.channel_max == 0 ? uint16_t{65535} : offered.channel_max;
  offered_.channel_max = broker_max == 1 ? uint16_t{1} : static_cast<uint16_t>(broker_max - 1);
  offered_.channel_max = std::min(offered_.channel_max, state_.config().limits.channels_per_session);
  state_.private_channel_id = broker_max == 1 ? uint16_t{0} : uint16_t{1};
  broker_heartbeat_offer_s_ = offered.heartbeat_s;
  offered_.heartbeat_s =
      static_cast<uint16_t>(std::min<uint32_t>(state_.config().broker.heartbeat_ms / 1000, 65535));
  put_tune(to_client_.tail(), method::connection_tune, offered_);
  step_ = Step::tune_ok;
}

void Handshake::on_tune_ok(const Tune& chosen) {
  // The same rule as RabbitMQ's: a value above what was offered, or "no limit" where there is one, is not
  // allowed.
  if (chosen.channel_max == 0 || chosen.channel_max > offered_.channel_max) {
    host_.close_connection(530, too_high("channel_max", chosen.channel_max, offered_.channel_max),
                           method::connection_tune_ok);
    return;
  }
  if (chosen.frame_max_bytes == 0 || chosen.frame_max_bytes > offered_.frame_max_bytes) {
    host_.close_connection(530, too_high("frame_max", chosen.frame_max_bytes, offered_.frame_max_bytes),
                           method::connection_tune_ok);
    return;
  }
  if (chosen.frame_max_bytes < frame_min_bytes) {
    host_.close_connection(530,
                           "NOT_ALLOWED - negotiated frame_max = " + std::to_string(chosen.frame_max_bytes) +
                               " is lower than the minimum allowed value (" +
                               std::to_string(frame_min_bytes) + ")",
                           method::connection_tune_ok);
    return;
  }
  state_.client_channel_max = chosen.channel_max;
  state_.frame_bytes_max = chosen.frame_max_bytes;
  if (state_.frame_bytes_max < state_.broker_frame_bytes_max)
    state_.relayed_body_bytes_max = state_.frame_bytes_max - frame_overhead_bytes;
  client_heartbeat_s_ = chosen.heartbeat_s;
  // 0 on either side of a leg turns that leg's heartbeats off only when it is bellhop's own choice.
  uint16_t own_s = offered_.heartbeat_s;
  broker_heartbeat_s_ =
      own_s == 0 || broker_heartbeat_offer_s_ == 0 ? own_s : std::min(own_s, broker_heartbeat_offer_s_);
  Tune up;
  up.channel_max = chosen.channel_max;
  if (state_.private_channel_id != 0) {
    up.channel_max++;
    state_.private_channel_id = up.channel_max;
  }
  up.frame_max_bytes = state_.broker_frame_bytes_max;
  up.heartbeat_s = broker_heartbeat_s_;
  put_tune(to_broker_.tail(), method::connection_tune_ok, up);
  step_ = Step::open;
}

void Handshake::on_open(const Frame& frame) {
  auto asked = decode_open(frame.payload);
  if (!asked) {
    host_.close_connection(502, "SYNTAX_ERROR - connection.open: " + asked.error(), method::connection_open);
    return;
  }
  const config::Broker& broker = state_.config().broker;
  vhost_ = asked.value();
  if (!broker.vhosts.empty() &&
      std::find(broker.vhosts.begin(), broker.vhosts.end(), vhost_) == broker.vhosts.end()) {
    host_.close_connection(
        530, "NOT_ALLOWED - access to vhost '" + vhost_ + "' refused by bellhop's broker.vhosts",
        method::connection_open);
    return;
  }
  if (url_.vhost) {
    vhost_ = *url_.vhost;
  } else if (auto mapped = broker.vhost_map.find(vhost_); mapped != broker.vhost_map.end()) {
    vhost_ = mapped->second;
  }
  put_open(to_broker_.tail(), vhost_);
  step_ = Step::open_ok;
}

}  // namespace bellhop
