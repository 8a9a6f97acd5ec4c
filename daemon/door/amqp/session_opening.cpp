// The opening of a session: what the client says first, the connection to a broker, the end of the handshake.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "daemon/broker/private_channel.h"
#include "daemon/door/amqp/http_refusal.h"
#include "daemon/door/amqp/session.h"
#include "daemon/ops/trouble.h"

namespace bellhop {

using namespace proto;

void Session::greet() {
  Bytes unread = core_->client->unread();
  if (unread.size() < 4) return;
  if (is_http(unread)) {
    core_->client->outbox().append(http_refusal());
    end_unserved("an HTTP request");
    return;
  }
  if (unread.size() < sizeof protocol_header) return;
  const auto begins_with = [unread](const uint8_t(&header)[8]) {
    return std::equal(std::begin(header), std::end(header), unread.begin());
  };
  if (!begins_with(protocol_header) && !begins_with(protocol_header_0_9)) {
    // Specification section 4.2.2: answered with the protocol that is spoken here.
    core_->client->outbox().append(protocol_header);
    end_unserved("another protocol than AMQP 0-9-1");
    return;
  }
  core_->client->consume(sizeof protocol_header);
  if (!refusal_.empty()) {
    put_close(core_->client->outbox().tail(), method::connection_close, 0, {530, refusal_, 0, 0});
    end_unserved(refusal_);
    return;
  }
  stage_ = Stage::connecting;
  connector_ = std::make_unique<Connector>(&loop_, core_->config.broker, shared_.tls.get(), shared_.nodes,
                                           [this](Result<Connected> result) {
                                             connected(std::move(result));
                                             turn();
                                           });
}

void Session::connected(Result<Connected> result) {
  connector_.reset();
  if (finished_) return;
  if (!result) {
    end_reason_ = result.error();
    tell_trouble(trouble_no_broker, "", fmt::format("session={} peer=\"{}\" {}", id_, peer_, result.error()),
                 spdlog::level::err);
    end_client_leg();
    return;
  }
  core_->broker = std::make_unique<Link>(std::move(result.value().fd), *this, std::move(result.value().tls),
                                         result.value().answer);
  broker_leg_ = Leg::open;
  if (auto started = core_->broker->start(&loop_); !started) {
    end_reason_ = started.error();
    finish();
    return;
  }
  handshake_ = std::make_unique<Handshake>(*core_, *result.value().url, tcp_);
  end_reason_.clear();
  stage_ = Stage::handshake;
  broker_name_ = result.value().url->shown;
}

void Session::handshake_done() {
  stage_ = Stage::running;
  client_deadline_ms_ = 0;
  client_heartbeat_.start(handshake_->client_heartbeat_s(), core_->now_ms());
  broker_heartbeat_.start(handshake_->broker_heartbeat_s(), core_->now_ms());
  if (core_->private_channel_id != 0) {
    core_->private_channel =
        std::make_unique<PrivateChannel>(core_->private_channel_id, core_->broker->outbox());
  }
  spdlog::info("session={} opened peer=\"{}\" user={} broker={} vhost={} broker_user={}", id_, peer_,
               handshake_->client_user(), broker_name_, handshake_->vhost(), core_->broker_user);
  if (has_trouble()) trouble_over(trouble_no_broker, "", "a broker reached again broker=" + broker_name_);
  schedule_tick(0);
}

// The client was told why, or sees its socket close.
void Session::end_unserved(std::string reason) {
  end_reason_ = std::move(reason);
  wait_for_client_end();
  stage_ = Stage::ending;
}

}  // namespace bellhop
