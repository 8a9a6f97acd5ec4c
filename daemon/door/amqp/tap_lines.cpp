#include "daemon/door/amqp/tap_lines.h"

#include <string>

#include "daemon/ops/log.h"
#include "proto/itinerary.h"
#include "proto/routing_slip.h"
#include "proto/trace_context.h"

namespace bellhop {

namespace {

LogFields begin(const SessionState& state, const char* direction) {
  return {{"time", log_time()},
          {"direction", direction},
          {"session", state.session_id},
          if_known("client", state.meter.own_client())};
}

void add_place_in_slip(LogFields& fields, Bytes header_fields) {
  if (const auto slip = proto::RoutingSlip::from(header_fields, {})) {
    fields.add({{"slip_position", slip->position()}, {"slip_steps", slip->steps().size()}});
  } else if (const auto text = proto::itinerary_text(header_fields)) {
    if (const auto itinerary = proto::Itinerary::parse(*text)) {
      const size_t done = itinerary.value().done().size();
      fields.add({{"slip_position", done}, {"slip_steps", done + itinerary.value().steps().size()}});
    }
  }
}

TapLine finished(std::string_view route, LogFields& fields, Bytes slip_fields, Bytes header_fields) {
  add_place_in_slip(fields, slip_fields);
  fields.add(if_known("trace_id", proto::trace_id_in(header_fields)));
  return {std::string(route), "{" + fields_as_json(fields) + "}"};
}

struct Address {
  std::string_view exchange, routing_key, consumer_tag;
};

Address address_of(DeliveryKind kind, Bytes method) {
  if (kind == DeliveryKind::deliver) {
    if (const auto deliver = proto::decode_deliver(method))
      return {deliver.value().exchange, deliver.value().routing_key, deliver.value().consumer_tag};
  } else if (const auto got = proto::decode_get_ok(method)) {
    return {got.value().exchange, got.value().routing_key, {}};
  }
  return {};
}

LogFields begin_delivery(const SessionState& state, const Address& address, std::string_view queue,
                         uint64_t size_bytes) {
  return begin(state, "delivery")
      .add({{"exchange", address.exchange},
            {"routing_key", address.routing_key},
            if_known("queue", queue),
            if_known("consumer_tag", address.consumer_tag),
            {"size", size_bytes}});
}

}  // namespace

void tell(const SessionState& state, const TapLine& line) {
  state.shared.taps.tell(line.route, line.text);
}

Bytes table_of(Bytes content_header) {
  const auto header = proto::decode_content_header(content_header);
  return header ? header.value().header_fields() : Bytes{};
}

TapLine tap_line(const SessionState& state, const TappedPublish& publish) {
  LogFields fields = begin(state, "publish");
  fields.add({{"exchange", publish.exchange}, {"routing_key", publish.routing_key}});
  if (publish.sent_exchange != publish.exchange || publish.sent_routing_key != publish.routing_key)
    fields.add({{"to_exchange", publish.sent_exchange}, {"to_routing_key", publish.sent_routing_key}});
  fields.add({{"size", publish.size_bytes}, if_known("route", publish.plan->name)});
  if (publish.claim != nullptr) fields.add({{"store", publish.claim->store}, {"key", publish.claim->key}});
  return finished(publish.plan->name, fields, publish.slip_fields, publish.header_fields);
}

TapLine tap_line(const SessionState& state, const Channel& channel, uint64_t size_bytes) {
  const DeliveryAssembly& out = channel.out;
  const Address address = address_of(out.kind, out.method.payload());
  std::string_view queue;
  if (const Consumer* consumer = channel.consumers.find(address.consumer_tag)) {
    queue = consumer->queue;
  } else if (out.kind == DeliveryKind::get_ok && !channel.gets_awaited.empty()) {
    queue = channel.gets_awaited.front().queue;
  }
  LogFields fields = begin_delivery(state, address, queue, size_bytes);
  const Bytes table = table_of(out.header.payload());
  return finished({}, fields, table, table);
}

TapLine tap_line(const SessionState& state, const Delivery& delivery) {
  const Address address = address_of(delivery.kind, delivery.method);
  LogFields fields = begin_delivery(state, address, delivery.queue, delivery.object->size_bytes());
  fields.add({{"store", delivery.store->name()}, {"key", delivery.key}});
  const Bytes table = table_of(delivery.header);
  return finished({}, fields, table, table);
}

}  // namespace bellhop
