#include "daemon/door/amqp/outcomes.h"

#include <algorithm>
#include <functional>

#include "daemon/door/amqp/releaser.h"
#include "daemon/pipeline/stamp.h"
#include "proto/table.h"

namespace bellhop {

using namespace proto;

namespace {

constexpr std::string_view direct_reply_to = "amq.rabbitmq.reply-to";

std::string_view claim_key_of(const ContentHeader& header) {
  TableCursor cursor(header.header_fields());
  while (auto field = cursor.next()) {
    if (field->name == claim_key_header) return field_string(*field).value_or(std::string_view{});
  }
  return {};
}

// The broker takes BCC off a message before anybody sees it, the publisher too, and puts an address of its
// own in the place of amq.rabbitmq.reply-to, which `returned` (when there is one) has. True: something of
// that was to be done to the header payload `header`, and `shown` is the result.
bool show_as_the_broker(Bytes header, const ContentHeader* returned, size_t frame_bytes_max, Buffer& shown) {
  auto decoded = decode_content_header(header);
  if (!decoded) return false;
  bool has_bcc = false;
  TableCursor cursor(decoded.value().header_fields());
  while (auto field = cursor.next()) has_bcc |= field->name == "BCC";
  const bool has_address = returned != nullptr && decoded.value().text(reply_to) == direct_reply_to;
  if (!has_bcc && !has_address) return false;
  if (has_address) decoded.value().property[reply_to] = returned->property[reply_to];
  HeaderEdits edits;
  if (has_bcc) edits.keep = [](const void*, std::string_view name) { return name != "BCC"; };
  Buffer frame;
  if (!put_content_header(frame, 0, decoded.value(), edits, frame_bytes_max)) return false;
  shown.assign(frame.begin() + frame_head_bytes, frame.end() - 1);
  return true;
}

size_t hash_of(Bytes header) {
  return std::hash<std::string_view>{}(as_text(header));
}

}  // namespace

void Outcomes::remember_header(Sent& sent, Bytes header_payload) const {
  sent.sent_body_bytes = load_u64(header_payload.data() + 4);
  Buffer shown;
  const bool changed = show_as_the_broker(header_payload, nullptr, core_.frame_bytes_max, shown);
  sent.sent_header_hash = hash_of(changed ? Bytes(shown) : header_payload);
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

// A return carries no tag: it belongs to the earliest unsettled mandatory publish that looks like it. The
// broker gives the content header back byte for byte, but for what it had to do something about (BCC, a
// direct reply's address): then size and names have to be enough.
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
  Buffer shown;
  if (show_as_the_broker(found->header, &header.value(), core_.frame_bytes_max, shown))
    found->header = std::move(shown);
  return found;
}

bool Outcomes::on_tx_ok(Channel& channel) {
  if (channel.tx_ends_awaited.empty()) return true;
  Channel::TxEnd end = channel.tx_ends_awaited.front();
  channel.tx_ends_awaited.pop_front();
  if (end.own) return false;
  // A rolled-back publish's object goes with it.
  while (!channel.sent.empty() && channel.sent.front().tx_number <= end.number) channel.sent.pop_front();
  return true;
}

void Outcomes::release(Channel& channel, uint64_t client_tag) {
  answers_.clear();
  channel.confirms.release(client_tag, answers_);
  core_.releaser->write_answers(channel, answers_);
}

}  // namespace bellhop
