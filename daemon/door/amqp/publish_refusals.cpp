#include "daemon/door/amqp/publish_refusals.h"

#include <fmt/format.h>

#include "daemon/ops/trouble.h"

namespace bellhop {

namespace {

// For a log: which of the client's publishes it was.
std::string about(const PublishJob& job) {
  auto publish = proto::decode_publish(job.method);
  auto header = proto::decode_content_header(job.header);
  if (!publish || !header) return "exchange=? routing_key=?";
  std::string out = fmt::format("exchange=\"{}\" routing_key=\"{}\" message_id=\"{}\" bytes={}",
                                publish.value().exchange, publish.value().routing_key,
                                header.value().text(proto::message_id), header.value().body_bytes);
  if (const auto& claim = job.stored.claim()) out += " key=" + claim->key;
  return out;
}

}  // namespace

void PublishRefusals::refuse(Channel& channel, const PublishJob& job, uint16_t code, const std::string& text,
                             bool closes) {
  state_.meter.settle(job.mark, PublishOutcome::refused);
  // A store that takes nothing is one trouble, whatever it says about each payload.
  const bool is_of_store = job.store != nullptr && job.refused_code != 0;
  tell_trouble(trouble_publish_refused,
               is_of_store ? "store '" + job.store->name() + "'" : subject_of_reason(text),
               fmt::format("session={} channel={} publish refused {} code={} reason=\"{}\"",
                           state_.session_id, channel.id, about(job), code, text));
  if (channel.confirm && !closes) {
    tracker_.settle_local(channel, tracker_.take_local_tag(channel), true);
    return;
  }
  closing_.close(channel, code, text, proto::method::basic_publish);
}

}  // namespace bellhop
