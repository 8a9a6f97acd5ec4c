/* Printing what a message has, for client.c. */
#pragma once
#include <amqp.h>
#include <amqp_framing.h>

/* " bytes=N md5=..." */
void print_body(amqp_bytes_t body);

/* " content_type=... delivery_mode=... message_id=... correlation_id=... type=...", "-" for what is unset. */
void print_properties(const amqp_basic_properties_t* properties);

/* "NAME=TYPE VALUE" for each entry, a line each beginning with `prefix`. */
void print_table(const char* prefix, const amqp_table_t* table);
