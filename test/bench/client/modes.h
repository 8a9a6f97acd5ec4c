// What the bench client can measure. Each prints one JSON object to stdout and ends the process on any
// message that was not confirmed, or not received whole and in order.
#pragma once

#include "test/bench/client/options.h"

namespace bellhop::bench {

// Publishes `count` messages, keeping `window` unconfirmed, and waits for every confirm; then looks that all
// are in the queue.
void publish(const Options& options);
// Consumes `count` messages that `publish --keep-queue` left, acking each; then looks that the queue is
// empty.
void consume(const Options& options);
// Publishes one message at a time, to the endpoints in turn, each time from the write to its confirm.
void latency(const Options& options);
// Publishes one message of `body_bytes`, of any size, fetches it with basic.get and compares every byte.
void huge(const Options& options);
// Opens `sessions` x `channels`, and on each channel publishes `count` messages to a queue of its own and
// consumes them.
void crowd(const Options& options);
// Connects, opens a channel, publishes one message, awaits its confirm and closes, `count` times.
void churn(const Options& options);
// Takes one message off the queue and prints its properties as --properties takes them.
void peek(const Options& options);
// Opens a session and keeps it until stdin ends; prints a line when it is open.
void hold(const Options& options);

}  // namespace bellhop::bench
