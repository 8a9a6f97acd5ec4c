#include "daemon/broker/control.h"

#include <atomic>
#include <chrono>

#include "daemon/wire/tls_context.h"
#include "test/support/catch.h"
#include "test/support/sockets.h"

using namespace bellhop;

namespace {

std::shared_ptr<config::Config> config_for(uint16_t port) {
  auto config = std::make_shared<config::Config>();
  config::BrokerUrl url;
  url.host = "127.0.0.1";
  url.port = port;
  url.shown = "amqp://127.0.0.1:" + std::to_string(port);
  config->broker.urls = {url};
  config->broker.username = "guest";
  config->broker.password = "guest";
  config->pipelines = {{"orders", {"validate", "ship"}, true}, {"quiet", {"one"}, false}};
  return config;
}

// Waits for a connection at a listening port; the test's own deadline is the test runner's.
int wait_for_connection(const test::TcpPort& port) {
  pollfd waiting{port.fd, POLLIN, 0};
  REQUIRE(::poll(&waiting, 1, 10'000) == 1);
  return ::accept(port.fd, nullptr, nullptr);
}

}  // namespace

TEST_CASE("a pipeline's declarations are those of the manual", "[control]") {
  std::vector<std::string> text;
  std::vector<Declaration> all = declarations_of(config::Pipeline{"orders", {"ship"}, true});
  for (const Declaration& each : all) text.push_back(each.text());
  REQUIRE(text == std::vector<std::string>{
                      "exchange orders",
                      "exchange acemq.dlx",
                      "exchange acemq.retry",
                      "queue orders.ship.dlq",
                      "binding of queue orders.ship.dlq to exchange acemq.dlx with key orders.ship.dlq",
                      "queue orders.ship.parked",
                      "binding of queue orders.ship.parked to exchange acemq.dlx with key orders.ship.parked",
                      "queue orders.ship",
                      "binding of queue orders.ship to exchange acemq.retry with key orders.ship",
                      "binding of queue orders.ship to exchange orders with key ship",
                  });
  REQUIRE(all[3].arguments.empty());
  REQUIRE(all[7].arguments == std::vector<std::pair<std::string, ArgumentValue>>{
                                  {"x-queue-type", "quorum"},
                                  {"x-dead-letter-exchange", "acemq.dlx"},
                                  {"x-dead-letter-routing-key", "orders.ship.dlq"}});
}

TEST_CASE("without dead-lettering a step's queue is a quorum queue and no more", "[control]") {
  std::vector<Declaration> with = declarations_of(config::Pipeline{"orders", {"ship"}, true});
  const std::vector<Declaration> without = declarations_of(config::Pipeline{"orders", {"ship"}, true, false});
  REQUIRE(without[7].arguments ==
          std::vector<std::pair<std::string, ArgumentValue>>{{"x-queue-type", "quorum"}});
  with[7].arguments = without[7].arguments;
  REQUIRE(with == without);
}

TEST_CASE("pipelines share their exchanges, and only those that ask are declared", "[control]") {
  const auto config = config_for(1);
  REQUIRE(declarations_of(*config).size() == 3 + 2 * 7);
  config->pipelines[1].declare = true;
  REQUIRE(declarations_of(*config).size() == 3 + 2 * 7 + 1 + 7);
}

TEST_CASE("without credentials there is nothing to wait for", "[control]") {
  const auto config = config_for(1);
  config->broker.username.clear();
  SECTION("no pipeline asks") {
    config->pipelines[0].declare = false;
  }
  SECTION("no credentials") {}
  Control control(config, nullptr);
  REQUIRE(control.wait_until_done(0));
}

TEST_CASE("stop is quick wherever the thread waits", "[control]") {
  std::unique_ptr<Control> control;
  int accepted = -1;
  test::TcpPort refusing(false), mute(true);
  config::Tls tls;
  tls.verify = false;
  const auto context = TlsContext::open(tls);
  SECTION("between tries") {
    control = std::make_unique<Control>(config_for(refusing.number), nullptr);
    REQUIRE_FALSE(control->wait_until_done(50));
  }
  SECTION("for a broker that does not speak") {
    control = std::make_unique<Control>(config_for(mute.number), nullptr);
    accepted = wait_for_connection(mute);
  }
  SECTION("for the other side of a TLS handshake") {
    const auto config = config_for(mute.number);
    config->broker.urls[0].transport = config::Transport::tls;
    control = std::make_unique<Control>(config, context.value());
    accepted = wait_for_connection(mute);
  }
  SECTION("for a connection") {
    test::SilentPort silent;
    control = std::make_unique<Control>(config_for(silent.number), nullptr);
    REQUIRE_FALSE(control->wait_until_done(50));
    control->stop();
  }
  const auto before = std::chrono::steady_clock::now();
  control->stop();
  REQUIRE(std::chrono::steady_clock::now() - before < std::chrono::seconds(5));
  REQUIRE(control->wait_until_done(0));
  if (accepted >= 0) ::close(accepted);
}

TEST_CASE("with nothing to declare bellhop tries its login until a broker answers, and nobody waits for it",
          "[control]") {
  test::TcpPort port(true);
  const auto config = config_for(port.number);
  config->pipelines[0].declare = false;
  std::atomic<BrokerSeen> seen{BrokerSeen::reached};
  Control control(config, nullptr, [&seen](BrokerSeen now) { seen = now; });
  ::close(wait_for_connection(port));
  REQUIRE(control.wait_until_done(10'000));
  ::close(wait_for_connection(port));
  REQUIRE(seen == BrokerSeen::away);
  control.stop();
}

TEST_CASE("a broker that hangs up is tried again", "[control]") {
  test::TcpPort port(true);
  Control control(config_for(port.number), nullptr);
  ::close(wait_for_connection(port));
  ::close(wait_for_connection(port));
  control.stop();
}
