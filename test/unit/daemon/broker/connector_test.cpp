#include "daemon/broker/connector.h"

#include <optional>

#include "test/support/catch.h"
#include "test/support/sockets.h"
#include "test/support/test_loop.h"

using namespace bellhop;
using bellhop::test::TcpPort;
using bellhop::test::TestLoop;

namespace {

config::BrokerUrl url_of(const std::string& host, uint16_t port) {
  config::BrokerUrl url;
  url.host = host;
  url.port = port;
  url.shown = "amqp://" + host + ":" + std::to_string(port);
  return url;
}

struct Rig {
  TestLoop loop;
  config::Broker broker;
  std::atomic<size_t> preferred{0};
  std::optional<Connector> connector;
  std::optional<Result<Connected>> outcome;
  int calls = 0;

  void start() {
    uv_update_time(loop.get());
    connector.emplace(loop.get(), broker, nullptr, preferred, [this](Result<Connected> result) {
      ++calls;
      outcome.emplace(std::move(result));
    });
    REQUIRE_FALSE(outcome.has_value());  // never from the constructor
  }
  bool finish() {
    return loop.run_until([this] { return outcome.has_value(); });
  }
  ~Rig() {
    if (outcome && outcome->ok()) ::close(outcome->value().fd);
  }
};

}  // namespace

TEST_CASE("a connector finds the second broker when the first refuses", "[connector]") {
  TcpPort dead(false), alive(true);
  Rig rig;
  rig.broker.urls = {url_of("127.0.0.1", dead.number), url_of("127.0.0.1", alive.number)};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->ok());
  REQUIRE(rig.outcome->value().url == &rig.broker.urls[1]);
  REQUIRE((::fcntl(rig.outcome->value().fd, F_GETFL) & O_NONBLOCK) != 0);
  REQUIRE(rig.preferred == 1);
}

TEST_CASE("the next session begins at the broker that worked", "[connector]") {
  TcpPort one(true), two(true);
  Rig rig;
  rig.broker.urls = {url_of("127.0.0.1", one.number), url_of("127.0.0.1", two.number)};
  rig.preferred = 1;
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->value().url == &rig.broker.urls[1]);
}

TEST_CASE("a name is resolved and each of its addresses tried", "[connector]") {
  TcpPort alive(true);
  Rig rig;
  rig.broker.urls = {url_of("localhost", alive.number)};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->ok());
}

TEST_CASE("a broker that comes up while a client waits is found", "[connector]") {
  TcpPort late(false);
  Rig rig;
  rig.broker.urls = {url_of("127.0.0.1", late.number)};
  rig.start();
  rig.loop.run_ready();  // the first round is refused
  REQUIRE(::listen(late.fd, 4) == 0);
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->ok());
}

TEST_CASE("when the time is up the error names every broker and why", "[connector]") {
  TcpPort dead(false);
  Rig rig;
  rig.broker.connect_timeout_ms = 300;
  rig.broker.urls = {url_of("127.0.0.1", dead.number), url_of("name.invalid", 5672)};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE_FALSE(rig.outcome->ok());
  const std::string text = rig.outcome->error();
  CAPTURE(text);
  const std::string port = std::to_string(dead.number);
  REQUIRE(text.find("in 300 ms: amqp://127.0.0.1:" + port + ": 127.0.0.1:" + port +
                    ": Connection refused; ") != std::string::npos);
  REQUIRE(text.find("amqp://name.invalid:5672: ") != std::string::npos);
  rig.loop.run_ready();
  REQUIRE(rig.calls == 1);
}

TEST_CASE("a broker that never answers does not take the other's time", "[connector]") {
  test::SilentPort silent;
  TcpPort alive(true);
  Rig rig;
  rig.broker.connect_timeout_ms = 6000;
  rig.broker.urls = {url_of("127.0.0.1", silent.number), url_of("127.0.0.1", alive.number)};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->ok());
  REQUIRE(rig.outcome->value().url == &rig.broker.urls[1]);
}

TEST_CASE("a connector may be destroyed at any moment", "[connector]") {
  TcpPort dead(false);
  test::SilentPort silent;
  Rig rig;
  SECTION("before it did anything") {
    rig.broker.urls = {url_of("127.0.0.1", dead.number)};
  }
  SECTION("while a name is being resolved") {
    rig.broker.urls = {url_of("localhost", dead.number)};
  }
  SECTION("while a connect is answered") {
    rig.broker.urls = {url_of("127.0.0.1", dead.number), url_of("::1", 9)};
  }
  SECTION("while a connect waits") {
    rig.broker.urls = {url_of("127.0.0.1", silent.number)};
  }
  const int turns = GENERATE(0, 1, 2, 5);
  rig.start();
  for (int i = 0; i < turns; ++i) uv_run(rig.loop.get(), UV_RUN_NOWAIT);
  rig.connector.reset();
  rig.loop.run_ready();
  REQUIRE(rig.calls == 0);
}

TEST_CASE("a connector may be destroyed by what it calls", "[connector]") {
  TcpPort port(GENERATE(true, false));
  Rig rig;
  rig.broker.connect_timeout_ms = 50;
  rig.broker.urls = {url_of("127.0.0.1", port.number)};
  uv_update_time(rig.loop.get());
  bool called = false;
  rig.connector.emplace(rig.loop.get(), rig.broker, nullptr, rig.preferred, [&](Result<Connected> result) {
    called = true;
    if (result.ok()) ::close(result.value().fd);
    rig.connector.reset();
  });
  REQUIRE(rig.loop.run_until([&called] { return called; }));
}

TEST_CASE("an address is read from a literal and shown again", "[address]") {
  REQUIRE(Address::from_literal("127.0.0.1", 5672)->text() == "127.0.0.1:5672");
  REQUIRE(Address::from_literal("::1", 5672)->text() == "[::1]:5672");
  REQUIRE(Address::from_literal("[::1]", 5672)->text() == "[::1]:5672");
  REQUIRE_FALSE(Address::from_literal("localhost", 5672).has_value());
  REQUIRE_FALSE(Address::from_literal("127.0.0.1.example", 5672).has_value());
  REQUIRE_FALSE(Address::from_literal("", 5672).has_value());
}
