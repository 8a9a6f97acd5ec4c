/* One message whose body may be larger than any memory, with librabbitmq.
 *
 *   large_body publish ADDRESS QUEUE BYTES    declares the queue, publishes with a confirm; prints "ack", or "refused CODE TEXT"
 *   large_body consume ADDRESS QUEUE BYTES    takes the message frame by frame, compares every byte; prints "same BYTES" and acknowledges
 *
 * The body is a pattern of 32 MiB seen through many small mappings, no two alike: two gibibytes that take 32 MiB of memory. */
#define _GNU_SOURCE
#include <amqp.h>
#include <amqp_framing.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "connection.h"

#define PAGE_BYTES 4096u
#define BLOCK_BYTES (1u << 20)
#define PATTERN_BYTES (32u << 20)
#define STARTS ((PATTERN_BYTES - BLOCK_BYTES) / PAGE_BYTES) /* 7936 = 2^8 * 31 */
#define STEP 4099u                                          /* without a common factor: 7936 blocks are all different */

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

static int pattern_file(void) {
  int fd = memfd_create("pattern", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, PATTERN_BYTES) != 0) fail("memfd_create");
  uint64_t* words = mmap(NULL, PATTERN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (words == MAP_FAILED) fail("mmap");
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i < PATTERN_BYTES / sizeof *words; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    words[i] = state;
  }
  munmap(words, PATTERN_BYTES);
  return fd;
}

/* The body: block i is the pattern from page i * STEP on. */
static const unsigned char* map_body(size_t size) {
  int fd = pattern_file();
  unsigned char* body = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (body == MAP_FAILED) fail("mmap");
  for (size_t at = 0; at < size; at += BLOCK_BYTES) {
    off_t start = (off_t)(at / BLOCK_BYTES * STEP % STARTS * PAGE_BYTES);
    if (mmap(body + at, smaller(BLOCK_BYTES, size - at), PROT_READ, MAP_SHARED | MAP_FIXED, fd, start) == MAP_FAILED) fail("mmap");
  }
  close(fd);
  return body;
}

static amqp_frame_t next_frame(amqp_connection_state_t c) {
  amqp_frame_t f;
  amqp_maybe_release_buffers(c);
  if (amqp_simple_wait_frame(c, &f) != AMQP_STATUS_OK) fail("waiting for a frame");
  return f;
}

static void publish(amqp_connection_state_t c, const char* queue, amqp_bytes_t body) {
  amqp_queue_declare(c, 1, amqp_cstring_bytes(queue), 0, 1, 0, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "queue.declare");
  amqp_confirm_select(c, 1);
  check(amqp_get_rpc_reply(c), "confirm.select");
  if (amqp_basic_publish(c, 1, amqp_empty_bytes, amqp_cstring_bytes(queue), 0, 0, NULL, body) != AMQP_STATUS_OK) fail("basic.publish");
  amqp_frame_t f = next_frame(c);
  if (f.frame_type != AMQP_FRAME_METHOD) fail("the publish's answer");
  if (f.payload.method.id == AMQP_CHANNEL_CLOSE_METHOD) {
    amqp_channel_close_t* m = f.payload.method.decoded;
    printf("refused %d %.*s\n", m->reply_code, (int)m->reply_text.len, (char*)m->reply_text.bytes);
    amqp_channel_close_ok_t ok = {0};
    amqp_send_method(c, 1, AMQP_CHANNEL_CLOSE_OK_METHOD, &ok);
  } else {
    printf("%s\n", f.payload.method.id == AMQP_BASIC_ACK_METHOD ? "ack" : "no ack");
  }
}

static void consume(amqp_connection_state_t c, const char* queue, amqp_bytes_t body) {
  amqp_basic_consume(c, 1, amqp_cstring_bytes(queue), amqp_empty_bytes, 0, 0, 0, amqp_empty_table);
  check(amqp_get_rpc_reply(c), "basic.consume");
  amqp_frame_t f = next_frame(c);
  if (f.frame_type != AMQP_FRAME_METHOD || f.payload.method.id != AMQP_BASIC_DELIVER_METHOD) fail("the delivery");
  uint64_t tag = ((amqp_basic_deliver_t*)f.payload.method.decoded)->delivery_tag;
  f = next_frame(c);
  if (f.frame_type != AMQP_FRAME_HEADER || f.payload.properties.body_size != body.len) fail("the size in the header");
  for (size_t have = 0; have < body.len;) {
    f = next_frame(c);
    amqp_bytes_t part = f.payload.body_fragment;
    if (f.frame_type != AMQP_FRAME_BODY || f.channel != 1 || part.len > body.len - have) fail("a body frame");
    if (memcmp((const char*)body.bytes + have, part.bytes, part.len) != 0) {
      printf("different in the frame at %zu\n", have);
      return;
    }
    have += part.len;
  }
  if (amqp_basic_ack(c, 1, tag, 0) != 0) fail("basic.ack");
  printf("same %zu\n", body.len);
}

int main(int count, char** arguments) {
  if (count != 5) fail("usage: large_body publish|consume ADDRESS QUEUE BYTES");
  size_t size = strtoull(arguments[4], NULL, 10);
  amqp_bytes_t body = {size, (void*)map_body(size)};
  amqp_connection_state_t c = open_connection(arguments[2]);
  open_channel(c, 1);
  (strcmp(arguments[1], "publish") == 0 ? publish : consume)(c, arguments[3], body);
  check(amqp_connection_close(c, AMQP_REPLY_SUCCESS), "connection.close");
  amqp_destroy_connection(c);
}
