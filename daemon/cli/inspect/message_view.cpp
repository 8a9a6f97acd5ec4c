#include "daemon/cli/inspect/message_view.h"

#include <fmt/format.h>

#include "daemon/cli/inspect/field_json.h"
#include "daemon/cli/inspect/slip_view.h"
#include "daemon/cli/inspect/words.h"
#include "daemon/pipeline/deaths.h"
#include "daemon/pipeline/park.h"
#include "proto/claim_frame.h"
#include "proto/itinerary.h"

namespace bellhop {

namespace {

using Json = nlohmann::ordered_json;

struct ShortString {
  proto::Property which;
  const char* name;
};
constexpr ShortString short_strings[] = {{proto::content_type, "content_type"},
                                         {proto::content_encoding, "content_encoding"},
                                         {proto::correlation_id, "correlation_id"},
                                         {proto::reply_to, "reply_to"},
                                         {proto::expiration, "expiration"},
                                         {proto::message_id, "message_id"},
                                         {proto::type, "type"},
                                         {proto::user_id, "user_id"},
                                         {proto::app_id, "app_id"},
                                         {proto::cluster_id, "cluster_id"}};

Json properties_of(const proto::ContentHeader& header) {
  Json out = Json::object();
  for (const auto& [which, name] : short_strings) {
    if (header.has(which)) out[name] = json_text(header.text(which));
  }
  if (header.has(proto::delivery_mode)) out["delivery_mode"] = header.property[proto::delivery_mode][0];
  if (header.has(proto::priority)) out["priority"] = header.property[proto::priority][0];
  if (header.has(proto::timestamp))
    out["timestamp"] =
        proto::utc_seconds(static_cast<int64_t>(load_u64(header.property[proto::timestamp].data())));
  return out;
}

std::string line(std::string_view name, const std::string& text, size_t indent = 2) {
  return fmt::format("{:{}}{:<{}}{}\n", "", indent, name, 20 - indent, text);
}

std::string in_words(const Death& death) {
  return fmt::format("{} x {} in {}{}", death.count, printable(death.reason), printable(death.queue),
                     death.first_at_s == 0 ? "" : ", first " + utc_in_words(death.first_at_s));
}

std::string shown(const Json& value) {
  return printable(value.is_string() ? value.get<std::string>()
                                     : value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

MessageView::MessageView(const Incoming& message) : message_(message) {
  if (const auto decoded = proto::decode_content_header(message.header)) header_ = decoded.value();
  if (auto key = claim_key_of(message.body)) {
    ClaimHeaders headers = claim_headers_of(fields(), *key);
    claim_ = WantedObject{std::move(*key), std::move(headers)};
  }
}

std::optional<std::string> MessageView::text_of(std::string_view name) const {
  const auto field = proto::find_field(fields(), name);
  return field ? proto::field_text(*field) : std::nullopt;
}

int64_t MessageView::delivery_count() const {
  return delivery_count_of(fields());
}

Bytes MessageView::own_payload() const {
  const Bytes body = message_.body;
  return proto::framing_of(body) == proto::Framing::inlined ? body.subspan(proto::claim_prefix_bytes) : body;
}

std::string MessageView::name(uint64_t number) const {
  const std::string_view id = header_.text(proto::message_id);
  return fmt::format("message {}{}", number, id.empty() ? "" : ", message-id " + printable(id));
}

std::string in_words(const MessageView& view, uint64_t number, const ClaimReport* claim, int64_t now_s) {
  const Incoming& message = view.message();
  std::string out = fmt::format("message {}\n", number);
  out += line("published to",
              fmt::format("{}, routing key '{}'{}",
                          message.exchange.empty() ? "the default exchange"
                                                   : "exchange '" + printable(message.exchange) + "'",
                          printable(message.routing_key), message.redelivered ? ", redelivered" : ""));
  if (const auto why = view.text_of(error_header)) out += line("parked because", printable(*why, 2000));
  const auto deaths = deaths_of(view.fields());
  for (const Death& death : deaths) out += line(&death == &deaths.front() ? "died" : "", in_words(death));
  if (const auto slip = slip_of(view.fields())) out += line("slip", in_words(*slip));
  if (claim != nullptr) {
    out += line("claim", printable(claim->key));
    for (const auto& [name, text] : lines_of(*claim, now_s)) out += line(name, text, 4);
  } else {
    const bool is_inline = proto::framing_of(message.body) == proto::Framing::inlined;
    out += line("payload", fmt::format("{}, in the message{}", bytes_in_words(view.own_payload().size()),
                                       is_inline ? " (framed inline)" : ""));
  }
  const Json properties = properties_of(view.header());
  for (const auto& [name, value] : properties.items()) out += line(name, shown(value));
  const Json headers = json_of_table(view.fields());
  if (headers.empty()) return out;
  out += "  headers\n";
  for (const auto& [name, value] : headers.items())
    out += fmt::format("    {}: {}\n", printable(name), shown(value));
  return out;
}

Json json_of(const MessageView& view, uint64_t number, const ClaimReport* claim, int64_t now_s) {
  const Incoming& message = view.message();
  Json out{{"number", number},
           {"exchange", json_text(message.exchange)},
           {"routing_key", json_text(message.routing_key)},
           {"redelivered", message.redelivered}};
  if (const auto why = view.text_of(error_header)) out["parked_because"] = json_text(*why);
  for (const Death& death : deaths_of(view.fields())) {
    Json each{{"queue", json_text(death.queue)}, {"reason", json_text(death.reason)}, {"count", death.count}};
    if (death.first_at_s != 0) each["first_at"] = proto::utc_seconds(death.first_at_s);
    out["deaths"].push_back(std::move(each));
  }
  if (const auto slip = slip_of(view.fields())) {
    out["slip"] = {{"form", slip->is_itinerary ? "itinerary" : "route"}};
    if (!slip->problem.empty()) {
      out["slip"]["problem"] = json_text(slip->problem);
    } else {
      out["slip"]["steps"] = Json::array();
      for (const std::string& step : slip->steps) out["slip"]["steps"].push_back(json_text(step));
      out["slip"]["position"] = slip->position;
      out["slip"]["current"] =
          slip->position < slip->steps.size() ? Json(json_text(slip->steps[slip->position])) : Json();
      if (!slip->run_id.empty()) out["slip"]["run_id"] = json_text(slip->run_id);
    }
  }
  if (claim != nullptr) {
    out["claim"] = json_of(*claim, now_s);
  } else {
    out["payload_bytes"] = view.own_payload().size();
  }
  out["properties"] = properties_of(view.header());
  out["headers"] = json_of_table(view.fields());
  return out;
}

}  // namespace bellhop
