// The methods that a session reads or writes on its hot path, decoded straight from the payload, and the
// numbers of all methods that it tells apart. A method number is class << 16 | method (rabbitmq-c's
// amqp_method_number_t). Decoded views borrow from the payload. Every decoder returns an Error for a
// truncated payload and for trailing bytes.
#pragma once

#include <string>

#include "proto/bytes.h"
#include "proto/frame.h"
#include "proto/result.h"

namespace bellhop::proto {

// clang-format off
namespace method {
inline constexpr uint32_t connection_start = 0x000A000A, connection_start_ok = 0x000A000B, connection_secure = 0x000A0014,
  connection_secure_ok = 0x000A0015, connection_tune = 0x000A001E, connection_tune_ok = 0x000A001F, connection_open = 0x000A0028,
  connection_open_ok = 0x000A0029, connection_close = 0x000A0032, connection_close_ok = 0x000A0033,
  connection_blocked = 0x000A003C, connection_unblocked = 0x000A003D, connection_update_secret = 0x000A0046,
  connection_update_secret_ok = 0x000A0047,
  channel_open = 0x0014000A, channel_open_ok = 0x0014000B, channel_flow = 0x00140014, channel_flow_ok = 0x00140015,
  channel_close = 0x00140028, channel_close_ok = 0x00140029,
  exchange_declare = 0x0028000A, exchange_declare_ok = 0x0028000B, exchange_delete = 0x00280014,
  exchange_bind = 0x0028001E, exchange_unbind = 0x00280028,
  queue_declare = 0x0032000A, queue_declare_ok = 0x0032000B, queue_bind = 0x00320014, queue_delete = 0x00320028,
  queue_unbind = 0x00320032,
  basic_qos = 0x003C000A, basic_consume = 0x003C0014, basic_consume_ok = 0x003C0015, basic_cancel = 0x003C001E,
  basic_cancel_ok = 0x003C001F, basic_publish = 0x003C0028, basic_return = 0x003C0032, basic_deliver = 0x003C003C,
  basic_get = 0x003C0046, basic_get_ok = 0x003C0047, basic_get_empty = 0x003C0048, basic_ack = 0x003C0050,
  basic_reject = 0x003C005A, basic_recover_async = 0x003C0064, basic_recover = 0x003C006E, basic_recover_ok = 0x003C006F,
  basic_nack = 0x003C0078,
  confirm_select = 0x0055000A, confirm_select_ok = 0x0055000B,
  tx_select = 0x005A000A, tx_select_ok = 0x005A000B, tx_commit = 0x005A0014, tx_commit_ok = 0x005A0015,
  tx_rollback = 0x005A001E, tx_rollback_ok = 0x005A001F;
}
// clang-format on

inline constexpr uint16_t class_basic = 60;

// 0, which no method has, when the payload is too short.
inline uint32_t method_number(Bytes payload) {
  return payload.size() < 4 ? 0 : load_u32(payload.data());
}

struct Publish {
  std::string_view exchange, routing_key;
  bool mandatory = false, immediate = false;
};
struct Deliver {
  std::string_view consumer_tag;
  uint64_t delivery_tag = 0;
  bool redelivered = false;
  std::string_view exchange, routing_key;
};
struct GetOk {
  uint64_t delivery_tag = 0;
  bool redelivered = false;
  std::string_view exchange, routing_key;
  uint32_t message_count = 0;
};
struct Return {
  uint16_t reply_code = 0;
  std::string_view reply_text, exchange, routing_key;
};
// ack, nack and reject alike. `multiple` is false for a reject; `requeue` is false for an ack.
struct Settle {
  uint64_t delivery_tag = 0;
  bool multiple = false, requeue = false;
};
// connection.close and channel.close.
struct Close {
  uint16_t reply_code = 0;
  std::string_view reply_text;
  uint16_t class_id = 0, method_id = 0;
};
struct Tune {  // tune and tune-ok
  uint16_t channel_max = 0;
  uint32_t frame_max_bytes = 0;
  uint16_t heartbeat_s = 0;
};

// Precondition of each decoder: method_number(payload) is one of its methods.
Result<Publish> decode_publish(Bytes payload);
Result<Deliver> decode_deliver(Bytes payload);
Result<GetOk> decode_get_ok(Bytes payload);
Result<Return> decode_return(Bytes payload);
Result<Settle> decode_settle(Bytes payload);  // basic.ack, basic.nack, basic.reject
Result<Close> decode_close(Bytes payload);    // connection.close, channel.close
Result<Tune> decode_tune(Bytes payload);      // connection.tune, connection.tune-ok

// Each writes a whole method frame.
void put_publish(Buffer& out, uint16_t channel, const Publish& publish);
void put_return(Buffer& out, uint16_t channel, const Return& returned);
void put_ack(Buffer& out, uint16_t channel, uint64_t delivery_tag, bool multiple);
void put_nack(Buffer& out, uint16_t channel, uint64_t delivery_tag, bool multiple, bool requeue);
void put_reject(Buffer& out, uint16_t channel, uint64_t delivery_tag, bool requeue);
// `number` is connection_close or channel_close. Cuts the text at 255 bytes.
void put_close(Buffer& out, uint32_t number, uint16_t channel, const Close& close);
void put_tune(Buffer& out, uint32_t number, const Tune& tune);
// A method without arguments, or with `argument_bytes` bytes of arguments that are all zero (channel.open,
// tx.select-ok, ...).
void put_empty_method(Buffer& out, uint32_t number, uint16_t channel, size_t argument_bytes = 0);

// --- through rabbitmq-c's amqp_decode_method; strings are copied ---

struct StartOk {
  Buffer client_properties;  // the encoded table, its length first, byte for byte
  std::string mechanism, response, locale;
};
struct Consume {
  std::string queue, consumer_tag;
  bool no_local = false, no_ack = false, exclusive = false, nowait = false;
};
struct Get {
  std::string queue;
  bool no_ack = false;
};
struct QueueDeclare {
  std::string queue;
  bool passive = false, exclusive = false, nowait = false;
};
// The one or two exchanges that an exchange.* or queue.bind/unbind method names.
struct NamedExchanges {
  std::string first, second;
  bool passive = false, nowait = false;  // of an exchange.declare
};

Result<StartOk> decode_start_ok(Bytes payload);
void put_start_ok(Buffer& out, const StartOk& start_ok);
Result<std::string> decode_open(Bytes payload);  // connection.open: the virtual host
void put_open(Buffer& out, std::string_view vhost);
Result<std::string> decode_start_mechanisms(
    Bytes payload);  // connection.start: its mechanisms, blank separated
Result<Consume> decode_consume(Bytes payload);
Result<std::string> decode_consume_ok(
    Bytes payload);  // the consumer tag; also basic.cancel and basic.cancel-ok
Result<Get> decode_get(Bytes payload);
void put_get(Buffer& out, uint16_t channel, const Get& get);
Result<QueueDeclare> decode_queue_declare(Bytes payload);
void put_exchange_declare_passive(Buffer& out, uint16_t channel, std::string_view exchange);
// exchange.declare of a durable direct exchange with an argument that the broker takes for none: an exchange
// that is not there is not made, and of one that is there the refusal says what is different, its type first.
void put_exchange_declare_as_direct(Buffer& out, uint16_t channel, std::string_view exchange);
void put_queue_declare(Buffer& out, uint16_t channel, std::string_view queue, bool durable);
Result<std::string> decode_queue_declare_ok(Bytes payload);  // the queue's name
Result<std::string> decode_queue_delete(Bytes payload);      // the queue's name
Result<NamedExchanges> decode_named_exchanges(Bytes payload);

}  // namespace bellhop::proto
