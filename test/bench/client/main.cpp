// bench_client: one measurement of one AMQP endpoint. test/bench/run drives it; `bench_client --help` lists
// its options.

#include <unistd.h>

#include <cstdio>

#include "test/bench/client/connection.h"
#include "test/bench/client/fail.h"
#include "test/bench/client/modes.h"

namespace bellhop::bench {

void peek(const Options& options) {
  Connection connection(options.endpoints.at(0));
  std::vector<uint8_t> arguments;
  constexpr uint8_t kNoAck = 1;
  Writer(arguments).u16(0).short_string(options.queue).u8(kNoAck);
  connection.call(kBasicGet, arguments, kBasicGetOk);
  const Frame header = connection.await_frame();
  if (header.type != kHeader) fail("no content header behind basic.get-ok");
  Reader reader(header.payload);
  reader.skip(12);
  std::printf("{\"properties\": \"");
  for (const uint8_t byte : reader.rest()) std::printf("%02x", byte);
  std::printf("\"}\n");
  if (connection.await_frame().type != kBody) fail("no body behind the content header");
  if (!options.keep_queue) connection.delete_queue(options.queue);
  connection.close();
}

void hold(const Options& options) {
  Connection connection(options.endpoints.at(0));
  std::printf("open\n");
  std::fflush(stdout);
  for (char byte; ::read(STDIN_FILENO, &byte, 1) > 0;) {
  }
  connection.close();
}

}  // namespace bellhop::bench

int main(int argc, char** argv) {
  using namespace bellhop::bench;
  const Options options = parse_options(argc, argv);
  if (options.mode == "publish") publish(options);
  if (options.mode == "consume") consume(options);
  if (options.mode == "latency") latency(options);
  if (options.mode == "huge") huge(options);
  if (options.mode == "crowd") crowd(options);
  if (options.mode == "churn") churn(options);
  if (options.mode == "peek") peek(options);
  if (options.mode == "hold") hold(options);
  return 0;
}
