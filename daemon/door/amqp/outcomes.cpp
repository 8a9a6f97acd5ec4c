#include "daemon/door/amqp/outcomes.h"

#include <algorithm>

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

}  // namespace

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

// A return carries no tag: it belongs to the earliest unsettled mandatory publish that looks like it.
std::unique_ptr<Sent> Outcomes::match_return(Channel& channel) {
  auto returned = decode_return(channel.out.method.payload());
  auto header = decode_content_header(channel.out.header.payload());
  if (!returned || !header) return nullptr;
  std::string_view key = claim_key_of(header.value());
  std::string_view id = header.value().text(message_id);
  auto match = std::find_if(channel.sent.begin(), channel.sent.end(), [&](const Sent& sent) {
    const auto& claim = sent.transaction.claim();
    return sent.mandatory && !sent.returned && sent.sent_exchange == returned.value().exchange &&
           sent.sent_routing_key == returned.value().routing_key && sent.message_id == id &&
           (claim ? std::string_view(claim->key) : std::string_view{}) == key;
  });
  if (match == channel.sent.end()) return nullptr;
  auto found = std::make_unique<Sent>(std::move(*match));
  channel.sent.erase(match);
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
