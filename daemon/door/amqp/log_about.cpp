#include "daemon/door/amqp/log_about.h"

#include "daemon/door/amqp/delivery.h"
#include "daemon/door/amqp/publish.h"
#include "proto/trace_context.h"

namespace bellhop {

LogFields about(const SessionState& state, uint16_t channel, const PublishJob& job) {
  LogFields fields = state.who({{"channel", channel}});
  if (const auto publish = proto::decode_publish(job.method))
    fields.add({{"exchange", publish.value().exchange}, {"routing_key", publish.value().routing_key}});
  add_message(fields, job.header);
  if (const auto header = proto::decode_content_header(job.header))
    fields.add({"size", header.value().body_bytes});
  if (const auto& claim = job.stored.claim()) {
    fields.add({{"store", claim->store}, {"key", claim->key}});
  } else if (job.store != nullptr) {
    fields.add({"store", job.store->name()});
  }
  return fields;
}

LogFields about(const SessionState& state, const Delivery& delivery) {
  LogFields fields = state.who({{"channel", delivery.channel}, if_known("queue", delivery.queue)});
  if (delivery.kind == DeliveryKind::returned) {
    if (const auto returned = proto::decode_return(delivery.method))
      fields.add({{"exchange", returned.value().exchange}, {"routing_key", returned.value().routing_key}});
  }
  add_message(fields, delivery.header);
  fields.add({if_known("store", delivery.named_store), if_known("key", delivery.key)});
  return fields;
}

void add_message(LogFields& fields, Bytes content_header) {
  const auto header = proto::decode_content_header(content_header);
  if (!header) return;
  fields.add({if_known("message_id", header.value().text(proto::message_id)),
              if_known("trace_id", proto::trace_id_in(header.value().header_fields()))});
}

}  // namespace bellhop
