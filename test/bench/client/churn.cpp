// What a client costs that comes for one message: connects, opens a channel, publishes one confirmed message
// and closes, again and again, one after the other.

#include <cstdio>

#include "test/bench/client/connection.h"
#include "test/bench/client/fail.h"
#include "test/bench/client/modes.h"
#include "test/bench/client/stopwatch.h"

namespace bellhop::bench {

void churn(const Options& options) {
  Connection owner(options.endpoints.at(0));
  owner.declare_queue(options.queue, options.queue_type);
  Stopwatch stopwatch(options.cpu_of);
  for (uint64_t number = 0; number < options.count; ++number) {
    Connection connection(options.endpoints.at(0));
    connection.select_confirms();
    connection.send(make_message(options.exchange, options.routing_key, options.properties,
                                 options.body_bytes, connection.frame_max())
                        .bytes);
    Reader reader(connection.await_method(kBasicAck));
    if (reader.u64() != 1) fail("a confirm for another message");
    connection.close();
  }
  stopwatch.stop();
  owner.await_messages(options.queue, options.count);
  owner.delete_queue(options.queue);
  owner.close();
  const auto count = static_cast<double>(options.count);
  std::printf("{\"connections_per_s\": %.1f, \"seconds\": %.6f, \"cpu_us_per_connection\": %.2f}\n",
              count / stopwatch.seconds(), stopwatch.seconds(),
              static_cast<double>(stopwatch.cpu_ns()) / 1000 / count);
}

}  // namespace bellhop::bench
