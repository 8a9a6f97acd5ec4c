/* The client steps with librabbitmq (test/clients/README.md, "The tests"). Arguments: an address (host:port, or a Unix socket's path), a prefix, a queue
 * type. */
#include <amqp.h>
#include <amqp_framing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "show.h"

#define LARGE_BYTES (5 << 20)

static const char SMALL[] = "hello bellhop";
static unsigned char binary[3 + 256] = {0xac, 1, 1}; /* looks like a claim check, and is none */
static char large[LARGE_BYTES + 1];
static char exchange[128], queue[128], missing[140];
static const char *address, *queue_type;

static amqp_bytes_t text(const char* s) {
  return amqp_cstring_bytes(s);
}
static amqp_bytes_t span(const void* data, size_t size) {
  return (amqp_bytes_t){size, (void*)data};
}
static const char* yes(int value) {
  return value ? "yes" : "no";
}

static amqp_basic_properties_t properties(const char* message_id) {
  amqp_basic_properties_t p = {0};
  p._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
  p.content_type = text("text/plain");
  p.delivery_mode = 2;
  p.message_id = text(message_id);
  return p;
}

/* The next method frame of a channel. Only used where no content can be between. */
static amqp_method_t next_method(amqp_connection_state_t c, amqp_channel_t channel) {
  for (;;) {
    amqp_frame_t f;
    struct timeval limit = {20, 0};
    if (amqp_simple_wait_frame_noblock(c, &f, &limit) != AMQP_STATUS_OK) fail("waiting for a method");
    if (f.frame_type == AMQP_FRAME_METHOD && f.channel == channel) return f.payload.method;
  }
}

static void publish(amqp_connection_state_t c, amqp_channel_t n, const char* ex, const char* key, const amqp_basic_properties_t* p,
                    amqp_bytes_t body) {
  if (amqp_basic_publish(c, n, text(ex), text(key), 0, 0, p, body) != AMQP_STATUS_OK) fail("basic.publish");
}

static const char* outcome(amqp_connection_state_t c, amqp_channel_t n) {
  amqp_method_t m = next_method(c, n);
  return m.id == AMQP_BASIC_ACK_METHOD ? "ack" : m.id == AMQP_BASIC_NACK_METHOD ? "nack" : "?";
}

/* A confirmed publish to the queue on channel 1. */
static void send(amqp_connection_state_t c, const char* message_id, amqp_bytes_t body) {
  amqp_basic_properties_t p = properties(message_id);
  publish(c, 1, "", queue, &p, body);
  if (strcmp(outcome(c, 1), "ack") != 0) fail("basic.publish");
}

/* basic.get with its message; 0 when the queue is empty. */
static int get(amqp_connection_state_t c, int no_ack, amqp_basic_get_ok_t* ok, amqp_message_t* message) {
  amqp_rpc_reply_t reply = amqp_basic_get(c, 1, text(queue), no_ack);
  check(reply, "basic.get");
  if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD) return 0;
  *ok = *(amqp_basic_get_ok_t*)reply.reply.decoded;
  check(amqp_read_message(c, 1, message, 0), "reading the message");
  return 1;
}

static int is_empty(amqp_connection_state_t c) {
  amqp_basic_get_ok_t ok;
  amqp_message_t m;
  return !get(c, 0, &ok, &m);
}

/* Gets a message without acknowledgement and prints "WHAT ID bytes md5". */
static void take(amqp_connection_state_t c, const char* what) {
  amqp_basic_get_ok_t ok;
  amqp_message_t m;
  if (!get(c, 1, &ok, &m)) fail("basic.get: empty");
  printf("%s %.*s", what, (int)m.properties.message_id.len, (char*)m.properties.message_id.bytes);
  print_body(m.body);
  printf("\n");
  amqp_destroy_message(&m);
}

static void start_consumer(amqp_connection_state_t c, int prefetch) {
  amqp_basic_qos(c, 1, 0, (uint16_t)prefetch, 0);
  check(amqp_get_rpc_reply(c), "basic.qos");
  amqp_basic_consume(c, 1, text(queue), text("consumer"), 0, 0, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "basic.consume");
}

static void stop_consumer(amqp_connection_state_t c) {
  amqp_basic_cancel(c, 1, text("consumer"));
  check(amqp_get_rpc_reply(c), "basic.cancel");
}

static void next_delivery(amqp_connection_state_t c, amqp_envelope_t* e) {
  struct timeval limit = {20, 0};
  check(amqp_consume_message(c, e, &limit, 0), "waiting for a delivery");
}

static void declare(amqp_connection_state_t c) {
  open_channel(c, 1);
  amqp_exchange_declare(c, 1, text(exchange), text("topic"), 0, 1, 0, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "exchange.declare");
  amqp_table_entry_t type = {text("x-queue-type"), {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = text(queue_type)}};
  amqp_queue_declare_ok_t* ok = amqp_queue_declare(c, 1, text(queue), 0, 1, 0, 0, (amqp_table_t){1, &type});
  check(amqp_get_rpc_reply(c), "queue.declare");
  printf("declare: %.*s messages=%u consumers=%u\n", (int)ok->queue.len, (char*)ok->queue.bytes, ok->message_count, ok->consumer_count);
  amqp_queue_bind(c, 1, text(queue), text(exchange), text("order.#"), amqp_empty_table);
  check(amqp_get_rpc_reply(c), "queue.bind");
  amqp_confirm_select(c, 1);
  check(amqp_get_rpc_reply(c), "confirm.select");
}

static void publish_order(amqp_connection_state_t c, const char* word, amqp_bytes_t body) {
  char key[32], id[32];
  snprintf(key, sizeof key, "order.%s", word);
  snprintf(id, sizeof id, "m-%s", word);
  amqp_basic_properties_t p = properties(id);
  p._flags |= AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_TYPE_FLAG;
  p.correlation_id = text("c");
  p.type = text("order");
  publish(c, 1, exchange, key, &p, body);
  const char* result = outcome(c, 1);
  printf("publish: %s", word);
  print_body(body);
  printf(" %s\n", result);
}

static void consume(amqp_connection_state_t c) {
  start_consumer(c, 2);
  for (int i = 0; i < 3; ++i) {
    amqp_envelope_t e;
    next_delivery(c, &e);
    printf("consume: key=%.*s tag=%d redelivered=%s", (int)e.routing_key.len, (char*)e.routing_key.bytes, (int)e.delivery_tag,
           yes(e.redelivered));
    print_body(e.message.body);
    print_properties(&e.message.properties);
    printf("\n");
    if (amqp_basic_ack(c, 1, e.delivery_tag, 0) != 0) fail("basic.ack");
    amqp_destroy_envelope(&e);
  }
  stop_consumer(c);
}

static void bare(amqp_connection_state_t c) {
  publish(c, 1, "", queue, NULL, text(SMALL));
  outcome(c, 1);
  amqp_basic_get_ok_t ok;
  amqp_message_t m;
  if (!get(c, 1, &ok, &m)) fail("basic.get: empty");
  const amqp_basic_properties_t* p = &m.properties;
  amqp_bytes_t id = p->_flags & AMQP_BASIC_MESSAGE_ID_FLAG ? p->message_id : text("-");
  if (p->_flags & AMQP_BASIC_DELIVERY_MODE_FLAG)
    printf("bare: delivery_mode=%d message_id=%.*s\n", p->delivery_mode, (int)id.len, (char*)id.bytes);
  else
    printf("bare: delivery_mode=- message_id=%.*s\n", (int)id.len, (char*)id.bytes);
  amqp_destroy_message(&m);
}

static void headers(amqp_connection_state_t c) {
  amqp_table_entry_t inner = {text("b"), {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = text("c")}};
  amqp_table_entry_t outer = {text("a"), {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {1, &inner}}};
  amqp_field_value_t items[2] = {{.kind = AMQP_FIELD_KIND_I32, .value.i32 = 1},
                                 {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {1, &inner}}};
  amqp_table_entry_t all[] = {
      {text("string"), {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = text("grüß")}},
      {text("bytes"), {.kind = AMQP_FIELD_KIND_BYTES, .value.bytes = span("\0\xff", 2)}},
      {text("true"), {.kind = AMQP_FIELD_KIND_BOOLEAN, .value.boolean = 1}},
      {text("i8"), {.kind = AMQP_FIELD_KIND_I8, .value.i8 = -7}},
      {text("u8"), {.kind = AMQP_FIELD_KIND_U8, .value.u8 = 200}},
      {text("i16"), {.kind = AMQP_FIELD_KIND_I16, .value.i16 = -300}},
      {text("u16"), {.kind = AMQP_FIELD_KIND_U16, .value.u16 = 60000}},
      {text("i32"), {.kind = AMQP_FIELD_KIND_I32, .value.i32 = -70000}},
      {text("u32"), {.kind = AMQP_FIELD_KIND_U32, .value.u32 = 4000000000u}},
      {text("i64"), {.kind = AMQP_FIELD_KIND_I64, .value.i64 = -(1LL << 40)}},
      {text("f32"), {.kind = AMQP_FIELD_KIND_F32, .value.f32 = 0.5f}},
      {text("f64"), {.kind = AMQP_FIELD_KIND_F64, .value.f64 = 2.25}},
      {text("decimal"), {.kind = AMQP_FIELD_KIND_DECIMAL, .value.decimal = {2, 314}}},
      {text("time"), {.kind = AMQP_FIELD_KIND_TIMESTAMP, .value.u64 = 1715947200}},
      {text("table"), {.kind = AMQP_FIELD_KIND_TABLE, .value.table = {1, &outer}}},
      {text("array"), {.kind = AMQP_FIELD_KIND_ARRAY, .value.array = {2, items}}},
      {text("void"), {.kind = AMQP_FIELD_KIND_VOID}},
  };
  amqp_basic_properties_t p = properties("m-headers");
  p._flags |= AMQP_BASIC_HEADERS_FLAG;
  p.headers = (amqp_table_t){sizeof all / sizeof *all, all};
  publish(c, 1, exchange, "order.headers", &p, text(SMALL));
  outcome(c, 1);
  amqp_basic_get_ok_t ok;
  amqp_message_t m;
  if (!get(c, 1, &ok, &m)) fail("basic.get: empty");
  print_table("headers: ", &m.properties.headers);
  amqp_destroy_message(&m);
}

static void returned(amqp_connection_state_t c) {
  open_channel(c, 2);
  amqp_confirm_select(c, 2);
  amqp_basic_properties_t p = properties("m-return");
  if (amqp_basic_publish(c, 2, text(exchange), text("nobody.wants.this"), 1, 0, &p, span(large, 70000)) != 0) fail("basic.publish");
  amqp_method_t method = next_method(c, 2);
  if (method.id != AMQP_BASIC_RETURN_METHOD) fail("basic.return");
  amqp_basic_return_t* r = method.decoded;
  printf("return: code=%d text=%.*s exchange=%.*s key=%.*s", r->reply_code, (int)r->reply_text.len, (char*)r->reply_text.bytes,
         (int)r->exchange.len, (char*)r->exchange.bytes, (int)r->routing_key.len, (char*)r->routing_key.bytes);
  amqp_message_t m;
  check(amqp_read_message(c, 2, &m, 0), "reading the returned message");
  print_body(m.body);
  print_properties(&m.properties);
  amqp_destroy_message(&m);
  printf(" then %s\n", outcome(c, 2));
  check(amqp_channel_close(c, 2, AMQP_REPLY_SUCCESS), "channel.close");
}

static void nack(amqp_connection_state_t c) {
  send(c, "m-nack", span(large, 80000));
  start_consumer(c, 2);
  for (int i = 0; i < 2; ++i) {
    amqp_envelope_t e;
    next_delivery(c, &e);
    printf("nack: redelivered=%s", yes(e.redelivered));
    print_body(e.message.body);
    printf("\n");
    if (i == 0)
      amqp_basic_nack(c, 1, e.delivery_tag, 0, 1);
    else
      amqp_basic_ack(c, 1, e.delivery_tag, 0);
    amqp_destroy_envelope(&e);
  }
  stop_consumer(c);
}

static void get_one(amqp_connection_state_t c) {
  send(c, "m-get", span(large, 90000));
  amqp_basic_get_ok_t ok;
  amqp_message_t m;
  if (!get(c, 0, &ok, &m)) fail("basic.get: empty");
  printf("get: redelivered=%s left=%u", yes(ok.redelivered), ok.message_count);
  print_body(m.body);
  print_properties(&m.properties);
  printf("\n");
  amqp_destroy_message(&m);
  amqp_basic_ack(c, 1, ok.delivery_tag, 0);
  printf("get: empty=%s\n", yes(is_empty(c)));
}

static void transaction(amqp_connection_state_t c) {
  open_channel(c, 3);
  amqp_tx_select(c, 3);
  check(amqp_get_rpc_reply(c), "tx.select");
  amqp_basic_properties_t p = properties("m-tx-1");
  publish(c, 3, "", queue, &p, text(SMALL));
  p = properties("m-tx-2");
  publish(c, 3, "", queue, &p, span(large, 100000));
  printf("transaction: before the commit empty=%s\n", yes(is_empty(c)));
  amqp_tx_commit(c, 3);
  check(amqp_get_rpc_reply(c), "tx.commit");
  take(c, "transaction: committed");
  take(c, "transaction: committed");
  publish(c, 3, "", queue, &p, text(SMALL));
  publish(c, 3, "", queue, &p, span(large, 100000));
  amqp_tx_rollback(c, 3);
  check(amqp_get_rpc_reply(c), "tx.rollback");
  printf("transaction: rolled back empty=%s\n", yes(is_empty(c)));
  check(amqp_channel_close(c, 3, AMQP_REPLY_SUCCESS), "channel.close");
}

static void rpc(amqp_connection_state_t c) {
  open_channel(c, 4);
  amqp_basic_consume(c, 4, text("amq.rabbitmq.reply-to"), text("replies"), 0, 1, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "consuming replies");
  amqp_basic_properties_t p = properties("m-rpc");
  p._flags |= AMQP_BASIC_REPLY_TO_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG;
  p.reply_to = text("amq.rabbitmq.reply-to");
  p.correlation_id = text("rpc-1");
  publish(c, 4, "", queue, &p, text("question"));
  amqp_basic_get_ok_t ok;
  amqp_message_t m;
  for (int i = 0; !get(c, 0, &ok, &m); ++i) /* published without a confirm: it may still be on its way */
    if (i == 10000) fail("the question did not arrive");
  amqp_basic_properties_t answer = {0};
  answer._flags = AMQP_BASIC_CORRELATION_ID_FLAG;
  answer.correlation_id = m.properties.correlation_id;
  char reply_to[256], body[64];
  snprintf(reply_to, sizeof reply_to, "%.*s", (int)m.properties.reply_to.len, (char*)m.properties.reply_to.bytes);
  snprintf(body, sizeof body, "answer to %.*s", (int)m.body.len, (char*)m.body.bytes);
  /* On a channel without confirms: no other method stands between this and the reply. */
  publish(c, 4, "", reply_to, &answer, text(body));
  amqp_destroy_message(&m);
  amqp_basic_ack(c, 1, ok.delivery_tag, 0);
  amqp_envelope_t e;
  next_delivery(c, &e);
  printf("rpc: correlation_id=%.*s %.*s\n", (int)e.message.properties.correlation_id.len,
         (char*)e.message.properties.correlation_id.bytes, (int)e.message.body.len, (char*)e.message.body.bytes);
  amqp_destroy_envelope(&e);
  check(amqp_channel_close(c, 4, AMQP_REPLY_SUCCESS), "channel.close");
}

/* A passive declare that the broker refuses by closing channel 5. */
static void refused(amqp_connection_state_t c, amqp_bytes_t name) {
  open_channel(c, 5);
  amqp_queue_declare(c, 5, name, 1, 0, 0, 0, amqp_empty_table);
  amqp_rpc_reply_t reply = amqp_get_rpc_reply(c);
  if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION || reply.reply.id != AMQP_CHANNEL_CLOSE_METHOD) fail("being refused");
  amqp_channel_close_t* m = reply.reply.decoded;
  printf("refused: %d %.*s\n", m->reply_code, (int)m->reply_text.len, (char*)m->reply_text.bytes);
  amqp_channel_close_ok_t closed = {0};
  amqp_send_method(c, 5, AMQP_CHANNEL_CLOSE_OK_METHOD, &closed);
}

static void errors(amqp_connection_state_t c) {
  amqp_queue_declare_ok_t* ok = amqp_queue_declare(c, 1, text(missing), 0, 0, 1, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "exclusive declare");
  amqp_bytes_t name = amqp_bytes_malloc_dup(ok->queue);
  amqp_connection_state_t other = open_connection(address);
  refused(other, name);
  amqp_bytes_free(name);
  check(amqp_connection_close(other, AMQP_REPLY_SUCCESS), "closing the other connection");
  amqp_destroy_connection(other);
  amqp_queue_delete(c, 1, text(missing), 0, 0);
  check(amqp_get_rpc_reply(c), "queue.delete");
  refused(c, text(missing));
}

static void await_line(void) {
  char line[16];
  if (fgets(line, sizeof line, stdin) == NULL) fail("reading standard input");
}

/* Prints how the connection ends when the other side does. */
static void lose(amqp_connection_state_t c) {
  amqp_frame_t f;
  struct timeval limit = {20, 0};
  int status = amqp_simple_wait_frame_noblock(c, &f, &limit);
  if (status == AMQP_STATUS_OK && f.frame_type == AMQP_FRAME_METHOD && f.payload.method.id == AMQP_CONNECTION_CLOSE_METHOD) {
    int code = ((amqp_connection_close_t*)f.payload.method.decoded)->reply_code;
    amqp_connection_close_ok_t ok = {0};
    amqp_send_method(c, 0, AMQP_CONNECTION_CLOSE_OK_METHOD, &ok);
    printf("lost: %d\n", code);
  } else if (status == AMQP_STATUS_OK || status == AMQP_STATUS_TIMEOUT)
    fail("losing the connection");
  else
    printf("lost: -\n");
  amqp_destroy_connection(c);
}

int main(int argc, char** argv) {
  if (argc != 4) fail("usage: client ADDRESS PREFIX QUEUE_TYPE;");
  address = argv[1];
  queue_type = argv[3];
  for (int i = 0; i < 256; ++i) binary[3 + i] = (unsigned char)i;
  for (int i = 0; i < LARGE_BYTES / 8; ++i) snprintf(large + 8 * i, 9, "%08d", i);
  snprintf(exchange, sizeof exchange, "%s.events", argv[2]);
  snprintf(queue, sizeof queue, "%s.q", argv[2]);
  snprintf(missing, sizeof missing, "%s.missing", argv[2]);
  setvbuf(stdout, NULL, _IOLBF, 0);

  amqp_connection_state_t c = open_connection(address);
  printf("connect: open\nlimits: channel_max=%d frame_max=%d\n", amqp_get_channel_max(c), amqp_get_frame_max(c));
  declare(c);
  publish_order(c, "small", text(SMALL));
  publish_order(c, "binary", span(binary, sizeof binary));
  publish_order(c, "large", span(large, LARGE_BYTES));
  consume(c);
  bare(c);
  headers(c);
  returned(c);
  nack(c);
  get_one(c);
  transaction(c);
  rpc(c);
  errors(c);

  send(c, "m-kept", span(large, 110000));
  printf("ready for restart\n");
  await_line();
  lose(c);
  await_line();
  c = open_connection(address);
  open_channel(c, 1);
  amqp_confirm_select(c, 1);
  check(amqp_get_rpc_reply(c), "confirm.select");
  take(c, "restart: kept");
  send(c, "m-after", span(large, 120000));
  start_consumer(c, 2);
  amqp_envelope_t e;
  next_delivery(c, &e);
  printf("restart: consumed %.*s", (int)e.message.properties.message_id.len, (char*)e.message.properties.message_id.bytes);
  print_body(e.message.body);
  printf("\n");
  amqp_basic_ack(c, 1, e.delivery_tag, 0);
  amqp_destroy_envelope(&e);
  stop_consumer(c);

  amqp_queue_delete(c, 1, text(queue), 0, 0);
  check(amqp_get_rpc_reply(c), "queue.delete");
  check(amqp_connection_close(c, AMQP_REPLY_SUCCESS), "connection.close");
  amqp_destroy_connection(c);
  printf("close: clean\n");
  return 0;
}
