/* Opening connections and checking replies with librabbitmq, for client.c. */
#pragma once
#include <amqp.h>

/* Ends the program with a message. */
_Noreturn void fail(const char* what);

/* Ends the program unless the last synchronous call succeeded. */
void check(amqp_rpc_reply_t reply, const char* what);

/* A logged-in connection. `address` is host:port or the path of a Unix socket. */
amqp_connection_state_t open_connection(const char* address);

void open_channel(amqp_connection_state_t connection, amqp_channel_t channel);
