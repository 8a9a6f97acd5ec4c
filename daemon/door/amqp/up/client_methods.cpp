#include "daemon/door/amqp/up/client_methods.h"

#include <utility>

#include "proto/method.h"

namespace bellhop {

namespace {

bool mentions_virtual_exchange(Bytes payload) {
  return as_text(payload).find("bellhop.") != std::string_view::npos;
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

void ClientMethods::apply(Channel& channel, const proto::Frame& frame, bool is_borrowed) {
  using namespace proto;
  uint32_t number = method_number(frame.payload);
  if (std::string problem = problem_with(frame.payload, number); !problem.empty()) {
    host_.close_connection(501, "FRAME_ERROR - " + problem, number);
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
      if (Buffer named = with_tag_of_its_own(frame, state_.uuids); !named.empty()) {
        apply(channel, proto::whole_frame(named), false);
        return;
      }
      consume(channel, frame);
      break;
    case method::basic_cancel:
      cancel(channel, frame);
      return;
    case method::queue_delete:
      if (auto queue = decode_queue_delete(frame.payload))
        state_.exclusive_queues.erase(queue.value().empty() ? channel.last_queue : queue.value());
      break;
    case method::basic_recover:
    case method::basic_recover_async:
      if (number == method::basic_recover) channel.recovers_awaited++;
      lower_.recover(channel);
      break;
    case method::confirm_select:
      channel.confirm = !channel.tx;
      break;
    case method::tx_select:
      channel.tx = !channel.confirm;
      break;
    case method::tx_commit:
      // From here on the broker decides the outcome: the payloads stay.
      for (Sent& sent : channel.sent) sent.stored.sent();
      end_transaction(channel, true);
      break;
    case method::tx_rollback:
      end_transaction(channel, false);
      break;
    case method::queue_declare:
      declare(channel, frame);
      break;
    case method::channel_close:
      closing_.on_client_close(channel);
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
  if (is_borrowed) {
    to_broker_.relay(frame.raw);
  } else {
    to_broker_.append(frame.raw);
  }
  if (number == method::tx_rollback) proxy_acks_.say_again(channel);
}

// The client's tx.commit or tx.rollback goes up. The broker takes what follows in order, so the next
// transaction is open from here on.
void ClientMethods::end_transaction(Channel& channel, bool committed) {
  channel.tags.end_tx(committed);
  if (committed) channel.proxy_acks.clear();
  channel.tx_dirty = false;
  channel.tx_ends_awaited.push_back({false, channel.tx_number++});
}

// True: relay the client's frame as it is.
bool ClientMethods::settle(Channel& channel, const proto::Frame& frame, uint32_t number) {
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
    closing_.close(channel, 406,
                   "PRECONDITION_FAILED - unknown delivery tag " + std::to_string(settle.delivery_tag),
                   number);
    return false;
  }
  Buffer& out = to_broker_.own(channel);
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
void ClientMethods::cancel(Channel& channel, const proto::Frame& frame) {
  auto tag = proto::decode_consume_ok(frame.payload);
  Buffer& out = to_broker_.own(channel);
  const size_t at = out.size();
  put(out, frame.raw);
  if (!tag) return;  // the broker says what is wrong with it
  uint8_t& bits = out[at + frame.raw.size() - 2];
  channel.consumers.cancel(tag.value(), (bits & 1) == 0);
  bits = static_cast<uint8_t>(bits & ~1U);
}

void ClientMethods::consume(Channel& channel, const proto::Frame& frame) {
  auto consume = proto::decode_consume(frame.payload);
  if (!consume) return;
  proto::Consume& asked = consume.value();
  Consumer consumer{asked.queue.empty() ? channel.last_queue : std::move(asked.queue), asked.no_ack};
  consumer.input = state_.snapshot->routing->step_of_queue(consumer.queue);
  // A delivery may come before consume-ok is looked at, so a named consumer is known from now on.
  channel.consumers.ask(asked.consumer_tag, std::move(consumer), !asked.nowait);
}

// True: relay the client's frame as it is. A get without ack goes up as one with: bellhop acknowledges after
// the last byte.
bool ClientMethods::get(Channel& channel, const proto::Frame& frame) {
  auto get = proto::decode_get(frame.payload);
  if (!get) return true;
  if (get.value().queue.empty()) get.value().queue = channel.last_queue;
  channel.gets_awaited.push_back(get.value());
  if (!get.value().no_ack || channel.tx) return true;
  proto::Get up = std::move(get.value());
  up.no_ack = false;
  proto::put_get(to_broker_.own(channel), channel.id, up);
  return false;
}

void ClientMethods::declare(Channel& channel, const proto::Frame& frame) {
  auto declare = proto::decode_queue_declare(frame.payload);
  if (!declare) return;
  if (declare.value().exclusive) state_.note_exclusive(declare.value().queue);
  if (declare.value().nowait) {
    channel.last_queue = declare.value().queue;
  } else {
    channel.declares_awaited.push_back(declare.value().exclusive);
  }
}

// True: answered here. A virtual exchange exists only in bellhop.
bool ClientMethods::answer_virtual_exchange(Channel& channel, const proto::Frame& frame, uint32_t number) {
  auto named = proto::decode_named_exchanges(frame.payload);
  if (!named) return false;
  const proto::NamedExchanges& names = named.value();
  bool first = is_virtual_exchange(names.first);
  if (!first && !is_virtual_exchange(names.second)) return false;
  if (number == proto::method::exchange_declare && names.passive) {
    // The broker is asked for an exchange that is always there, so that the reply comes in its turn among the
    // others.
    if (!names.nowait) proto::put_exchange_declare_passive(to_broker_.own(channel), channel.id, "amq.direct");
    return true;
  }
  closing_.close(channel, 403,
                 "ACCESS_REFUSED - exchange '" + (first ? names.first : names.second) +
                     "' exists only in bellhop: it takes publishes, and cannot be declared, bound or deleted",
                 number);
  return true;
}

}  // namespace bellhop
