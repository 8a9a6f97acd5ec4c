// The methods that pass once a connection, a channel or a consumer: read and written through rabbitmq-c.
//
// rabbitmq-c takes arguments as they come: it ignores bytes after the last one, and nested tables make it
// recurse as deep as a peer likes. So the arguments are first measured against the method's layout, tables
// walked to a bounded depth, and only what fits exactly is handed to it.
#include <amqp.h>
#include <amqp_framing.h>

#include <initializer_list>

#include "proto/method.h"
#include "proto/table.h"

namespace bellhop::proto {

namespace {

// One letter an argument: o octet or packed bits, h short, w long, s short string, S long string, T table.
struct Layout {
  uint32_t number;
  const char* name;
  const char* arguments;
};

constexpr Layout layouts[] = {
    {method::connection_start, "connection.start", "ooTSS"},
    {method::connection_start_ok, "connection.start-ok", "TsSs"},
    {method::connection_open, "connection.open", "sso"},
    {method::exchange_declare, "exchange.declare", "hssoT"},
    {method::exchange_delete, "exchange.delete", "hso"},
    {method::exchange_bind, "exchange.bind", "hsssoT"},
    {method::exchange_unbind, "exchange.unbind", "hsssoT"},
    {method::queue_declare, "queue.declare", "hsoT"},
    {method::queue_declare_ok, "queue.declare-ok", "sww"},
    {method::queue_bind, "queue.bind", "hsssoT"},
    {method::queue_delete, "queue.delete", "hso"},
    {method::queue_unbind, "queue.unbind", "hsssT"},
    {method::basic_consume, "basic.consume", "hssoT"},
    {method::basic_consume_ok, "basic.consume-ok", "s"},
    {method::basic_cancel, "basic.cancel", "so"},
    {method::basic_cancel_ok, "basic.cancel-ok", "s"},
    {method::basic_get, "basic.get", "hso"},
    {method::confirm_select, "confirm.select", "o"},
};

const Layout* layout_of(uint32_t number, std::initializer_list<uint32_t> allowed) {
  for (const uint32_t one : allowed) {
    if (one != number) continue;
    for (const Layout& layout : layouts) {
      if (layout.number == number) return &layout;
    }
  }
  return nullptr;
}

// What is wrong with the arguments, nothing when they fit the layout exactly.
const char* misfit(Bytes arguments, const char* layout) {
  Reader in(arguments);
  for (; *layout != '\0' && in.ok(); ++layout) {
    switch (*layout) {
      case 'o':
        in.u8();
        break;
      case 'h':
        in.u16();
        break;
      case 'w':
        in.u32();
        break;
      case 's':
        in.shortstr();
        break;
      case 'S':
        in.longstr();
        break;
      default:
        if (!table_is_well_formed(in.longstr())) return "a table that is malformed or nested too deep";
    }
  }
  if (!in.ok()) return "the arguments are cut off";
  return in.rest().empty() ? nullptr : "bytes after the last argument";
}

std::string text(amqp_bytes_t bytes) {
  return bytes.len == 0 ? std::string() : std::string(static_cast<const char*>(bytes.bytes), bytes.len);
}

amqp_bytes_t borrowed(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}

// The decoded arguments of one method, in a pool of their own.
class Arguments {
 public:
  Arguments(Bytes payload, std::initializer_list<uint32_t> allowed) : number_(method_number(payload)) {
    init_amqp_pool(&pool_, 4096);
    const Layout* layout = layout_of(number_, allowed);
    if (layout == nullptr) {
      problem_ = "a method that is not expected here";
      return;
    }
    name_ = layout->name;
    const Bytes arguments = payload.subspan(4);
    problem_ = misfit(arguments, layout->arguments);
    if (problem_ != nullptr) return;
    const amqp_bytes_t encoded = {arguments.size(), const_cast<uint8_t*>(arguments.data())};
    if (amqp_decode_method(number_, &pool_, encoded, &decoded_) != AMQP_STATUS_OK || decoded_ == nullptr) {
      problem_ = "the arguments cannot be decoded";
    }
  }
  ~Arguments() { empty_amqp_pool(&pool_); }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  uint32_t number() const { return number_; }
  bool ok() const { return problem_ == nullptr; }
  Error error() const { return Error{std::string(name_) + ": " + problem_}; }
  // Precondition: ok(), and T is the struct of number().
  template <typename T>
  const T& as() const {
    return *static_cast<const T*>(decoded_);
  }

 private:
  amqp_pool_t pool_;
  uint32_t number_;
  const char* name_ = "method";
  const char* problem_ = nullptr;
  void* decoded_ = nullptr;
};

// Precondition: the encoded arguments take at most 1024 bytes, which three short strings and an empty table
// do.
template <typename T>
void put_method(Buffer& out, uint32_t number, uint16_t channel, T arguments) {
  uint8_t raw[1024];
  const int bytes = amqp_encode_method(number, &arguments, {sizeof raw, raw});
  assert(bytes >= 0);
  const size_t begin = begin_frame(out, frame_method, channel);
  put_u32(out, number);
  put(out, {raw, bytes < 0 ? size_t{0} : static_cast<size_t>(bytes)});
  end_frame(out, begin);
}

}  // namespace

Result<StartOk> decode_start_ok(Bytes payload) {
  const Arguments in(payload, {method::connection_start_ok});
  if (!in.ok()) return in.error();
  const auto& from = in.as<amqp_connection_start_ok_t>();
  // The broker is to see the client's own table, not one written anew.
  const size_t table_bytes = size_t{4} + load_u32(payload.data() + 4);
  const Bytes table = payload.subspan(4, table_bytes);
  return StartOk{Buffer(table.begin(), table.end()), text(from.mechanism), text(from.response),
                 text(from.locale)};
}

void put_start_ok(Buffer& out, const StartOk& start_ok) {
  const size_t begin = begin_frame(out, frame_method, 0);
  put_u32(out, method::connection_start_ok);
  put(out, start_ok.client_properties);
  put_shortstr(out, start_ok.mechanism);
  put_longstr(out, start_ok.response);
  put_shortstr(out, start_ok.locale);
  end_frame(out, begin);
}

Result<std::string> decode_open(Bytes payload) {
  const Arguments in(payload, {method::connection_open});
  if (!in.ok()) return in.error();
  return text(in.as<amqp_connection_open_t>().virtual_host);
}

void put_open(Buffer& out, std::string_view vhost) {
  amqp_connection_open_t open = {};
  open.virtual_host = borrowed(vhost.substr(0, 255));
  put_method(out, method::connection_open, 0, open);
}

Result<std::string> decode_start_mechanisms(Bytes payload) {
  const Arguments in(payload, {method::connection_start});
  if (!in.ok()) return in.error();
  return text(in.as<amqp_connection_start_t>().mechanisms);
}

Result<Consume> decode_consume(Bytes payload) {
  const Arguments in(payload, {method::basic_consume});
  if (!in.ok()) return in.error();
  const auto& from = in.as<amqp_basic_consume_t>();
  return Consume{text(from.queue), text(from.consumer_tag), from.no_local != 0,
                 from.no_ack != 0, from.exclusive != 0,     from.nowait != 0};
}

Result<std::string> decode_consume_ok(Bytes payload) {
  const Arguments in(payload, {method::basic_consume_ok, method::basic_cancel, method::basic_cancel_ok});
  if (!in.ok()) return in.error();
  switch (in.number()) {
    case method::basic_consume_ok:
      return text(in.as<amqp_basic_consume_ok_t>().consumer_tag);
    case method::basic_cancel:
      return text(in.as<amqp_basic_cancel_t>().consumer_tag);
    default:
      return text(in.as<amqp_basic_cancel_ok_t>().consumer_tag);
  }
}

Result<std::string> decode_queue_delete(Bytes payload) {
  const Arguments in(payload, {method::queue_delete});
  if (!in.ok()) return in.error();
  return text(in.as<amqp_queue_delete_t>().queue);
}

Result<Get> decode_get(Bytes payload) {
  const Arguments in(payload, {method::basic_get});
  if (!in.ok()) return in.error();
  const auto& from = in.as<amqp_basic_get_t>();
  return Get{text(from.queue), from.no_ack != 0};
}

void put_get(Buffer& out, uint16_t channel, const Get& get) {
  amqp_basic_get_t to = {};
  to.queue = borrowed(std::string_view(get.queue).substr(0, 255));
  to.no_ack = get.no_ack ? 1 : 0;
  put_method(out, method::basic_get, channel, to);
}

Result<QueueDeclare> decode_queue_declare(Bytes payload) {
  const Arguments in(payload, {method::queue_declare});
  if (!in.ok()) return in.error();
  const auto& from = in.as<amqp_queue_declare_t>();
  return QueueDeclare{text(from.queue), from.passive != 0, from.exclusive != 0, from.nowait != 0};
}

void put_exchange_declare_passive(Buffer& out, uint16_t channel, std::string_view exchange) {
  amqp_exchange_declare_t to = {};
  to.exchange = borrowed(exchange.substr(0, 255));
  to.type = borrowed("direct");
  to.passive = 1;
  put_method(out, method::exchange_declare, channel, to);
}

void put_exchange_declare_as_direct(Buffer& out, uint16_t channel, std::string_view exchange) {
  amqp_table_entry_t not_a_name = {};
  not_a_name.key = borrowed("alternate-exchange");
  not_a_name.value.kind = AMQP_FIELD_KIND_I32;
  not_a_name.value.value.i32 = 0;
  amqp_exchange_declare_t to = {};
  to.exchange = borrowed(exchange.substr(0, 255));
  to.type = borrowed("direct");
  to.durable = 1;
  to.arguments = {1, &not_a_name};
  put_method(out, method::exchange_declare, channel, to);
}

void put_queue_declare(Buffer& out, uint16_t channel, std::string_view queue, bool durable) {
  amqp_queue_declare_t to = {};
  to.queue = borrowed(queue.substr(0, 255));
  to.durable = durable ? 1 : 0;
  put_method(out, method::queue_declare, channel, to);
}

Result<std::string> decode_queue_declare_ok(Bytes payload) {
  const Arguments in(payload, {method::queue_declare_ok});
  if (!in.ok()) return in.error();
  return text(in.as<amqp_queue_declare_ok_t>().queue);
}

Result<NamedExchanges> decode_named_exchanges(Bytes payload) {
  const Arguments in(payload, {method::exchange_declare, method::exchange_delete, method::exchange_bind,
                               method::exchange_unbind, method::queue_bind, method::queue_unbind});
  if (!in.ok()) return in.error();
  NamedExchanges named;
  switch (in.number()) {
    case method::exchange_declare: {
      const auto& from = in.as<amqp_exchange_declare_t>();
      named = {text(from.exchange), {}, from.passive != 0, from.nowait != 0};
      break;
    }
    case method::exchange_delete: {
      const auto& from = in.as<amqp_exchange_delete_t>();
      named = {text(from.exchange), {}, false, from.nowait != 0};
      break;
    }
    case method::exchange_bind: {
      const auto& from = in.as<amqp_exchange_bind_t>();
      named = {text(from.destination), text(from.source), false, from.nowait != 0};
      break;
    }
    case method::exchange_unbind: {
      const auto& from = in.as<amqp_exchange_unbind_t>();
      named = {text(from.destination), text(from.source), false, from.nowait != 0};
      break;
    }
    case method::queue_bind: {
      const auto& from = in.as<amqp_queue_bind_t>();
      named = {text(from.exchange), {}, false, from.nowait != 0};
      break;
    }
    default:
      named = {text(in.as<amqp_queue_unbind_t>().exchange), {}, false, false};
  }
  return named;
}

}  // namespace bellhop::proto
