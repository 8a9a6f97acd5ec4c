#include "daemon/door/amqp/session.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "daemon/broker/private_channel.h"
#include "daemon/door/amqp/body_stream.h"
#include "daemon/door/amqp/deliverer.h"
#include "daemon/door/amqp/downward.h"
#include "daemon/door/amqp/fetcher.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/publisher.h"
#include "daemon/door/amqp/releaser.h"
#include "daemon/door/amqp/undeliverable.h"
#include "daemon/door/http_refusal.h"

namespace bellhop {

using namespace proto;

namespace {

constexpr size_t outbox_bytes_high = 256 * 1024;   // more waits for one leg: the other is not read
constexpr uint64_t backlog_bytes_high = 16 << 20;  // more is held for the client: the broker is not read
constexpr size_t handshake_frame_bytes_max = 128 * 1024;
constexpr uint64_t parking_backlog_bytes_high = 4 * backlog_bytes_high;
constexpr uint64_t close_wait_ms = 5000;     // for a close-ok
constexpr uint64_t linger_ms = 5000;         // for a gone client's complete publishes
constexpr uint64_t peer_end_wait_ms = 2000;  // for the end of a socket whose writes we shut
constexpr uint64_t tick_ms_max = 5000;

}  // namespace

Session::Session(Shared& shared, Accepted accepted, uint64_t id, std::string refusal,
                 std::function<void(uint64_t id)> ended)
    : shared_(shared),
      id_(id),
      tcp_(accepted.tcp),
      peer_(std::move(accepted.peer)),
      refusal_(std::move(refusal)),
      ended_(std::move(ended)),
      fd_(accepted.fd) {}

Session::~Session() {
  if (thread_.joinable()) thread_.join();
  if (fd_ >= 0) close(fd_);
}

Result<void> Session::start() {
  if (int error = uv_loop_init(&loop_); error != 0)
    return Error{std::string("cannot open a loop: ") + uv_strerror(error)};
  Result<void> opened = open_loop();
  if (opened) return opened;
  if (mailbox_ != nullptr) mailbox_->close();
  core_.reset();
  uv_run(&loop_, UV_RUN_DEFAULT);
  uv_loop_close(&loop_);
  return opened;
}

Result<void> Session::open_loop() {
  core_ = std::make_unique<SessionCore>(shared_, &loop_, id_);
  auto mailbox = Mailbox::open(&loop_, [this] { turn(); });
  if (!mailbox) return Error{mailbox.error()};
  core_->mailbox = mailbox_ = mailbox.value();
  core_->on_close_connection = [this](uint16_t code, const std::string& text, uint32_t method) {
    close_by_bellhop(code, text, method);
  };
  core_->on_tick_wanted = [this](uint64_t after_ms) { schedule_tick(after_ms); };
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    return Error{std::string("cannot start a thread: ") + error.what()};
  }
  return {};
}

void Session::drain() {
  mailbox_->post([this] {
    core_->draining = true;
    if (stage_ < Stage::running) {
      end_reason_ = "bellhop is shutting down";
      finish();
    }
  });
}

void Session::stop(std::string why) {
  mailbox_->post([this, why = std::move(why)] {
    if (stage_ < Stage::running) {
      end_reason_ = why;
      finish();
    } else {
      close_by_bellhop(320, "CONNECTION_FORCED - " + why, 0);
    }
  });
}

void Session::run() {
  core_->client = std::make_unique<Link>(std::exchange(fd_, -1), *this);
  core_->writer = std::make_unique<ClientWriter>(*core_->client);
  uv_timer_init(&loop_, &timer_);
  timer_.data = this;
  client_deadline_ms_ = uv_now(&loop_) + core_->config.limits.handshake_timeout_ms;
  schedule_tick(core_->config.limits.handshake_timeout_ms);
  if (auto started = core_->client->start(&loop_); !started) {
    end_reason_ = started.error();
    finish();
  }
  uv_run(&loop_, UV_RUN_DEFAULT);
  core_.reset();
  uv_run(&loop_, UV_RUN_DEFAULT);
  uv_loop_close(&loop_);
  ended_(id_);
}

// A turn looks at both links, whichever it was.
void Session::on_bytes(Link&) {
  turn();
}
void Session::on_writable_again(Link&) {
  turn();
}

void Session::on_end(Link& link, std::string reason) {
  if (finished_) return;
  leg_ended(link, reason);
  turn();
}

void Session::leg_ended(Link& link, const std::string& reason) {
  if (&link == core_->client.get()) {
    if (client_leg_ != Leg::open || stage_ < Stage::running) {
      if (end_reason_.empty()) end_reason_ = "client: " + reason;
      end_client_leg();
      return;
    }
    if (end_reason_.empty()) end_reason_ = "client: " + reason;
    core_->client_gone = true;
    linger_deadline_ms_ = core_->now_ms() + linger_ms;
    schedule_tick(linger_ms);
    return;
  }
  broker_ended(reason);
}

// --- greeting and connection ---

void Session::greet() {
  Bytes unread = core_->client->unread();
  if (unread.size() < 4) return;
  if (is_http(unread)) {
    core_->client->outbox().append(http_refusal());
    wait_for_client_end();
    stage_ = Stage::ending;
    end_reason_ = "an HTTP request";
    return;
  }
  if (unread.size() < sizeof protocol_header) return;
  if (!std::equal(std::begin(protocol_header), std::end(protocol_header), unread.begin())) {
    // Specification section 4.2.2: answered with the protocol that is spoken here.
    core_->client->outbox().append(protocol_header);
    wait_for_client_end();
    stage_ = Stage::ending;
    end_reason_ = "another protocol than AMQP 0-9-1";
    return;
  }
  core_->client->consume(sizeof protocol_header);
  if (!refusal_.empty()) {
    put_close(core_->client->outbox().tail(), method::connection_close, 0, {530, refusal_, 0, 0});
    wait_for_client_end();
    stage_ = Stage::ending;
    end_reason_ = refusal_;
    return;
  }
  stage_ = Stage::connecting;
  connector_ = std::make_unique<Connector>(&loop_, core_->config.broker, shared_.preferred_url,
                                           [this](Result<Connected> result) {
                                             connected(std::move(result));
                                             turn();
                                           });
}

void Session::connected(Result<Connected> result) {
  connector_.reset();
  if (finished_) {
    if (result) close(result.value().fd);
    return;
  }
  if (!result) {
    end_reason_ = "no broker: " + result.error();
    spdlog::error("session={} peer=\"{}\" no broker could be reached: {}", id_, peer_, result.error());
    end_client_leg();
    return;
  }
  core_->broker = std::make_unique<Link>(result.value().fd, *this);
  broker_leg_ = Leg::open;
  if (auto started = core_->broker->start(&loop_); !started) {
    end_reason_ = started.error();
    finish();
    return;
  }
  handshake_ = std::make_unique<Handshake>(*core_, *result.value().url, tcp_);
  core_->broker->outbox().append(protocol_header);
  end_reason_.clear();
  stage_ = Stage::handshake;
  broker_name_ = result.value().url->shown;
}

void Session::handshake_done() {
  stage_ = Stage::running;
  client_deadline_ms_ = 0;
  client_heard_ms_ = broker_heard_ms_ = core_->now_ms();
  if (core_->private_channel_id != 0) {
    core_->private_channel =
        std::make_unique<PrivateChannel>(core_->private_channel_id, core_->broker->outbox());
  }
  spdlog::info("session={} opened peer=\"{}\" user={} broker={} vhost={} broker_user={}", id_, peer_,
               handshake_->client_user(), broker_name_, handshake_->vhost(), core_->broker_user);
  schedule_tick(0);
}

// --- a turn ---

void Session::turn() {
  if (finished_) return;
  if (stage_ == Stage::greeting) greet();
  stalled_ = false;
  if (core_->client_gone) core_->client->outbox().clear();
  for (bool again = true; again;) {
    for (bool progress = stage_ >= Stage::handshake && !finished_; progress && !finished_;) {
      progress = run_client();
      progress |= run_broker();
      if (!core_->replays.empty()) replay();
      if (stage_ == Stage::running) core_->lanes->resume();
    }
    if (finished_) return;
    if (core_->client_gone) core_->client->outbox().clear();
    // Each leg is written once a batch; what was borrowed from the other leg's buffer is sent or copied here.
    bool full = is_full();
    if (core_->broker != nullptr && broker_leg_ != Leg::closed) core_->broker->flush();
    if (client_leg_ != Leg::closed) core_->client->flush();
    core_->publisher->detach_held();
    core_->deliverer->detach_held();
    // What stopped at a full outbox goes on when the flush emptied it: no event would come for that.
    again = full && !is_full() && !finished_;
  }
  check_ends();
  if (finished_) return;
  // An end may have said more to the broker (parks): no event would come for it.
  if (broker_leg_ == Leg::open && !core_->broker->outbox().empty()) core_->broker->flush();
  decide_reading();
}

bool Session::client_may_advance() const {
  // A client may send the whole opening in one go: what is not its turn yet waits.
  if (stage_ == Stage::handshake)
    return client_leg_ == Leg::open && !client_wants_close_ && handshake_->awaits_client();
  if (client_leg_ == Leg::close_sent) return true;
  return stage_ == Stage::running && client_leg_ == Leg::open && !client_wants_close_ && !stalled_ &&
         core_->replays.empty() && !core_->ending && core_->broker->outbox().pending() < outbox_bytes_high &&
         !core_->over_budget();
}

bool Session::broker_may_advance() const {
  if (broker_leg_ == Leg::close_sent) return true;
  if (broker_leg_ != Leg::open || core_->body_stream->is_streaming() ||
      core_->client->outbox().pending() >= outbox_bytes_high)
    return false;
  // What is held for a park, or for the rest of a check, is freed only by what the broker says next: its
  // answer stands behind the deliveries that it sent before, of which RabbitMQ has only so many on their way.
  return core_->held_bytes() < backlog_bytes_high || core_->collecting != 0 ||
         (core_->undeliverable->is_parking() && core_->held_bytes() < parking_backlog_bytes_high);
}

bool Session::is_full() const {
  auto full = [](const std::unique_ptr<Link>& link) {
    return link != nullptr && !link->is_closed() && link->outbox().pending() >= outbox_bytes_high;
  };
  return full(core_->client) || full(core_->broker);
}

bool Session::run_client() {
  bool progress = false;
  Link& link = *core_->client;
  while (!finished_ && client_may_advance()) {
    size_t frame_max = stage_ == Stage::handshake ? handshake_frame_bytes_max : core_->frame_bytes_max;
    SplitResult split = split_frame(link.unread(), frame_max);
    if (split.status == Split::need_more) {
      link.expect(split.need_bytes);
      break;
    }
    if (split.status == Split::error) {
      close_by_bellhop(501, std::string("FRAME_ERROR - ") + split.problem, 0);
      // No frame can be told from the next any more. What still comes is read and dropped, so that the client
      // can finish its write and read why it was closed; a close-ok cannot be awaited.
      wait_for_client_end();
      link.consume(link.unread().size());
      break;
    }
    if (!on_client_frame(split.frame)) {
      stalled_ = true;
      break;
    }
    if (link.is_closed()) break;
    link.consume(split.frame.raw.size());
    progress = true;
  }
  return progress;
}

bool Session::run_broker() {
  if (core_->broker == nullptr) return false;
  bool progress = false;
  Link& link = *core_->broker;
  while (!finished_ && broker_may_advance()) {
    size_t frame_max = std::max<size_t>(handshake_frame_bytes_max, core_->frame_bytes_max);
    SplitResult split = split_frame(link.unread(), frame_max);
    if (split.status == Split::need_more) {
      link.expect(split.need_bytes);
      break;
    }
    if (split.status == Split::error || !on_broker_frame(split.frame)) {
      spdlog::error("session={} the broker broke the protocol: {}", id_,
                    split.status == Split::error ? split.problem : "an unexpected frame");
      end_broker_leg();
      close_by_bellhop(541, "INTERNAL_ERROR - the broker broke the protocol", 0);
      break;
    }
    if (link.is_closed()) break;
    link.consume(split.frame.raw.size());
    progress = true;
  }
  // It had its turn when its socket could be read, or may not be read for another reason than the client's
  // pace.
  if (core_->client->outbox().pending() < outbox_bytes_high && (!link.is_paused() || !broker_may_advance())) {
    core_->body_stream->broker_had_its_turn();
  }
  return progress;
}

void Session::replay() {
  while (!core_->replays.empty() && !core_->ending) {
    Buffer frames = std::move(core_->replays.front());
    core_->replays.erase(core_->replays.begin());
    size_t done = 0;
    bool waits = false;
    while (!core_->ending && !waits) {
      SplitResult split = split_frame(Bytes(frames).subspan(done), core_->frame_bytes_max);
      if (split.status != Split::frame) break;
      waits = !on_client_frame(split.frame);
      if (!waits) done += split.frame.raw.size();
    }
    core_->broker->outbox().own();
    core_->publisher->detach_held();
    if (!waits) continue;
    // A transfer has to end first. Until then nothing later of the client is looked at.
    frames.erase(frames.begin(), frames.begin() + static_cast<ptrdiff_t>(done));
    core_->replays.insert(core_->replays.begin(), std::move(frames));
    return;
  }
}

// --- the client's frames ---

bool Session::on_client_frame(const Frame& frame) {
  if (frame.channel == 0) {
    on_client_connection_frame(frame);
    return true;
  }
  if (stage_ != Stage::running) {
    if (stage_ == Stage::handshake)
      close_by_bellhop(503, "COMMAND_INVALID - a channel's frame before connection.open-ok", 0);
    return true;
  }
  Channel* channel = core_->channel(frame.channel);
  if (channel != nullptr) return on_client_channel_frame(*channel, frame);
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  if (number == method::channel_close_ok) return true;
  if (number != method::channel_open) {
    close_by_bellhop(504, "CHANNEL_ERROR - expected 'channel.open'", number);
    return true;
  }
  if (frame.channel > core_->client_channel_max) {
    close_by_bellhop(530,
                     "NOT_ALLOWED - channel " + std::to_string(frame.channel) +
                         " is above the negotiated channel_max (" +
                         std::to_string(core_->client_channel_max) + ")",
                     number);
    return true;
  }
  core_->open_channel(frame.channel);
  core_->broker->outbox().borrow(frame.raw);
  return true;
}

bool Session::on_client_channel_frame(Channel& channel, const Frame& frame) {
  using State = Channel::State;
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  switch (channel.state) {
    case State::open:
      break;
    case State::client_closing:
    case State::broker_closing:
      // The broker has the first frames of this publish, and cannot read anything else before the last one.
      if (frame.type == frame_body && core_->is_half_sent(channel))
        return core_->publisher->on_body(channel, frame);
      if (number == method::channel_close && !channel.broker_owes_close_ok) {
        core_->broker->outbox().borrow(frame.raw);
        channel.broker_owes_close_ok = true;
      } else if (number == method::channel_close_ok && channel.client_owes_close_ok) {
        core_->broker->outbox().borrow(frame.raw);
        channel.client_owes_close_ok = false;
        core_->end_relayed_close(channel);
      }
      return true;
    case State::local_closing:
      if (channel.client_close_ok) {
        // The next life of the id: it begins when the broker has closed the last one too.
        put(channel.reopened, frame.raw);
        core_->take(&channel, frame.raw.size());
      } else if (number == method::channel_close) {
        put_empty_method(core_->writer->own(), method::channel_close_ok, channel.id);
      } else if (number == method::channel_close_ok) {
        channel.client_close_ok = true;
        core_->end_local_close(channel);
      }
      return true;
  }
  switch (frame.type) {
    case frame_header:
      return core_->publisher->on_header(channel, frame);
    case frame_body:
      return core_->publisher->on_body(channel, frame);
    default:
      break;
  }
  if (channel.in.stage != PublishAssembly::Stage::idle) {
    const char* wanted = channel.in.stage == PublishAssembly::Stage::header ? "header" : "body";
    close_by_bellhop(505,
                     std::string("UNEXPECTED_FRAME - expected content ") + wanted +
                         " for class 60, got non content " + wanted + " frame instead",
                     method::basic_publish);
    return true;
  }
  if (number == method::basic_publish) return core_->publisher->on_publish(channel, frame);
  core_->releaser->method(channel, frame);
  return true;
}

void Session::on_client_connection_frame(const Frame& frame) {
  if (frame.type == frame_heartbeat) return;
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  if (number == method::connection_close_ok) {
    if (client_leg_ == Leg::close_sent) end_client_leg();
    return;
  }
  if (number == method::connection_close) {
    if (client_leg_ == Leg::close_sent) {
      put_empty_method(core_->writer->content(), method::connection_close_ok, 0);
    } else {
      client_wants_close_ = true;
      end_reason_ = "closed by the client";
    }
    return;
  }
  if (client_leg_ != Leg::open) return;
  if (frame.type != frame_method) {
    close_by_bellhop(505, "UNEXPECTED_FRAME - a content frame on channel 0", 0);
    return;
  }
  if (frame.payload.size() < 4) {
    close_by_bellhop(501, "FRAME_ERROR - a method frame without a method", 0);
    return;
  }
  if (stage_ == Stage::handshake) {
    handshake_->on_client(frame);
    return;
  }
  if (number == method::connection_update_secret) {
    if (core_->config.broker.has_credentials()) {
      // The client's secret is not what bellhop logged in with.
      put_empty_method(core_->writer->own(), method::connection_update_secret_ok, 0);
    } else {
      core_->broker->outbox().borrow(frame.raw);
    }
    return;
  }
  close_by_bellhop(503,
                   "COMMAND_INVALID - method " + std::to_string(number >> 16) + "." +
                       std::to_string(number & 0xFFFF) + " does not belong on channel 0",
                   number);
}

// --- the broker's frames ---

bool Session::on_broker_frame(const Frame& frame) {
  if (frame.channel == 0) {
    on_broker_connection_frame(frame);
    return true;
  }
  if (stage_ < Stage::running) return false;
  if (broker_leg_ == Leg::close_sent) return true;
  if (core_->private_channel != nullptr && frame.channel == core_->private_channel->id()) {
    return core_->private_channel->on_frame(frame);
  }
  Channel* channel = core_->channel(frame.channel);
  return channel == nullptr || core_->downward->on_frame(*channel, frame);
}

void Session::on_broker_connection_frame(const Frame& frame) {
  if (frame.type == frame_heartbeat) return;
  uint32_t number = frame.type == frame_method ? method_number(frame.payload) : 0;
  if (number == method::connection_close_ok) {
    if (close_relayed_ && client_leg_ == Leg::open) {
      core_->writer->end_content();
      core_->client->outbox().append(frame.raw);
      wait_for_client_end();
    }
    end_broker_leg();
    return;
  }
  if (number == method::connection_close) {
    auto close = decode_close(frame.payload);
    end_reason_ =
        "closed by the broker: " + (close ? std::string(close.value().reply_text) : std::string("?"));
    spdlog::warn("session={} {}", id_, end_reason_);
    put_empty_method(core_->broker->outbox().tail(), method::connection_close_ok, 0);
    if (client_leg_ == Leg::open) {
      core_->client->outbox().append(frame.raw);
      client_leg_ = Leg::close_sent;
      client_deadline_ms_ = core_->now_ms() + close_wait_ms;
      schedule_tick(close_wait_ms);
    }
    stage_ = Stage::ending;
    core_->ending = true;
    core_->broker->flush();
    end_broker_leg();
    return;
  }
  if (broker_leg_ == Leg::close_sent) return;
  if (stage_ == Stage::handshake) {
    handshake_->on_broker(frame);
    if (handshake_->is_done()) handshake_done();
    return;
  }
  // connection.blocked, connection.unblocked, update-secret-ok: the client's to know.
  put(core_->writer->own(), frame.raw);
}

// --- ends ---

void Session::close_by_bellhop(uint16_t code, const std::string& text, uint32_t method) {
  if (stage_ == Stage::ending || finished_) return;
  stage_ = Stage::ending;
  core_->ending = true;
  end_reason_ = text;
  if (broker_leg_ == Leg::open) {
    // What no_ack consumers were not handed is parked before the broker is told that this is the end.
    for (const auto& channel : core_->channels()) {
      if (channel != nullptr) core_->undeliverable->give_up_held(*channel);
    }
    linger_deadline_ms_ = core_->now_ms() + linger_ms;
    schedule_tick(linger_ms);
  }
  spdlog::warn("session={} peer=\"{}\" closed by bellhop code={} reason=\"{}\"", id_, peer_, code, text);
  if (client_leg_ == Leg::open && !core_->client_gone) {
    Close close{code, text, static_cast<uint16_t>(method >> 16), static_cast<uint16_t>(method)};
    put_close(core_->client->outbox().tail(), method::connection_close, 0, close);
    client_leg_ = Leg::close_sent;
    client_deadline_ms_ = core_->now_ms() + close_wait_ms;
    schedule_tick(close_wait_ms);
  } else if (core_->client_gone) {
    end_client_leg();
  }
}

void Session::broker_ended(const std::string& reason) {
  bool expected = broker_leg_ == Leg::close_sent || stage_ == Stage::ending;
  bool handshaking = stage_ == Stage::handshake;
  end_broker_leg();
  if (expected) {
    if (close_relayed_ && client_leg_ == Leg::open) {
      // The broker took the client's close and just went: the client gets its answer all the same.
      put_empty_method(core_->client->outbox().tail(), method::connection_close_ok, 0);
      wait_for_client_end();
    }
    return;
  }
  if (handshaking) {
    // As the broker itself does towards a client without authentication_failure_close.
    end_reason_ = "the broker ended the connection during the handshake: " + reason;
    spdlog::warn("session={} peer=\"{}\" {}", id_, peer_, end_reason_);
    wait_for_client_end();
    stage_ = Stage::ending;
    return;
  }
  close_by_bellhop(320, "CONNECTION_FORCED - the broker connection was lost: " + reason, 0);
}

void Session::wait_for_client_end() {
  if (client_leg_ == Leg::closed) return;
  client_leg_ = Leg::half;
  core_->client->shut_down_writes();
  client_deadline_ms_ = core_->now_ms() + peer_end_wait_ms;
  schedule_tick(peer_end_wait_ms);
}

void Session::end_client_leg() {
  if (client_leg_ == Leg::closed) return;
  client_leg_ = Leg::closed;
  client_deadline_ms_ = 0;
  // What was borrowed from this link's buffer goes before the buffer does.
  if (core_->broker != nullptr && broker_leg_ != Leg::closed) core_->broker->outbox().own();
  core_->publisher->detach_held();
  if (!core_->client_gone) core_->client->flush();
  core_->client_gone = true;
  core_->client->close({});
}

void Session::end_broker_leg() {
  if (broker_leg_ == Leg::closed || broker_leg_ == Leg::none) return;
  broker_leg_ = Leg::closed;
  broker_deadline_ms_ = 0;
  core_->client->outbox().own();
  core_->deliverer->detach_held();
  core_->broker->close({});
}

void Session::close_broker_leg() {
  if (broker_leg_ != Leg::open) return;
  if (handshake_ == nullptr || !handshake_->is_done()) {
    end_broker_leg();
    return;
  }
  // An answered close is the proof that the broker has read all that went before.
  put_close(core_->broker->outbox().tail(), method::connection_close, 0, {200, "Goodbye", 0, 0});
  core_->broker->flush();
  broker_leg_ = Leg::close_sent;
  broker_deadline_ms_ = core_->now_ms() + close_wait_ms;
  schedule_tick(close_wait_ms);
}

bool Session::is_settled() const {
  return core_->releaser->is_idle() && core_->replays.empty() && !core_->undeliverable->is_parking() &&
         (core_->private_channel == nullptr || core_->private_channel->is_idle());
}

bool Session::is_drained() const {
  if (!is_settled() || core_->lane_entries != 0) return false;
  return std::all_of(core_->channels().begin(), core_->channels().end(), [](const auto& channel) {
    return channel == nullptr ||
           (channel->confirms.unsettled() == 0 && channel->tags.client_unsettled() == 0 &&
            !channel->tx_dirty && channel->tx_ends_awaited.empty() &&
            channel->in.stage == PublishAssembly::Stage::idle);
  });
}

// The client is gone, but what it sent is not all handled yet. Not before this turn's flush: it reads.
bool Session::has_more_of_client() {
  if (last_frames_done_) return false;
  Bytes unread = core_->client->unread();
  return split_frame(unread, core_->frame_bytes_max).status != Split::need_more || core_->client->read_rest();
}

// Nothing more comes from the client. What it sent whole goes on; what is half sent never will be whole.
void Session::end_of_client_frames() {
  auto waits = [](const auto& channel) { return channel != nullptr && !channel->reopened.empty(); };
  if (!core_->replays.empty() || std::any_of(core_->channels().begin(), core_->channels().end(), waits))
    return;
  if (std::exchange(last_frames_done_, true)) return;
  for (const auto& channel : core_->channels()) {
    if (channel == nullptr) continue;
    core_->publisher->drop_incomplete(*channel);
    core_->undeliverable->give_up_held(*channel);
  }
}

// What a turn may have made due: every end of a session passes here.
void Session::check_ends() {
  uint64_t now = core_->now_ms();
  auto due = [&](uint64_t deadline) { return deadline != 0 && now >= deadline; };

  if (stage_ == Stage::running && core_->draining && !core_->client_gone && !client_wants_close_ &&
      is_drained()) {
    close_by_bellhop(320, "CONNECTION_FORCED - bellhop is shutting down", 0);
    core_->client->flush();
  }
  if (stage_ <= Stage::running && client_wants_close_ && !close_relayed_ && client_leg_ == Leg::open) {
    end_of_client_frames();
    if (is_settled()) {
      close_relayed_ = true;
      close_broker_leg();
      if (broker_leg_ != Leg::close_sent) {
        // During the handshake: the broker has nothing to say about it.
        put_empty_method(core_->client->outbox().tail(), method::connection_close_ok, 0);
        wait_for_client_end();
        stage_ = Stage::ending;
      }
    }
  }
  if (stage_ == Stage::running && core_->client_gone && client_leg_ != Leg::closed) {
    if (client_may_advance() && has_more_of_client()) {
      schedule_tick(0);  // a turn for it
    } else if (client_may_advance()) {
      end_of_client_frames();
      core_->body_stream->cancel();
      core_->draining = true;
    }
    if ((last_frames_done_ && is_settled()) || due(linger_deadline_ms_)) {
      stage_ = Stage::ending;
      core_->ending = true;
      end_client_leg();
    }
  }
  if (due(client_deadline_ms_)) {
    if (stage_ < Stage::running) {
      end_reason_ = "limits.handshake_timeout is over";
      spdlog::warn("session={} peer=\"{}\" {}", id_, peer_, end_reason_);
    }
    end_client_leg();
  }
  if (due(broker_deadline_ms_)) end_broker_leg();

  bool parks = broker_leg_ == Leg::open && core_->undeliverable->is_parking() && !due(linger_deadline_ms_);
  if (stage_ == Stage::ending && core_->ending && !abandoned_ && !parks) {
    abandoned_ = true;
    core_->body_stream->cancel();
    for (size_t id = 0; id < core_->channels().size(); ++id) core_->forget_channel(static_cast<uint16_t>(id));
    close_broker_leg();
  }
  if (client_leg_ == Leg::closed && broker_leg_ == Leg::open && !parks) close_broker_leg();
  if (client_leg_ == Leg::closed && (broker_leg_ == Leg::closed || broker_leg_ == Leg::none)) finish();
}

void Session::finish() {
  if (finished_) return;
  finished_ = true;
  spdlog::info("session={} closed peer=\"{}\" reason=\"{}\"", id_, peer_, end_reason_);
  connector_.reset();
  if (!core_->client->is_closed()) core_->client->close({});
  if (core_->broker != nullptr && !core_->broker->is_closed()) core_->broker->close({});
  core_->mailbox->close();
  uv_close(reinterpret_cast<uv_handle_t*>(&timer_), nullptr);
}

// --- back-pressure and time ---

void Session::decide_reading() {
  auto set = [&](Link& link, bool wanted, uint64_t& heard_ms) {
    if (wanted == !link.is_paused()) return;
    if (wanted) {
      link.resume_reading();
      heard_ms =
          core_->now_ms();  // its silence counts from here: while it was not read it could not be heard
    } else {
      link.pause_reading();
    }
  };
  if (client_leg_ != Leg::closed) {
    bool waits =
        stage_ == Stage::running && client_leg_ == Leg::open && !client_wants_close_ && !client_may_advance();
    set(*core_->client, !waits, client_heard_ms_);
    if (client_leg_ == Leg::half || client_wants_close_)
      core_->client->consume(core_->client->unread().size());
  }
  if (broker_leg_ == Leg::open || broker_leg_ == Leg::close_sent) {
    set(*core_->broker, stage_ < Stage::running || broker_may_advance(), broker_heard_ms_);
    // One more turn, whether the broker has anything to say or not.
    if (core_->body_stream->is_yielding() && !core_->broker->is_paused()) core_->mailbox->post([] {});
  }
}

void Session::schedule_tick(uint64_t after_ms) {
  if (finished_) return;
  uint64_t now = core_->now_ms();
  if (next_tick_ms_ > now && next_tick_ms_ <= now + after_ms) return;
  next_tick_ms_ = now + after_ms;
  uv_timer_start(
      &timer_, [](uv_timer_t* timer) { static_cast<Session*>(timer->data)->tick(); }, after_ms, 0);
}

void Session::tick() {
  if (finished_) return;
  uint64_t now = core_->now_ms();
  uint64_t next = tick_ms_max;
  next_tick_ms_ = 0;
  if (stage_ == Stage::running) {
    // A leg's silence is measured only while it is read; any frame counts as life.
    auto beat = [&](Link& link, uint16_t interval_s, uint64_t heard_ms, bool quiet) {
      if (interval_s == 0) return true;
      uint64_t interval_ms = uint64_t{interval_s} * 1000;
      next = std::min(next, interval_ms / 4);
      if (quiet && now - link.last_written_ms() >= interval_ms / 2) link.outbox().append(heartbeat_frame);
      return link.is_paused() || now - std::max(link.last_read_ms(), heard_ms) <= 2 * interval_ms;
    };
    if (client_leg_ == Leg::open && !core_->client_gone &&
        !beat(*core_->client, handshake_->client_heartbeat_s(), client_heard_ms_,
              core_->writer->is_quiet())) {
      end_reason_ =
          "client: missed heartbeats, timeout: " + std::to_string(handshake_->client_heartbeat_s()) + "s";
      spdlog::warn("session={} peer=\"{}\" {}", id_, peer_, end_reason_);
      core_->client_gone = true;
      linger_deadline_ms_ = now + linger_ms;
    }
    if (broker_leg_ == Leg::open && !beat(*core_->broker, handshake_->broker_heartbeat_s(), broker_heard_ms_,
                                          core_->broker->outbox().empty())) {
      broker_ended("missed heartbeats, timeout: " + std::to_string(handshake_->broker_heartbeat_s()) + "s");
    }
    if (auto wait_ms = core_->fetcher->tick()) next = std::min(next, *wait_ms);
    if (core_->draining) next = std::min<uint64_t>(next, 100);
  }
  for (uint64_t deadline : {client_deadline_ms_, broker_deadline_ms_, linger_deadline_ms_}) {
    if (deadline > now) next = std::min(next, deadline - now);
  }
  schedule_tick(std::max<uint64_t>(next, 1));
  turn();
}

}  // namespace bellhop
