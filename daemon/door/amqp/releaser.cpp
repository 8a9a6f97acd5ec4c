#include "daemon/door/amqp/releaser.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/door/amqp/broker_exchanges.h"
#include "daemon/door/amqp/hops.h"
#include "daemon/door/amqp/lanes.h"
#include "daemon/door/amqp/outcomes.h"
#include "daemon/door/amqp/own_settles.h"
#include "daemon/door/amqp/parks.h"
#include "daemon/door/amqp/publisher.h"
#include "daemon/door/amqp/undeliverable.h"
#include "daemon/ops/trouble.h"
#include "proto/claim_frame.h"

namespace bellhop {

namespace {

// Without confirms or a transaction nothing says when a publish can no longer be returned, so only the newest
// are remembered.
constexpr size_t unconfirmed_sent_max = 1024;

proto::Frame whole_frame(Bytes raw) {
  return {raw[0], load_u16(raw.data() + 1),
          raw.subspan(proto::frame_head_bytes, raw.size() - proto::frame_overhead_bytes), raw};
}

// For a log: which of the client's publishes it was.
std::string about(const PublishJob& job) {
  auto publish = proto::decode_publish(job.method);
  auto header = proto::decode_content_header(job.header);
  if (!publish || !header) return "exchange=? routing_key=?";
  std::string out = fmt::format("exchange=\"{}\" routing_key=\"{}\" message_id=\"{}\" bytes={}",
                                publish.value().exchange, publish.value().routing_key,
                                header.value().text(proto::message_id), header.value().body_bytes);
  if (const auto& claim = job.transaction.claim()) out += " key=" + claim->key;
  return out;
}

bool mentions_virtual_exchange(Bytes payload) {
  return as_text(payload).find("bellhop.") != std::string_view::npos;
}

// A channel that closes takes its unacknowledged deliveries along: hops and parks under way settle theirs
// first.
bool waits_for_hops(const Channel& channel, Bytes payload) {
  return channel.hops_pending + channel.parks_pending != 0 &&
         proto::method_number(payload) == proto::method::channel_close;
}

// bellhop cannot keep track of what it cannot decode, even if the broker would accept it (tables nested
// deeper than bellhop looks, for one). Nothing if it can decode the method, or need not.
std::string problem_with(Bytes payload, uint32_t number) {
  auto problem = [](const auto& decoded) { return decoded ? std::string() : decoded.error(); };
  switch (number) {
    case proto::method::basic_consume:
      return problem(proto::decode_consume(payload));
    case proto::method::queue_declare:
      return problem(proto::decode_queue_declare(payload));
    case proto::method::exchange_declare:
    case proto::method::exchange_delete:
    case proto::method::exchange_bind:
    case proto::method::exchange_unbind:
    case proto::method::queue_bind:
    case proto::method::queue_unbind:
      return mentions_virtual_exchange(payload) ? problem(proto::decode_named_exchanges(payload)) : "";
    default:
      return {};
  }
}

// A consume with no_wait and without a tag: no answer would tell the tag that the broker makes, so bellhop
// makes one. Nothing for any other consume.
Buffer with_tag_of_its_own(const proto::Frame& frame, proto::UuidGenerator& uuids) {
  auto consume = proto::decode_consume(frame.payload);
  if (!consume || !consume.value().nowait || !consume.value().consumer_tag.empty()) return {};
  const size_t tag_at = 4 + 2 + 1 + consume.value().queue.size();
  auto id = uuids.next();
  Buffer out;
  size_t begin = proto::begin_frame(out, proto::frame_method, frame.channel);
  put(out, frame.payload.first(tag_at));
  put_shortstr(out, "amq.ctag-" + std::string(proto::view(id)));
  put(out, frame.payload.subspan(tag_at + 1));
  proto::end_frame(out, begin);
  return out;
}

}  // namespace

void Releaser::method(Channel& channel, const proto::Frame& frame) {
  if (channel.queue.empty() && !waits_for_hops(channel, frame.payload)) {
    apply(channel, frame, true);
    return;
  }
  Release release;
  release.frames.assign(frame.raw.begin(), frame.raw.end());
  enqueue(channel, std::move(release));
}

Release& Releaser::enqueue(Channel& channel, Release release) {
  core_.take(&channel, release.frames.size());
  channel.queue.push_back(std::move(release));
  return channel.queue.back();
}

void Releaser::pump(Channel& channel) {
  auto goes_on = [&] {
    return !core_.ending &&
           (channel.state == Channel::State::open || channel.state == Channel::State::client_closing);
  };
  while (!channel.queue.empty() && goes_on()) {
    Release& front = channel.queue.front();
    if (front.kind == Release::Kind::job && !front.job->settled) return;
    if (front.kind == Release::Kind::method && waits_for_hops(channel, whole_frame(front.frames).payload))
      return;
    Release release = std::move(front);
    core_.give_back(&channel, release.frames.size());
    channel.queue.pop_front();
    switch (release.kind) {
      case Release::Kind::publish:
        core_.broker->outbox().append(release.frames);
        published(channel, std::move(release.sent));
        break;
      case Release::Kind::method:
        apply(channel, whole_frame(release.frames), false);
        break;
      case Release::Kind::job:
        release_job(channel, *release.job);
        break;
    }
  }
}

void Releaser::published(Channel& channel, std::unique_ptr<Sent> sent) {
  channel.tx_dirty = channel.tx;
  if (sent != nullptr) core_.outcomes->remember(channel, sent);
  if (sent != nullptr) sent->tx_number = channel.tx_number;
  if (channel.confirm) {
    uint32_t token = 0;
    if (sent != nullptr) {
      token = channel.next_token++;
      if (channel.next_token == 0) channel.next_token = 1;
      sent->token = token;
    }
    uint64_t tag = channel.confirms.push_relayed(token);
    if (sent != nullptr) sent->client_tag = tag;
  }
  if (sent == nullptr) return;
  channel.sent.push_back(std::move(*sent));
  if (!channel.confirm && !channel.tx && channel.sent.size() > unconfirmed_sent_max) channel.sent.pop_front();
}

void Releaser::refuse(Channel& channel, const PublishJob& job, uint16_t code, const std::string& text,
                      bool closes, const std::string& subject) {
  tell_trouble(trouble_publish_refused, subject.empty() ? subject_of_reason(text) : subject,
               fmt::format("session={} channel={} publish refused {} code={} reason=\"{}\"", core_.session_id,
                           channel.id, about(job), code, text));
  if (channel.confirm && !closes) {
    uint64_t tag = channel.confirms.push_local();
    answers_.clear();
    channel.confirms.settle_local(tag, true, answers_);
    write_answers(channel, answers_);
    return;
  }
  core_.close_channel(channel, code, text, proto::method::basic_publish);
}

void Releaser::write_answers(Channel& channel, const std::vector<ConfirmWindow::Answer>& answers) {
  Buffer& out = core_.writer->own();
  for (const ConfirmWindow::Answer& answer : answers) {
    if (answer.nack) {
      proto::put_nack(out, channel.id, answer.client_tag, answer.multiple, false);
    } else {
      proto::put_ack(out, channel.id, answer.client_tag, answer.multiple);
    }
  }
}

bool Releaser::is_idle() const {
  return std::all_of(core_.channels().begin(), core_.channels().end(),
                     [](const auto& channel) { return channel == nullptr || channel->queue.empty(); });
}

void Releaser::release_job(Channel& channel, PublishJob& job) {
  core_.publisher->end_job(job);
  if (job.refused_code != 0) {
    refuse(channel, job, job.refused_code, job.refused_text, job.refusal_closes,
           job.store != nullptr ? "store '" + job.store->name() + "'" : "");
    return;
  }
  if (job.hop) {
    if (channel.tx) {
      refuse(channel, job, 540, "NOT_IMPLEMENTED - bellhop.next cannot be used on a transactional channel",
             true);
      return;
    }
    core_.hops->release(channel, job);
    return;
  }
  auto publish = proto::decode_publish(job.method);
  auto header = proto::decode_content_header(job.header);
  const Claim& claim = *job.transaction.claim();
  Buffer& out = core_.broker->outbox().tail();
  bool by_name = publish.value().exchange == route_exchange;
  Stamped stamped = core_.publisher->stamper().write(
      out, channel.id,
      {publish.value(), header.value(), *job.plan, &claim, 0, by_name, &core_.broker_exchanges->missing()},
      core_.frame_bytes_max);
  if (stamped.refused_code != 0) {
    refuse(channel, job, stamped.refused_code, stamped.refused_text);
    return;
  }
  const size_t header_end = out.size() - 1;
  size_t begin = proto::begin_frame(out, proto::frame_body, channel.id);
  put(out, proto::claim_check_prefix);
  put(out, as_bytes(claim.key));
  proto::end_frame(out, begin);
  if (!channel.tx) job.transaction.sent();
  std::unique_ptr<Sent> sent;
  if (publish.value().mandatory || channel.tx) {
    sent = std::make_unique<Sent>();
    sent->mandatory = publish.value().mandatory;
    sent->exchange = publish.value().exchange;
    sent->routing_key = publish.value().routing_key;
    sent->sent_exchange = stamped.exchange;
    sent->sent_routing_key = stamped.routing_key;
    sent->message_id = stamped.message_id;
    Outcomes::remember_header(*sent, Bytes(out).subspan(stamped.header_at, header_end - stamped.header_at));
    sent->header = std::move(job.header);
    sent->transaction = std::move(job.transaction);
  }
  published(channel, std::move(sent));
}

void Releaser::apply(Channel& channel, const proto::Frame& frame, bool borrowed) {
  using namespace proto;
  uint32_t number = method_number(frame.payload);
  if (std::string problem = problem_with(frame.payload, number); !problem.empty()) {
    core_.close_connection(501, "FRAME_ERROR - " + problem, number);
    return;
  }
  switch (number) {
    case method::basic_ack:
    case method::basic_nack:
    case method::basic_reject:
      if (!settle(channel, frame, number)) return;
      break;
    case method::basic_get:
      if (!get(channel, frame)) return;
      break;
    case method::basic_consume:
      if (Buffer named = with_tag_of_its_own(frame, core_.uuids); !named.empty()) {
        apply(channel, whole_frame(named), false);
        return;
      }
      consume(channel, frame);
      break;
    case method::basic_cancel:
      cancel(channel, frame);
      return;
    case method::queue_delete:
      if (auto queue = decode_queue_delete(frame.payload))
        core_.exclusive_queues.erase(queue.value().empty() ? channel.last_queue : queue.value());
      break;
    case method::basic_recover:
    case method::basic_recover_async:
      if (number == method::basic_recover) channel.recovers_awaited++;
      core_.lanes->recover(channel);
      break;
    case method::confirm_select:
      channel.confirm = !channel.tx;
      break;
    case method::tx_select:
      channel.tx = !channel.confirm;
      break;
    case method::tx_commit:
      // From here on the broker decides the outcome: the payloads stay.
      for (Sent& sent : channel.sent) sent.transaction.sent();
      end_transaction(channel, true);
      break;
    case method::tx_rollback:
      end_transaction(channel, false);
      break;
    case method::queue_declare:
      declare(channel, frame);
      break;
    case method::channel_close:
      channel.state = Channel::State::client_closing;
      channel.broker_owes_close_ok = true;
      // What a no_ack consumer was not handed yet is parked first: the broker has forgotten it.
      core_.undeliverable->give_up_held(channel);
      break;
    case method::exchange_declare:
    case method::exchange_delete:
    case method::exchange_bind:
    case method::exchange_unbind:
    case method::queue_bind:
    case method::queue_unbind:
      if (mentions_virtual_exchange(frame.payload) && answer_virtual_exchange(channel, frame, number)) return;
      break;
    default:
      break;
  }
  if (borrowed) {
    core_.broker->outbox().borrow(frame.raw);
  } else {
    core_.broker->outbox().append(frame.raw);
  }
  if (number == method::tx_rollback) core_.own_settles->say_again(channel);
}

// The client's tx.commit or tx.rollback goes up. The broker takes what follows in order, so the next
// transaction is open from here on.
void Releaser::end_transaction(Channel& channel, bool committed) {
  channel.tags.end_tx(committed);
  if (committed) channel.own_settles.clear();
  channel.tx_dirty = false;
  channel.tx_ends_awaited.push_back({false, channel.tx_number++});
}

// True: relay the client's frame as it is.
bool Releaser::settle(Channel& channel, const proto::Frame& frame, uint32_t number) {
  using namespace proto;
  auto decoded = decode_settle(frame.payload);
  if (!decoded) return true;  // the broker says what is wrong with it
  Settle settle = decoded.value();
  // Inside a transaction an ack counts at its commit, and a rollback takes it back.
  TagWindow::Owner to = channel.tx ? TagWindow::Owner::in_tx : TagWindow::Owner::settled;
  channel.tx_dirty = channel.tx;
  if (channel.tags.is_plain()) {
    channel.tags.settle_plain(settle.delivery_tag, settle.multiple, to);
    return true;
  }
  TagWindow::Covered covered = channel.tags.settle(settle.delivery_tag, settle.multiple, to);
  if (!covered.ok) {
    core_.close_channel(channel, 406,
                        "PRECONDITION_FAILED - unknown delivery tag " + std::to_string(settle.delivery_tag),
                        number);
    return false;
  }
  Buffer& out = core_.to_broker(channel);
  for (const TagWindow::Piece& piece : covered.pieces) {
    if (number == method::basic_ack) {
      put_ack(out, channel.id, piece.tag, piece.multiple);
    } else if (number == method::basic_nack) {
      put_nack(out, channel.id, piece.tag, piece.multiple, settle.requeue);
    } else {
      put_reject(out, channel.id, piece.tag, settle.requeue);
    }
  }
  return false;
}

// The consumer is known until the broker has answered: deliveries of it may be on their way. A client that
// wants no answer is not handed it.
void Releaser::cancel(Channel& channel, const proto::Frame& frame) {
  auto tag = proto::decode_consume_ok(frame.payload);
  Buffer& out = core_.to_broker(channel);
  const size_t at = out.size();
  put(out, frame.raw);
  if (!tag) return;  // the broker says what is wrong with it
  uint8_t& bits = out[at + frame.raw.size() - 2];
  channel.cancels_awaited.push_back((bits & 1) == 0);
  bits = static_cast<uint8_t>(bits & ~1U);
  auto found = channel.consumers.find(tag.value());
  if (found == channel.consumers.end()) return;
  found->second.cancels_awaited++;
  found->second.is_ended = true;
}

void Releaser::consume(Channel& channel, const proto::Frame& frame) {
  auto consume = proto::decode_consume(frame.payload);
  if (!consume) return;
  proto::Consume& asked = consume.value();
  Consumer consumer{asked.queue.empty() ? channel.last_queue : std::move(asked.queue), asked.no_ack};
  consumer.input = core_.shared.routing->step_of_queue(consumer.queue);
  if (consumer.no_ack) channel.no_ack_consumers++;
  // A delivery may come before consume-ok is looked at, so a named consumer is known from now on.
  if (!asked.consumer_tag.empty()) {
    Consumer& known = channel.consumers[asked.consumer_tag];
    if (known.no_ack) channel.no_ack_consumers--;
    consumer.cancels_awaited = known.cancels_awaited;
    known = consumer;
  }
  if (!asked.nowait) channel.consumes_awaited.push_back(std::move(consumer));
}

// True: relay the client's frame as it is. A get without ack goes up as one with: bellhop acknowledges after
// the last byte.
bool Releaser::get(Channel& channel, const proto::Frame& frame) {
  auto get = proto::decode_get(frame.payload);
  if (!get) return true;
  if (get.value().queue.empty()) get.value().queue = channel.last_queue;
  channel.gets_awaited.push_back(get.value());
  if (!get.value().no_ack || channel.tx) return true;
  proto::Get up = std::move(get.value());
  up.no_ack = false;
  proto::put_get(core_.to_broker(channel), channel.id, up);
  return false;
}

void Releaser::declare(Channel& channel, const proto::Frame& frame) {
  auto declare = proto::decode_queue_declare(frame.payload);
  if (!declare) return;
  if (declare.value().exclusive) core_.note_exclusive(declare.value().queue);
  if (declare.value().nowait) {
    channel.last_queue = declare.value().queue;
  } else {
    channel.declares_awaited.push_back(declare.value().exclusive);
  }
}

// True: answered here. A virtual exchange exists only in bellhop.
bool Releaser::answer_virtual_exchange(Channel& channel, const proto::Frame& frame, uint32_t number) {
  auto named = proto::decode_named_exchanges(frame.payload);
  if (!named) return false;
  const proto::NamedExchanges& names = named.value();
  bool first = is_virtual_exchange(names.first);
  if (!first && !is_virtual_exchange(names.second)) return false;
  if (number == proto::method::exchange_declare && names.passive) {
    // The broker is asked for an exchange that is always there, so that the reply comes in its turn among the
    // others.
    if (!names.nowait)
      proto::put_exchange_declare_passive(core_.to_broker(channel), channel.id, "amq.direct");
    return true;
  }
  core_.close_channel(
      channel, 403,
      "ACCESS_REFUSED - exchange '" + (first ? names.first : names.second) +
          "' exists only in bellhop: it takes publishes, and cannot be declared, bound or deleted",
      number);
  return true;
}

}  // namespace bellhop
