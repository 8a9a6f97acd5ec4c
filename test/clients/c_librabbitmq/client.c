/* The client steps with librabbitmq (see ../README.md). Arguments: an address (host:port, or the path of a
 * Unix socket) and a prefix.
 *
 * librabbitmq opens no Unix socket itself; it takes a connected descriptor (amqp_tcp_socket_set_sockfd),
 * which must be non-blocking. */
#define _GNU_SOURCE
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_tcp_socket.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char SMALL[] = "hello bellhop";
static unsigned char large[1 << 20];
static char exchange[128], queue[128];

static void fail(const char* what) {
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

static void check(amqp_rpc_reply_t reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  fprintf(stderr, "%s: reply type %d, library error %s\n", what, reply.reply_type,
          amqp_error_string2(reply.library_error));
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    amqp_channel_close_t* m = reply.reply.decoded;
    fprintf(stderr, "%d %.*s\n", m->reply_code, (int)m->reply_text.len, (char*)m->reply_text.bytes);
  }
  exit(1);
}

static amqp_bytes_t text(const char* s) {
  return amqp_cstring_bytes(s);
}
static amqp_bytes_t span(const void* data, size_t size) {
  return (amqp_bytes_t){size, (void*)data};
}
static const char* same(amqp_bytes_t a, amqp_bytes_t b) {
  return a.len == b.len && memcmp(a.bytes, b.bytes, a.len) == 0 ? "yes" : "no";
}

static int open_descriptor(const char* address) {
  int fd = -1;
  if (address[0] == '/') {
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    strncpy(where.sun_path, address, sizeof where.sun_path - 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr*)&where, sizeof where) != 0) fail("connect");
  } else {
    char host[128];
    snprintf(host, sizeof host, "%s", address);
    char* colon = strrchr(host, ':');
    *colon = 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) fail("getaddrinfo");
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) fail("connect");
    freeaddrinfo(found);
  }
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

static amqp_connection_state_t open_connection(const char* address) {
  amqp_connection_state_t c = amqp_new_connection();
  amqp_socket_t* s = amqp_tcp_socket_new(c);
  amqp_tcp_socket_set_sockfd(s, open_descriptor(address));
  check(amqp_login(c, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"), "login");
  return c;
}

static void open_channel(amqp_connection_state_t c, amqp_channel_t n) {
  amqp_channel_open(c, n);
  check(amqp_get_rpc_reply(c), "channel.open");
}

static amqp_basic_properties_t properties(const char* message_id) {
  amqp_basic_properties_t p = {0};
  p._flags = AMQP_BASIC_CONTENT_TYPE_FLAG | AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
  p.content_type = text("text/plain");
  p.delivery_mode = 2;
  p.message_id = text(message_id);
  return p;
}

static void print_text(const char* name, const amqp_basic_properties_t* p, amqp_flags_t flag,
                       amqp_bytes_t value) {
  if (p->_flags & flag)
    printf(" %s=%.*s", name, (int)value.len, (char*)value.bytes);
  else
    printf(" %s=-", name);
}

static void show(const amqp_basic_properties_t* p) {
  print_text("content_type", p, AMQP_BASIC_CONTENT_TYPE_FLAG, p->content_type);
  if (!(p->_flags & AMQP_BASIC_HEADERS_FLAG)) {
    printf(" headers=-");
  } else {
    printf(" headers={");
    for (int i = 0; i < p->headers.num_entries; ++i) {
      const amqp_table_entry_t* e = &p->headers.entries[i];
      printf("%s%.*s=", i ? "," : "", (int)e->key.len, (char*)e->key.bytes);
      if (e->value.kind == AMQP_FIELD_KIND_UTF8)
        printf("%.*s", (int)e->value.value.bytes.len, (char*)e->value.value.bytes.bytes);
      else
        printf("%c:%d", e->value.kind, e->value.value.i32);
    }
    printf("}");
  }
  printf(" delivery_mode=%d", p->_flags & AMQP_BASIC_DELIVERY_MODE_FLAG ? p->delivery_mode : 0);
  print_text("message_id", p, AMQP_BASIC_MESSAGE_ID_FLAG, p->message_id);
  print_text("correlation_id", p, AMQP_BASIC_CORRELATION_ID_FLAG, p->correlation_id);
  print_text("type", p, AMQP_BASIC_TYPE_FLAG, p->type);
  printf("\n");
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

static void publish(amqp_connection_state_t c, amqp_channel_t n, const char* ex, const char* key,
                    int mandatory, const amqp_basic_properties_t* p, amqp_bytes_t body) {
  if (amqp_basic_publish(c, n, text(ex), text(key), mandatory, 0, p, body) != AMQP_STATUS_OK)
    fail("basic.publish");
}

static const char* outcome(amqp_connection_state_t c, amqp_channel_t n) {
  amqp_method_t m = next_method(c, n);
  return m.id == AMQP_BASIC_ACK_METHOD ? "ack" : m.id == AMQP_BASIC_NACK_METHOD ? "nack" : "?";
}

static unsigned count(amqp_connection_state_t c) {
  amqp_queue_declare_ok_t* ok = amqp_queue_declare(c, 1, text(queue), 1, 0, 0, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "passive declare");
  return ok->message_count;
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

static void consume(amqp_connection_state_t c) {
  amqp_basic_qos(c, 1, 0, 10, 0);
  check(amqp_get_rpc_reply(c), "basic.qos");
  amqp_basic_consume(c, 1, text(queue), text("consumer"), 0, 0, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "basic.consume");
  for (int i = 0; i < 2; ++i) {
    amqp_envelope_t e;
    struct timeval limit = {20, 0};
    check(amqp_consume_message(c, &e, &limit, 0), "waiting for a delivery");
    int is_small = memcmp(e.routing_key.bytes, "order.small", e.routing_key.len) == 0;
    amqp_bytes_t expected = is_small ? text(SMALL) : span(large, sizeof large);
    printf("consumed key=%.*s redelivered=%d size=%zu same=%s", (int)e.routing_key.len,
           (char*)e.routing_key.bytes, e.redelivered, e.message.body.len, same(e.message.body, expected));
    show(&e.message.properties);
    if (amqp_basic_ack(c, 1, e.delivery_tag, 0) != 0) fail("basic.ack");
    amqp_destroy_envelope(&e);
  }
  amqp_basic_cancel(c, 1, text("consumer"));
  check(amqp_get_rpc_reply(c), "basic.cancel");
}

static void returned(amqp_connection_state_t c) {
  open_channel(c, 2);
  amqp_confirm_select(c, 2);
  amqp_basic_properties_t p = properties("m-return");
  amqp_bytes_t body = span(large, 70000);
  publish(c, 2, exchange, "nobody.wants.this", 1, &p, body);
  amqp_method_t m = next_method(c, 2);
  if (m.id != AMQP_BASIC_RETURN_METHOD) fail("basic.return");
  amqp_basic_return_t* r = m.decoded;
  printf("return code=%d text=%.*s exchange=%s key=%.*s", r->reply_code, (int)r->reply_text.len,
         (char*)r->reply_text.bytes, same(r->exchange, text(exchange)), (int)r->routing_key.len,
         (char*)r->routing_key.bytes);
  amqp_message_t message;
  check(amqp_read_message(c, 2, &message, 0), "reading the returned message");
  printf(" size=%zu same=%s", message.body.len, same(message.body, body));
  show(&message.properties);
  amqp_destroy_message(&message);
  printf("then %s\n", outcome(c, 2));
  check(amqp_channel_close(c, 2, AMQP_REPLY_SUCCESS), "channel.close");
}

static void get_and_requeue(amqp_connection_state_t c) {
  amqp_basic_properties_t p = properties("m-get");
  publish(c, 1, "", queue, 0, &p, text("to be got"));
  outcome(c, 1);
  amqp_basic_get_ok_t ok;
  amqp_message_t m;
  if (!get(c, 0, &ok, &m)) fail("basic.get: empty");
  printf("get size=%zu same=%s redelivered=%d left=%u", m.body.len, same(m.body, text("to be got")),
         ok.redelivered, ok.message_count);
  show(&m.properties);
  amqp_destroy_message(&m);
  amqp_basic_nack(c, 1, ok.delivery_tag, 0, 1);
  if (!get(c, 0, &ok, &m)) fail("basic.get: empty");
  printf("get size=%zu same=%s redelivered=%d\n", m.body.len, same(m.body, text("to be got")),
         ok.redelivered);
  amqp_destroy_message(&m);
  amqp_basic_ack(c, 1, ok.delivery_tag, 0);
  printf("get empty=%s\n", get(c, 0, &ok, &m) ? "no" : "yes");
}

static void exclusive(amqp_connection_state_t c, const char* address) {
  amqp_queue_declare_ok_t* ok = amqp_queue_declare(c, 1, amqp_empty_bytes, 0, 0, 1, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "exclusive declare");
  printf("exclusive named=%s\n",
         ok->queue.len > 8 && memcmp(ok->queue.bytes, "amq.gen-", 8) == 0 ? "yes" : "no");
  amqp_bytes_t name = amqp_bytes_malloc_dup(ok->queue);
  amqp_connection_state_t other = open_connection(address);
  open_channel(other, 1);
  amqp_queue_declare(other, 1, name, 1, 0, 0, 0, amqp_empty_table);
  amqp_rpc_reply_t reply = amqp_get_rpc_reply(other);
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD)
    printf("exclusive other connection: %d\n", ((amqp_channel_close_t*)reply.reply.decoded)->reply_code);
  else
    printf("exclusive: the other connection may use it\n");
  amqp_channel_close_ok_t closed = {0};
  amqp_send_method(other, 1, AMQP_CHANNEL_CLOSE_OK_METHOD, &closed);
  check(amqp_connection_close(other, AMQP_REPLY_SUCCESS), "closing the other connection");
  amqp_destroy_connection(other);
  amqp_bytes_free(name);
}

static void transaction(amqp_connection_state_t c) {
  open_channel(c, 3);
  amqp_tx_select(c, 3);
  check(amqp_get_rpc_reply(c), "tx.select");
  amqp_basic_properties_t p = properties("m-tx-1");
  publish(c, 3, "", queue, 0, &p, text(SMALL));
  p = properties("m-tx-2");
  publish(c, 3, "", queue, 0, &p, span(large, 100000));
  printf("tx before commit count=%u\n", count(c));
  amqp_tx_commit(c, 3);
  check(amqp_get_rpc_reply(c), "tx.commit");
  printf("tx committed count=%u\n", count(c));
  for (int i = 0; i < 2; ++i) {
    amqp_basic_get_ok_t ok;
    amqp_message_t m;
    if (!get(c, 1, &ok, &m)) fail("basic.get: empty");
    printf("tx got size=%zu same=%s message_id=%.*s\n", m.body.len,
           same(m.body, i == 0 ? text(SMALL) : span(large, 100000)), (int)m.properties.message_id.len,
           (char*)m.properties.message_id.bytes);
    amqp_destroy_message(&m);
  }
  publish(c, 3, "", queue, 0, &p, text(SMALL));
  publish(c, 3, "", queue, 0, &p, span(large, 100000));
  amqp_tx_rollback(c, 3);
  check(amqp_get_rpc_reply(c), "tx.rollback");
  printf("tx rolled back count=%u\n", count(c));
  check(amqp_channel_close(c, 3, AMQP_REPLY_SUCCESS), "channel.close");
}

static void direct_reply(amqp_connection_state_t c) {
  open_channel(c, 4);
  amqp_basic_consume(c, 4, text("amq.rabbitmq.reply-to"), text("replies"), 0, 1, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "consuming replies");
  amqp_basic_properties_t p = properties("m-rpc");
  p._flags |= AMQP_BASIC_REPLY_TO_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG;
  p.reply_to = text("amq.rabbitmq.reply-to");
  p.correlation_id = text("rpc-1");
  publish(c, 4, "", queue, 0, &p, text("question"));
  amqp_basic_get_ok_t ok;
  amqp_message_t m;
  for (int i = 0; !get(c, 0, &ok, &m); ++i)
    if (i == 1000) fail("the question did not arrive");
  amqp_basic_properties_t answer = {0};
  answer._flags = AMQP_BASIC_CORRELATION_ID_FLAG;
  answer.correlation_id = m.properties.correlation_id;
  char reply_to[256];
  snprintf(reply_to, sizeof reply_to, "%.*s", (int)m.properties.reply_to.len,
           (char*)m.properties.reply_to.bytes);
  publish(c, 1, "", reply_to, 0, &answer, text("answer to question"));
  amqp_destroy_message(&m);
  amqp_basic_ack(c, 1, ok.delivery_tag, 0);
  outcome(c, 1);
  amqp_envelope_t e;
  struct timeval limit = {20, 0};
  check(amqp_consume_message(c, &e, &limit, 0), "waiting for the reply");
  printf("rpc correlation_id=%.*s reply=%.*s\n", (int)e.message.properties.correlation_id.len,
         (char*)e.message.properties.correlation_id.bytes, (int)e.message.body.len,
         (char*)e.message.body.bytes);
  amqp_destroy_envelope(&e);
  check(amqp_channel_close(c, 4, AMQP_REPLY_SUCCESS), "channel.close");
}

static void missing_queue(amqp_connection_state_t c, const char* prefix) {
  char missing[140];
  snprintf(missing, sizeof missing, "%s.missing", prefix);
  open_channel(c, 5);
  amqp_queue_declare(c, 5, text(missing), 1, 0, 0, 0, amqp_empty_table);
  amqp_rpc_reply_t reply = amqp_get_rpc_reply(c);
  if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION || reply.reply.id != AMQP_CHANNEL_CLOSE_METHOD)
    fail("the 404");
  amqp_channel_close_t* m = reply.reply.decoded;
  printf("missing queue: %d %.*s\n", m->reply_code, 20, (char*)m->reply_text.bytes);
  amqp_channel_close_ok_t closed = {0};
  amqp_send_method(c, 5, AMQP_CHANNEL_CLOSE_OK_METHOD, &closed);
  printf("the first channel is open, count=%u\n", count(c));
}

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: client ADDRESS PREFIX;");
  for (size_t i = 0; i < sizeof large; ++i) large[i] = (unsigned char)i;
  snprintf(exchange, sizeof exchange, "%s.events", argv[2]);
  snprintf(queue, sizeof queue, "%s.q", argv[2]);
  setvbuf(stdout, NULL, _IOLBF, 0);

  amqp_connection_state_t c = open_connection(argv[1]);
  printf("connected\n");
  open_channel(c, 1);
  amqp_exchange_declare(c, 1, text(exchange), text("topic"), 0, 1, 0, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "exchange.declare");
  amqp_queue_declare(c, 1, text(queue), 0, 1, 0, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "queue.declare");
  amqp_queue_bind(c, 1, text(queue), text(exchange), text("order.#"), amqp_empty_table);
  check(amqp_get_rpc_reply(c), "queue.bind");
  amqp_confirm_select(c, 1);
  check(amqp_get_rpc_reply(c), "confirm.select");
  printf("declared\n");

  amqp_table_entry_t headers[2] = {
      {text("region"), {.kind = AMQP_FIELD_KIND_UTF8, .value.bytes = text("eu")}},
      {text("count"), {.kind = AMQP_FIELD_KIND_I32, .value.i32 = 7}}};
  amqp_basic_properties_t p = properties("m-small");
  p._flags |= AMQP_BASIC_HEADERS_FLAG | AMQP_BASIC_CORRELATION_ID_FLAG | AMQP_BASIC_TYPE_FLAG;
  p.headers = (amqp_table_t){2, headers};
  p.correlation_id = text("c");
  p.type = text("order");
  publish(c, 1, exchange, "order.small", 0, &p, text(SMALL));
  printf("published small size=%zu %s\n", strlen(SMALL), outcome(c, 1));
  p._flags &= (amqp_flags_t)~AMQP_BASIC_HEADERS_FLAG;
  p.message_id = text("m-large");
  publish(c, 1, exchange, "order.large", 0, &p, span(large, sizeof large));
  printf("published large size=%zu %s\n", sizeof large, outcome(c, 1));

  consume(c);
  returned(c);
  get_and_requeue(c);
  exclusive(c, argv[1]);
  transaction(c);
  direct_reply(c);
  missing_queue(c, argv[2]);

  amqp_queue_delete(c, 1, text(queue), 0, 0);
  check(amqp_get_rpc_reply(c), "queue.delete");
  check(amqp_connection_close(c, AMQP_REPLY_SUCCESS), "connection.close");
  amqp_destroy_connection(c);
  printf("closed\n");
  return 0;
}
