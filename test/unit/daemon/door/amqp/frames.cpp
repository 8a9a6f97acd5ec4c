#include "test/unit/daemon/door/amqp/frames.h"

#include <map>

namespace bellhop::test {

namespace {

std::string settle(const char* name, Bytes payload) {
  const auto settle = proto::decode_settle(payload).value();
  return name + (" " + std::to_string(settle.delivery_tag)) + (settle.multiple ? " multiple" : "") +
         (settle.requeue ? " requeue" : "");
}

std::string shown_method(Bytes payload) {
  namespace method = proto::method;
  const uint32_t number = proto::method_number(payload);
  switch (number) {
    case method::basic_publish: {
      const auto publish = proto::decode_publish(payload).value();
      return "publish " + std::string(publish.exchange) + "/" + std::string(publish.routing_key);
    }
    case method::basic_deliver:
      return "deliver " + std::to_string(proto::decode_deliver(payload).value().delivery_tag);
    case method::basic_return: {
      const auto returned = proto::decode_return(payload).value();
      return "return " + std::to_string(returned.reply_code) + " " + std::string(returned.exchange) + "/" +
             std::string(returned.routing_key);
    }
    case method::basic_ack:
      return settle("ack", payload);
    case method::basic_nack:
      return settle("nack", payload);
    case method::basic_reject:
      return settle("reject", payload);
    case method::channel_close: {
      const auto close = proto::decode_close(payload).value();
      return "close " + std::to_string(close.reply_code);
    }
    default:
      break;
  }
  static const std::map<uint32_t, const char*> names = {
      {method::channel_open, "open"},     {method::channel_close_ok, "close-ok"},
      {method::confirm_select, "select"}, {method::confirm_select_ok, "select-ok"},
      {method::basic_consume, "consume"}, {method::basic_consume_ok, "consume-ok"},
      {method::basic_cancel, "cancel"},   {method::basic_cancel_ok, "cancel-ok"},
      {method::basic_get, "get"},         {method::basic_get_empty, "get-empty"},
      {method::basic_recover, "recover"}, {method::queue_declare, "declare"},
      {method::tx_select, "tx-select"},   {method::tx_commit, "commit"},
      {method::tx_rollback, "rollback"}};
  auto found = names.find(number);
  return found == names.end()
             ? "method " + std::to_string(number >> 16) + "." + std::to_string(number & 0xFFFF)
             : found->second;
}

}  // namespace

std::string shown(Bytes raw) {
  const proto::Frame frame = proto::whole_frame(raw);
  const std::string channel = std::to_string(frame.channel) + " ";
  if (frame.type == proto::frame_method) return channel + shown_method(frame.payload);
  if (frame.type == proto::frame_header)
    return channel + "header " + std::to_string(load_u64(frame.payload.data() + 4));
  return channel + "body " + std::string(as_text(frame.payload));
}

}  // namespace bellhop::test
