#include "daemon/door/amqp/outcomes.h"

#include <algorithm>
#include <functional>

#include "daemon/door/amqp/releaser.h"
#include "daemon/pipeline/stamp.h"
#include "proto/table.h"

namespace bellhop {

using namespace proto;

namespace {

std::string_view claim_key_of(const ContentHeader& header) {
  TableCursor cursor(header.header_fields());
  while (auto field = cursor.next()) {
    if (field->name == claim_key_header) return field_string(*field).value_or(std::string_view{});
  }
  return {};
}

bool has_field(Bytes fields, std::string_view name) {
  TableCursor cursor(fields);
  while (auto field = cursor.next()) {
    if (field->name == name) return true;
  }
  return false;
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
    return has_field(*static_cast<const Bytes*>(fields), name);
  };
  edits.keep_context = &own_fields;
  Buffer frame;
  if (put_content_header(frame, 0, shown, edits, frame_bytes_max))
    own.assign(frame.begin() + frame_head_bytes, frame.end() - 1);
}

}  // namespace

void Outcomes::remember_header(Sent& sent, Bytes header_payload) {
  sent.sent_body_bytes = load_u64(header_payload.data() + 4);
  sent.sent_header_hash = hash_of(header_payload);
}

void Outcomes::on_confirm(Channel& channel, const Frame& frame, bool nack) {
  auto decoded = decode_settle(frame.payload);
  if (!decoded) return;
  const Settle& settle = decoded.value();
  if (channel.confirms.is_plain()) {
    channel.confirms.settle_relayed(settle.delivery_tag, settle.multiple);
    core_.writer->relay_whole(frame.raw);
    return;
  }
  answers_.clear();
  tokens_.clear();
  if (!channel.confirms.on_broker(settle.delivery_tag, settle.multiple, nack, answers_, tokens_)) {
    core_.log_problem("the broker confirmed a tag that is not outstanding: " +
                      std::to_string(settle.delivery_tag));
  }
  core_.releaser->write_answers(channel, answers_);
  for (uint32_t token : tokens_) {
    auto found = std::find_if(channel.sent.begin(), channel.sent.end(),
                              [&](const Sent& sent) { return sent.token == token; });
    if (found != channel.sent.end()) channel.sent.erase(found);
  }
}

void Outcomes::remember(Channel& channel, std::unique_ptr<Sent>& sent) {
  const size_t bytes = sent->bytes();
  auto has_room = [&] {
    sent->of_session = QuotaShare(core_.remembered, bytes);
    if (sent->of_session) sent->of_process = QuotaShare(core_.shared.remembered, bytes);
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
    if (!sent->transaction.claim() || !channel.tx) sent.reset();
    return;
  }
}

// A return carries no tag: it belongs to the earliest unsettled mandatory publish that looks like it, if
// there is one with that very content header.
std::unique_ptr<Sent> Outcomes::match_return(Channel& channel) {
  auto returned = decode_return(channel.out.method.payload());
  auto header = decode_content_header(channel.out.header.payload());
  if (!returned || !header) return nullptr;
  std::string_view key = claim_key_of(header.value());
  std::string_view id = header.value().text(message_id);
  const size_t hash = hash_of(channel.out.header.payload());
  auto match = channel.sent.end();
  for (auto sent = channel.sent.begin(); sent != channel.sent.end(); ++sent) {
    const auto& claim = sent->transaction.claim();
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
  show_returned(found->header, header.value(), core_.frame_bytes_max);
  return found;
}

bool Outcomes::on_tx_ok(Channel& channel) {
  if (channel.tx_ends_awaited.empty()) return true;
  Channel::TxEnd end = channel.tx_ends_awaited.front();
  channel.tx_ends_awaited.pop_front();
  if (end.own) return false;
  // A rolled-back publish takes its payload along.
  while (!channel.sent.empty() && channel.sent.front().tx_number <= end.number) channel.sent.pop_front();
  return true;
}

void Outcomes::deny(Channel& channel, uint64_t client_tag) {
  answers_.clear();
  channel.confirms.deny(client_tag, answers_);
  core_.releaser->write_answers(channel, answers_);
}

void Outcomes::release(Channel& channel, uint64_t client_tag) {
  answers_.clear();
  channel.confirms.release(client_tag, answers_);
  core_.releaser->write_answers(channel, answers_);
}

}  // namespace bellhop
