#include "daemon/door/amqp/publish_tracker.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "daemon/ops/trouble.h"
#include "proto/table.h"

namespace bellhop {

using namespace proto;

namespace {

std::string_view claim_key_of(const ContentHeader& header) {
  const auto field = find_field(header.header_fields(), claim_key_header);
  return field ? field_string(*field).value_or(std::string_view{}) : std::string_view{};
}

// The same for a content header as it was sent and as the broker gives it back: without BCC, which it takes
// off, without reply_to, for which it may write another address, and whatever the order of the table, which
// RabbitMQ 4 sorts.
size_t hash_of(Bytes header_payload) {
  auto decoded = decode_content_header(header_payload);
  if (!decoded) return 0;
  const ContentHeader& header = decoded.value();
  const std::hash<std::string_view> hash;
  size_t all = header.body_bytes;
  for (unsigned which = 0; which < property_count; ++which) {
    if (which == headers || which == reply_to) continue;
    all = all * 31 + hash(as_text(header.property[which]));
  }
  TableCursor cursor(header.header_fields());
  while (auto field = cursor.next()) {
    if (field->name != "BCC") all += hash(as_text(field->raw));
  }
  return all;
}

// What the client is shown of a returned publish: its own content header as the broker shows it, which is
// what came back without what bellhop had added. `own` is the client's header payload, and is replaced.
void show_returned(Buffer& own, const ContentHeader& returned, size_t frame_bytes_max) {
  auto decoded = decode_content_header(own);
  if (!decoded) return;
  const Bytes own_fields = decoded.value().header_fields();
  TableCursor cursor(own_fields);
  while (auto field = cursor.next()) {
    if (is_claim_header(field->name)) return;  // the client's were replaced
  }
  ContentHeader shown = returned;
  shown.flags &= decoded.value().flags;
  HeaderEdits edits;
  edits.body_bytes = decoded.value().body_bytes;
  edits.keep = [](const void* fields, std::string_view name) {
    return find_field(*static_cast<const Bytes*>(fields), name).has_value();
  };
  edits.keep_context = &own_fields;
  Buffer frame;
  if (put_content_header(frame, 0, shown, edits, frame_bytes_max))
    own.assign(frame.begin() + frame_head_bytes, frame.end() - 1);
}

// Without confirms or a transaction nothing says when a publish can no longer be returned, so only the newest
// are remembered.
constexpr size_t unconfirmed_sent_max = 1024;

}  // namespace

std::unique_ptr<Sent> PublishTracker::remember(const Publish& publish, const Stamped& stamped,
                                               Bytes own_header, Bytes sent_header) {
  auto sent = std::make_unique<Sent>();
  sent->mandatory = publish.mandatory;
  sent->exchange = publish.exchange;
  sent->routing_key = publish.routing_key;
  sent->sent_exchange = stamped.exchange;
  sent->sent_routing_key = stamped.routing_key;
  sent->message_id = stamped.message_id;
  sent->sent_body_bytes = load_u64(sent_header.data() + 4);
  sent->sent_header_hash = hash_of(sent_header);
  sent->header.assign(own_header.begin(), own_header.end());
  return sent;
}

void PublishTracker::published(Channel& channel, PublishMark mark, std::unique_ptr<Sent> sent) {
  channel.tx_dirty = channel.tx;
  if (sent != nullptr) make_room(channel, sent);
  if (sent != nullptr) sent->tx_number = channel.tx_number;
  if (channel.confirm) {
    uint32_t token = 0;
    if (sent != nullptr) {
      token = channel.next_token++;
      if (channel.next_token == 0) channel.next_token = 1;
      sent->token = token;
    }
    const uint64_t tag = channel.confirms.push_relayed(token, mark);
    if (sent != nullptr) sent->client_tag = tag;
  } else {
    state_.meter.settle(mark, PublishOutcome::unconfirmed);
  }
  if (sent == nullptr) return;
  channel.sent.push_back(std::move(*sent));
  if (!channel.confirm && !channel.tx && channel.sent.size() > unconfirmed_sent_max) channel.sent.pop_front();
}

void PublishTracker::settle_local(Channel& channel, uint64_t client_tag, bool nack) {
  answers_.clear();
  channel.confirms.settle_local(client_tag, nack, answers_);
  write_answers(channel);
}

void PublishTracker::write_answers(const Channel& channel) {
  Buffer& out = to_client_.own();
  for (const ConfirmWindow::Answer& answer : answers_) {
    if (answer.nack) {
      put_nack(out, channel.id, answer.client_tag, answer.multiple, false);
    } else {
      put_ack(out, channel.id, answer.client_tag, answer.multiple);
    }
  }
}

void PublishTracker::on_confirm(Channel& channel, const Frame& frame, bool nack) {
  auto decoded = decode_settle(frame.payload);
  if (!decoded) return;
  const Settle& settle = decoded.value();
  if (channel.confirms.is_plain()) {
    channel.confirms.settle_relayed(settle.delivery_tag, settle.multiple, nack);
    to_client_.relay_whole(frame.raw);
    return;
  }
  answers_.clear();
  tokens_.clear();
  if (!channel.confirms.on_broker(settle.delivery_tag, settle.multiple, nack, answers_, tokens_)) {
    tell_trouble("session", "the broker confirmed a tag that is not outstanding",
                 "the broker confirmed a tag that is not outstanding",
                 state_.who({{"channel", channel.id}, {"tag", settle.delivery_tag}}));
  }
  write_answers(channel);
  for (uint32_t token : tokens_) {
    auto found = std::find_if(channel.sent.begin(), channel.sent.end(),
                              [&](const Sent& sent) { return sent.token == token; });
    if (found != channel.sent.end()) channel.sent.erase(found);
  }
}

// `sent` is null afterwards, or no more than its stored payload, when there is none.
void PublishTracker::make_room(Channel& channel, std::unique_ptr<Sent>& sent) {
  const size_t bytes = sent->bytes();
  auto has_room = [&] {
    sent->of_session = QuotaShare(state_.remembered, bytes);
    if (sent->of_session) sent->of_process = QuotaShare(state_.shared.remembered, bytes);
    return static_cast<bool>(sent->of_process);
  };
  while (!has_room()) {
    if (!channel.tx && !channel.sent.empty()) {
      channel.sent.pop_front();
      continue;
    }
    sent->of_session = {};
    sent->mandatory = false;
    sent->header = {};
    if (!sent->stored.claim() || !channel.tx) sent.reset();
    return;
  }
}

// A return carries no tag: it belongs to the earliest unsettled mandatory publish that looks like it, if
// there is one with that very content header.
std::unique_ptr<Sent> PublishTracker::match_return(Channel& channel) {
  auto returned = decode_return(channel.out.method.payload());
  auto header = decode_content_header(channel.out.header.payload());
  if (!returned || !header) return nullptr;
  std::string_view key = claim_key_of(header.value());
  std::string_view id = header.value().text(message_id);
  const size_t hash = hash_of(channel.out.header.payload());
  auto match = channel.sent.end();
  for (auto sent = channel.sent.begin(); sent != channel.sent.end(); ++sent) {
    const auto& claim = sent->stored.claim();
    if (!sent->mandatory || sent->sent_exchange != returned.value().exchange ||
        sent->sent_routing_key != returned.value().routing_key || sent->message_id != id ||
        sent->sent_body_bytes != header.value().body_bytes ||
        (claim ? std::string_view(claim->key) : std::string_view{}) != key)
      continue;
    if (match == channel.sent.end()) match = sent;
    if (sent->sent_header_hash != hash) continue;
    match = sent;
    break;
  }
  if (match == channel.sent.end()) return nullptr;
  auto found = std::make_unique<Sent>(std::move(*match));
  channel.sent.erase(match);
  if (found->client_tag != 0) channel.confirms.note_returned(found->client_tag);
  show_returned(found->header, header.value(), state_.frame_bytes_max);
  return found;
}

bool PublishTracker::on_tx_ok(Channel& channel) {
  if (channel.tx_ends_awaited.empty()) return true;
  Channel::TxEnd end = channel.tx_ends_awaited.front();
  channel.tx_ends_awaited.pop_front();
  if (end.own) return false;
  // A rolled-back publish takes its payload along.
  while (!channel.sent.empty() && channel.sent.front().tx_number <= end.number) channel.sent.pop_front();
  return true;
}

void PublishTracker::return_lost(Channel& channel, uint64_t client_tag) {
  answers_.clear();
  channel.confirms.return_lost(client_tag, answers_);
  write_answers(channel);
}

void PublishTracker::return_handed(Channel& channel, uint64_t client_tag) {
  answers_.clear();
  channel.confirms.return_handed(client_tag, answers_);
  write_answers(channel);
}

}  // namespace bellhop
