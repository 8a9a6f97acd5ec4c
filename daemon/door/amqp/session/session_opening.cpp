// The opening of a session: what the client says first, the connection to a broker, the end of the handshake.
#include <algorithm>
#include <utility>

#include "daemon/door/amqp/session/http_refusal.h"
#include "daemon/door/amqp/session/session.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

using namespace proto;

void Session::greet() {
  Bytes unread = client_->unread();
  if (unread.size() < 4) return;
  if (is_http(unread)) {
    client_->outbox().append(http_refusal());
    end_unserved("an HTTP request");
    return;
  }
  if (unread.size() < sizeof protocol_header) return;
  const auto begins_with = [unread](const uint8_t(&header)[8]) {
    return std::equal(std::begin(header), std::end(header), unread.begin());
  };
  if (!begins_with(protocol_header) && !begins_with(protocol_header_0_9)) {
    // Specification section 4.2.2: answered with the protocol that is spoken here.
    client_->outbox().append(protocol_header);
    end_unserved("another protocol than AMQP 0-9-1");
    return;
  }
  client_->consume(sizeof protocol_header);
  if (!refusal_.empty()) {
    put_close(client_->outbox().tail(), method::connection_close, 0, {530, refusal_, 0, 0});
    end_unserved(refusal_);
    return;
  }
  stage_ = Stage::connecting;
  connector_ = std::make_unique<Connector>(&loop_, state_.config().broker, state_.snapshot->tls,
                                           shared_.nodes, [this](Result<Connected> result) {
                                             connected(std::move(result));
                                             turn();
                                           });
}

void Session::connected(Result<Connected> result) {
  connector_.reset();
  if (finished_) return;
  shared_.meter->connected_to_broker(static_cast<bool>(result));
  if (!result) {
    state_.meter.ends(SessionEnd::no_broker);
    end_reason_ = result.error();
    tell_trouble(trouble_no_broker, "", "session gets no broker", about({{"reason", result.error()}}),
                 spdlog::level::err);
    end_client_leg();
    return;
  }
  broker_ = std::make_unique<Link>(std::move(result.value().fd), *this, std::move(result.value().tls),
                                   result.value().answer);
  broker_leg_ = Leg::open;
  if (auto started = broker_->start(&loop_); !started) {
    end_reason_ = started.error();
    finish();
    return;
  }
  handshake_ = std::make_unique<Handshake>(state_, *this, client_->outbox(), broker_->outbox(),
                                           *result.value().url, tcp_);
  end_reason_.clear();
  stage_ = Stage::handshake;
  broker_name_ = result.value().url->shown;
}

void Session::handshake_done() {
  stage_ = Stage::running;
  client_deadline_ms_ = 0;
  state_.meter.at_broker = true;
  shared_.meter->answered_login(true);
  client_heartbeat_.start(handshake_->client_heartbeat_s(), now_ms());
  broker_heartbeat_.start(handshake_->broker_heartbeat_s(), now_ms());
  relay_ = std::make_unique<Relay>(state_, *this, memory_, client_->outbox(), broker_->outbox(), mailbox_);
  log_info("session opened", about({if_known("user", handshake_->client_user()),
                                    {"broker", broker_name_},
                                    {"vhost", handshake_->vhost()},
                                    if_known("broker_user", state_.broker_user)}));
  if (has_trouble())
    trouble_over(trouble_no_broker, "", "a broker reached again", {{"broker", broker_name_}});
  schedule_tick(0);
}

// The client was told why, or sees its socket close.
void Session::end_unserved(std::string reason) {
  end_reason_ = std::move(reason);
  state_.meter.ends(SessionEnd::refused);
  wait_for_client_end();
  stage_ = Stage::ending;
}

}  // namespace bellhop
