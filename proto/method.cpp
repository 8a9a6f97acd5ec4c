// The methods that pass once a message or more: read and written straight on the bytes.
#include "proto/method.h"

#include "proto/writer.h"

namespace bellhop::proto {

namespace {

constexpr size_t method_number_bytes = 4;

Reader arguments_of(Bytes payload) {
  return Reader(payload.size() < method_number_bytes ? Bytes{} : payload.subspan(method_number_bytes));
}

// The value, if the reader took all of the arguments and no more.
template <typename T>
Result<T> whole(const Reader& reader, const char* name, const T& value) {
  if (!reader.ok()) return Error{std::string(name) + ": the arguments are cut off"};
  if (!reader.rest().empty()) {
    return Error{std::string(name) + ": " + std::to_string(reader.rest().size()) +
                 " bytes after the last argument"};
  }
  return value;
}

// A whole method frame, but for its arguments, which the caller writes next.
Writer open_method(Buffer& out, uint32_t number, uint16_t channel, size_t argument_bytes) {
  const size_t payload_bytes = method_number_bytes + argument_bytes;
  Writer writer(out, payload_bytes + frame_overhead_bytes);
  out.back() = frame_end;
  writer.u8(frame_method);
  writer.u16(channel);
  writer.u32(static_cast<uint32_t>(payload_bytes));
  writer.u32(number);
  return writer;
}

constexpr uint8_t bit(bool value, int place) {
  return static_cast<uint8_t>(value ? 1 << place : 0);
}

}  // namespace

Result<Publish> decode_publish(Bytes payload) {
  Reader in = arguments_of(payload);
  Publish publish;
  in.u16();  // ticket
  publish.exchange = in.shortstr();
  publish.routing_key = in.shortstr();
  const uint8_t bits = in.u8();
  publish.mandatory = (bits & 1) != 0;
  publish.immediate = (bits & 2) != 0;
  return whole(in, "basic.publish", publish);
}

Result<Deliver> decode_deliver(Bytes payload) {
  Reader in = arguments_of(payload);
  Deliver deliver;
  deliver.consumer_tag = in.shortstr();
  deliver.delivery_tag = in.u64();
  deliver.redelivered = (in.u8() & 1) != 0;
  deliver.exchange = in.shortstr();
  deliver.routing_key = in.shortstr();
  return whole(in, "basic.deliver", deliver);
}

Result<GetOk> decode_get_ok(Bytes payload) {
  Reader in = arguments_of(payload);
  GetOk get_ok;
  get_ok.delivery_tag = in.u64();
  get_ok.redelivered = (in.u8() & 1) != 0;
  get_ok.exchange = in.shortstr();
  get_ok.routing_key = in.shortstr();
  get_ok.message_count = in.u32();
  return whole(in, "basic.get-ok", get_ok);
}

Result<Return> decode_return(Bytes payload) {
  Reader in = arguments_of(payload);
  Return returned;
  returned.reply_code = in.u16();
  returned.reply_text = in.shortstr();
  returned.exchange = in.shortstr();
  returned.routing_key = in.shortstr();
  return whole(in, "basic.return", returned);
}

Result<Settle> decode_settle(Bytes payload) {
  Reader in = arguments_of(payload);
  Settle settle;
  settle.delivery_tag = in.u64();
  const uint8_t bits = in.u8();
  const uint32_t number = method_number(payload);
  if (number == method::basic_reject) {
    settle.requeue = (bits & 1) != 0;
  } else {
    settle.multiple = (bits & 1) != 0;
    settle.requeue = number == method::basic_nack && (bits & 2) != 0;
  }
  return whole(in, "basic.ack, nack or reject", settle);
}

Result<Close> decode_close(Bytes payload) {
  Reader in = arguments_of(payload);
  Close close;
  close.reply_code = in.u16();
  close.reply_text = in.shortstr();
  close.class_id = in.u16();
  close.method_id = in.u16();
  return whole(in, "close", close);
}

Result<Tune> decode_tune(Bytes payload) {
  Reader in = arguments_of(payload);
  Tune tune;
  tune.channel_max = in.u16();
  tune.frame_max_bytes = in.u32();
  tune.heartbeat_s = in.u16();
  return whole(in, "connection.tune", tune);
}

void put_publish(Buffer& out, uint16_t channel, const Publish& publish) {
  const auto exchange = shortstr_cut(publish.exchange), key = shortstr_cut(publish.routing_key);
  Writer to = open_method(out, method::basic_publish, channel, 2 + 1 + exchange.size() + 1 + key.size() + 1);
  to.u16(0);
  to.shortstr(exchange);
  to.shortstr(key);
  to.u8(bit(publish.mandatory, 0) | bit(publish.immediate, 1));
}

void put_return(Buffer& out, uint16_t channel, const Return& returned) {
  const auto text = shortstr_cut(returned.reply_text), exchange = shortstr_cut(returned.exchange),
             key = shortstr_cut(returned.routing_key);
  Writer to = open_method(out, method::basic_return, channel,
                          2 + 1 + text.size() + 1 + exchange.size() + 1 + key.size());
  to.u16(returned.reply_code);
  to.shortstr(text);
  to.shortstr(exchange);
  to.shortstr(key);
}

void put_ack(Buffer& out, uint16_t channel, uint64_t delivery_tag, bool multiple) {
  Writer to = open_method(out, method::basic_ack, channel, 9);
  to.u64(delivery_tag);
  to.u8(bit(multiple, 0));
}

void put_nack(Buffer& out, uint16_t channel, uint64_t delivery_tag, bool multiple, bool requeue) {
  Writer to = open_method(out, method::basic_nack, channel, 9);
  to.u64(delivery_tag);
  to.u8(bit(multiple, 0) | bit(requeue, 1));
}

void put_reject(Buffer& out, uint16_t channel, uint64_t delivery_tag, bool requeue) {
  Writer to = open_method(out, method::basic_reject, channel, 9);
  to.u64(delivery_tag);
  to.u8(bit(requeue, 0));
}

void put_close(Buffer& out, uint32_t number, uint16_t channel, const Close& close) {
  const auto text = shortstr_cut(close.reply_text);
  Writer to = open_method(out, number, channel, 2 + 1 + text.size() + 4);
  to.u16(close.reply_code);
  to.shortstr(text);
  to.u16(close.class_id);
  to.u16(close.method_id);
}

void put_tune(Buffer& out, uint32_t number, const Tune& tune) {
  Writer to = open_method(out, number, 0, 8);
  to.u16(tune.channel_max);
  to.u32(tune.frame_max_bytes);
  to.u16(tune.heartbeat_s);
}

void put_empty_method(Buffer& out, uint32_t number, uint16_t channel, size_t argument_bytes) {
  open_method(out, number, channel, argument_bytes);  // the buffer grew by zeros
}

}  // namespace bellhop::proto
