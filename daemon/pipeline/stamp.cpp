#include "daemon/pipeline/stamp.h"

#include <chrono>

#include "daemon/pipeline/fill_in.h"
#include "daemon/pipeline/next_stop.h"
#include "proto/claim_frame.h"
#include "proto/envelope.h"
#include "proto/routing_slip.h"
#include "proto/table.h"

namespace bellhop {

namespace {

constexpr std::string_view claim_header_prefix = "bellhop-claim-";

bool keep_foreign(const void*, std::string_view name) {
  return !is_claim_header(name);
}

// What the client's own table already has that matters here.
struct TableFacts {
  bool has_claim = false, has_slip = false;
};

TableFacts look_at(Bytes fields) {
  TableFacts facts;
  proto::TableCursor cursor(fields);
  while (auto field = cursor.next()) {
    if (is_claim_header(field->name)) facts.has_claim = true;
    if (field->name == proto::slip_route_header || field->name == proto::itinerary_header)
      facts.has_slip = true;
  }
  return facts;
}

// What a message is sent without rather than not at all goes first: the message id that bellhop fills in, the
// claim's headers (a reader needs only the body), the delivery mode. False: the rest does not fit either.
bool put_header_that_fits(Buffer& out, uint16_t channel, const proto::ContentHeader& header,
                          proto::HeaderEdits& edits, size_t claim_headers_bytes, size_t frame_bytes_max) {
  const auto fits = [&] { return proto::put_content_header(out, channel, header, edits, frame_bytes_max); };
  if (fits()) return true;
  edits.message_id = {};
  if (fits()) return true;
  edits.append = edits.append.subspan(claim_headers_bytes);
  if (fits()) return true;
  edits.delivery_mode.reset();
  return fits();
}

int64_t epoch_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

bool is_claim_header(std::string_view name) {
  return name.starts_with(claim_header_prefix) && (name == claim_key_header || name == claim_store_header ||
                                                   name == claim_size_header || name == claim_xxh128_header);
}

void put_claim_headers(Buffer& out, const Claim& claim, bool had_table) {
  if (!had_table) proto::put_field(out, claim_key_header, claim.key);
  proto::put_field(out, claim_store_header, claim.store);
  if (had_table) proto::put_field(out, claim_key_header, claim.key);
  proto::put_field(out, claim_size_header, static_cast<int64_t>(claim.size_bytes));
  proto::put_field(out, claim_xxh128_header, claim.xxh128);
}

bool had_no_table(Bytes fields) {
  proto::TableCursor cursor(fields);
  auto first = cursor.next();
  return first && first->name == claim_key_header;
}

bool carries_slip(Bytes fields) {
  return look_at(fields).has_slip;
}

void Stamper::start_slip(const StampInput& input, Stamped& stamped) {
  const config::Plan& plan = input.plan;
  put(fields_, plan.slip_fields);
  if (plan.itinerary) {
    const proto::Stop* first = plan.itinerary->current();
    stamped.exchange = first->exchange;
    stamped.routing_key = first->routing_key;
    return;
  }
  const proto::UuidGenerator::Text run_id = uuids_.next();
  std::memcpy(fields_.data() + fields_.size() - run_id.size(), run_id.data(), run_id.size());
  stamped.exchange = plan.pipeline->name;
  stamped.routing_key = plan.pipeline->steps.front();
  if (input.missing_exchanges != nullptr && !input.missing_exchanges->empty()) {
    auto to = with_exchange({plan.pipeline->name, plan.pipeline->steps.front(), plan.pipeline->name},
                            *input.missing_exchanges);
    exchange_ = std::move(to.exchange);
    routing_key_ = std::move(to.routing_key);
    stamped.exchange = exchange_;
    stamped.routing_key = routing_key_;
  }
}

Stamped Stamper::write(Buffer& out, uint16_t channel, const StampInput& input, size_t frame_bytes_max) {
  const config::Plan& plan = input.plan;
  const proto::ContentHeader& header = input.header;
  Bytes table = header.header_fields();
  TableFacts facts = table.empty() ? TableFacts{} : look_at(table);

  Stamped stamped;
  stamped.exchange = plan.to_exchange ? std::string_view(*plan.to_exchange) : input.publish.exchange;
  stamped.routing_key =
      plan.to_routing_key ? std::string_view(*plan.to_routing_key) : input.publish.routing_key;
  bool has_target = !input.by_name;
  if (input.by_name && plan.named_exchange && plan.named_routing_key) {
    stamped.exchange = *plan.named_exchange;
    stamped.routing_key = *plan.named_routing_key;
    has_target = true;
  }
  fields_.clear();
  if (input.claim != nullptr) put_claim_headers(fields_, *input.claim, header.has(proto::headers));
  const size_t claim_headers_bytes = fields_.size();
  if (plan.pipeline != nullptr || plan.itinerary) {
    if (facts.has_slip) {
      auto stop = current_stop(table, plan.pipeline, input.routing);
      if (!stop) {
        stamped.refused_code = 406;
        stamped.refused_text = stop.error();
        return stamped;
      }
      if (stop.value()) {
        Destination to = std::move(*stop.value());
        if (input.missing_exchanges != nullptr) to = with_exchange(std::move(to), *input.missing_exchanges);
        exchange_ = std::move(to.exchange);
        routing_key_ = std::move(to.routing_key);
        stamped.exchange = exchange_;
        stamped.routing_key = routing_key_;
      } else if (!has_target) {
        stamped.refused_code = 406;
        stamped.refused_text = "PRECONDITION_FAILED - routing slip: it is finished, and route '" + plan.name +
                               "' by its name leads nowhere else";
        return stamped;
      }
    } else {
      start_slip(input, stamped);
    }
  }
  for (const config::Plan::StaticHeader& fixed : plan.headers) {
    if (!proto::find_field(table, fixed.name)) put(fields_, fixed.encoded);
  }

  proto::HeaderEdits edits;
  stamped.message_id = fill_in(edits, plan, header, uuids_, message_id_);
  if (plan.stamp.envelope) {
    proto::put_envelope(fields_, header,
                        {stamped.message_id, input.publish.routing_key, epoch_ms(), input.origin});
  }
  if (facts.has_claim) edits.keep = keep_foreign;
  edits.append = fields_;
  if (input.claim != nullptr) {
    edits.body_bytes = proto::claim_prefix_bytes + input.claim->key.size();
  } else if (input.framing_bytes != 0) {
    edits.body_bytes = header.body_bytes + input.framing_bytes;
  }

  bool same_destination = stamped.exchange.data() == input.publish.exchange.data() &&
                          stamped.routing_key.data() == input.publish.routing_key.data();
  bool same_header = fields_.empty() && edits.message_id.empty() && !edits.delivery_mode &&
                     !facts.has_claim && !edits.body_bytes;
  if (same_destination && same_header) {
    stamped.as_it_is = true;
    return stamped;
  }
  size_t before = out.size();
  proto::Publish sent = input.publish;
  sent.exchange = stamped.exchange;
  sent.routing_key = stamped.routing_key;
  proto::put_publish(out, channel, sent);
  stamped.header_at = out.size() + proto::frame_head_bytes;
  if (!put_header_that_fits(out, channel, header, edits, claim_headers_bytes, frame_bytes_max)) {
    out.resize(before);
    stamped.refused_code = 311;
    stamped.refused_text = "the content header does not fit frame_max (" + std::to_string(frame_bytes_max) +
                           " bytes) once what the route adds is in it, or its headers table is malformed";
    return stamped;
  }
  if (!header.has(proto::message_id)) stamped.message_id = edits.message_id;
  return stamped;
}

}  // namespace bellhop
