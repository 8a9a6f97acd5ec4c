#include "test/bench/client/options.h"

#include <CLI/CLI.hpp>

#include "test/bench/client/fail.h"
#include "test/bench/client/wire.h"

namespace bellhop::bench {
namespace {

std::vector<uint8_t> from_hex(const std::string& hex) {
  if (hex.size() % 2 != 0) fail("--properties takes an even number of hexadecimal digits");
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  std::string batching = "on", properties_hex;
  int delivery_mode = 2;
  CLI::App app("Measures an AMQP 0-9-1 endpoint over raw sockets and prints one JSON object");
  app.add_option("mode", options.mode)
      ->required()
      ->check(CLI::IsMember({"publish", "consume", "latency", "huge", "crowd", "churn", "peek", "hold"}));
  app.add_option("--endpoint", options.endpoints,
                 "tcp:HOST:PORT or unix:PATH; latency takes several, and echo-tcp, echo-unix")
      ->required();
  app.add_option("--queue", options.queue, "publish: declared new, deleted at the end");
  app.add_option("--queue-type", options.queue_type)->check(CLI::IsMember({"classic", "quorum"}));
  app.add_option("--exchange", options.exchange, "where publishes go; default: the default exchange");
  app.add_option("--routing-key", options.routing_key, "default: the queue's name");
  app.add_option("--bind", options.bind, "EXCHANGE:KEY, a direct exchange to declare and bind the queue to");
  app.add_option("--count", options.count, "messages; for latency, per endpoint")->check(CLI::PositiveNumber);
  app.add_option("--size", options.body_bytes, "bytes of a body, at least 8")
      ->check(CLI::Range(uint64_t{8}, uint64_t{1} << 40));
  app.add_option("--window", options.window, "publishes unconfirmed at most")->check(CLI::PositiveNumber);
  app.add_option("--sessions", options.sessions, "of a crowd");
  app.add_option("--channels", options.channels, "of each session of a crowd");
  app.add_option("--prefetch", options.prefetch);
  app.add_option("--batching", batching, "on: one write for all that may go; off: one write a message or ack")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--delivery-mode", delivery_mode, "0 leaves it unset")->check(CLI::Range(0, 2));
  app.add_option("--properties", properties_hex,
                 "exact bytes of every content header after the body size, instead of --delivery-mode");
  app.add_flag("--keep-queue", options.keep_queue, "leave the queue and its messages");
  app.add_option("--cpu-of", options.cpu_of, "a process id: report its CPU time over the timed part");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  options.batching = batching == "on";
  if (options.routing_key.empty()) options.routing_key = options.queue;
  options.properties = properties_hex.empty() ? delivery_mode_properties(static_cast<uint8_t>(delivery_mode))
                                              : from_hex(properties_hex);
  return options;
}

}  // namespace bellhop::bench
