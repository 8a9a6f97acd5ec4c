/* librabbitmq opens no Unix socket itself; it takes a connected descriptor (amqp_tcp_socket_set_sockfd), which must be non-blocking. */
#define _GNU_SOURCE
#include "connection.h"

#include <amqp_tcp_socket.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void fail(const char* what) {
  fprintf(stderr, "%s failed\n", what);
  exit(1);
}

void check(amqp_rpc_reply_t reply, const char* what) {
  if (reply.reply_type == AMQP_RESPONSE_NORMAL) return;
  fprintf(stderr, "%s: reply type %d, library error %s\n", what, reply.reply_type, amqp_error_string2(reply.library_error));
  if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
    amqp_channel_close_t* m = reply.reply.decoded;
    fprintf(stderr, "%d %.*s\n", m->reply_code, (int)m->reply_text.len, (char*)m->reply_text.bytes);
  }
  exit(1);
}

static int open_unix(const char* path) {
  struct sockaddr_un where = {.sun_family = AF_UNIX};
  strncpy(where.sun_path, path, sizeof where.sun_path - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr*)&where, sizeof where) != 0) fail("connect");
  return fd;
}

static int open_tcp(const char* address) {
  char host[128];
  snprintf(host, sizeof host, "%s", address);
  char* colon = strrchr(host, ':');
  if (colon == NULL) fail("the address has no port; connect");
  *colon = 0;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  if (getaddrinfo(host, colon + 1, &hints, &found) != 0) fail("getaddrinfo");
  int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, found->ai_addr, found->ai_addrlen) != 0) fail("connect");
  freeaddrinfo(found);
  return fd;
}

amqp_connection_state_t open_connection(const char* address) {
  int fd = address[0] == '/' ? open_unix(address) : open_tcp(address);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  amqp_connection_state_t c = amqp_new_connection();
  amqp_tcp_socket_set_sockfd(amqp_tcp_socket_new(c), fd);
  check(amqp_login(c, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest"), "login");
  return c;
}

void open_channel(amqp_connection_state_t connection, amqp_channel_t channel) {
  amqp_channel_open(connection, channel);
  check(amqp_get_rpc_reply(connection), "channel.open");
}
