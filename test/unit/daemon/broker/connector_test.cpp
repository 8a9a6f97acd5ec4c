#include "daemon/broker/connector.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "proto/frame.h"
#include "proto/method.h"
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

Buffer start_frame() {
  Buffer out;
  const size_t begin = proto::begin_frame(out, proto::frame_method, 0);
  put_u32(out, proto::method::connection_start);
  put(out, Buffer(300));
  proto::end_frame(out, begin);
  return out;
}

// A node on a loopback port, with a thread: what it does with each connection.
class Node {
 public:
  enum class Says { start, start_late, half_a_start, nothing, goodbye };

  explicit Node(Says says = Says::start, bool listening = true) : says_(says), port_(listening) {
    if (listening) run();
  }
  ~Node() {
    ending_ = true;
    if (thread_.joinable()) thread_.join();
    for (const int fd : fds_) ::close(fd);
  }
  void listen() {
    REQUIRE(::listen(port_.fd, 16) == 0);
    run();
  }
  uint16_t number() const { return port_.number; }
  int accepted() const { return accepted_; }

 private:
  void run() {
    thread_ = std::thread([this] {
      while (!ending_) {
        pollfd waiting{port_.fd, POLLIN, 0};
        if (::poll(&waiting, 1, 20) != 1) continue;
        const int fd = ::accept(port_.fd, nullptr, nullptr);
        if (fd < 0) continue;
        ++accepted_;
        fds_.push_back(fd);
        char header[8];
        if (says_ == Says::nothing || ::recv(fd, header, sizeof header, MSG_WAITALL) != sizeof header)
          continue;
        // Longer than the share that a node of several would have.
        if (says_ == Says::start_late) std::this_thread::sleep_for(std::chrono::milliseconds(4500));
        if (says_ == Says::goodbye) ::shutdown(fd, SHUT_RDWR);
        const Buffer frame = start_frame();
        if (says_ == Says::start || says_ == Says::start_late || says_ == Says::half_a_start)
          ::send(fd, frame.data(), says_ == Says::half_a_start ? frame.size() / 2 : frame.size(),
                 MSG_NOSIGNAL);
      }
    });
  }

  const Says says_;
  TcpPort port_;
  std::atomic<bool> ending_{false};
  std::atomic<int> accepted_{0};
  std::vector<int> fds_;
  std::thread thread_;
};

struct Rig {
  TestLoop loop;
  config::Broker broker;
  BrokerNodes nodes;
  std::optional<Connector> connector;
  std::optional<Result<Connected>> outcome;
  int calls = 0;

  void start() {
    uv_update_time(loop.get());
    connector.emplace(loop.get(), broker, nullptr, nodes, [this](Result<Connected> result) {
      ++calls;
      outcome.emplace(std::move(result));
    });
    REQUIRE_FALSE(outcome.has_value());  // never from the constructor
  }
  bool finish() {
    return loop.run_until([this] { return outcome.has_value(); });
  }
};

}  // namespace

TEST_CASE("a connector finds the second broker when the first refuses", "[connector]") {
  TcpPort dead(false);
  Node alive;
  Rig rig;
  rig.broker.urls = {url_of("127.0.0.1", dead.number), url_of("127.0.0.1", alive.number())};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->ok());
  REQUIRE(rig.outcome->value().url == &rig.broker.urls[1]);
  REQUIRE((::fcntl(rig.outcome->value().fd.get(), F_GETFL) & O_NONBLOCK) != 0);
  REQUIRE(rig.nodes.preferred() == 1);
  REQUIRE(as_text(rig.outcome->value().answer) == as_text(start_frame()));
}

TEST_CASE("the next session begins at the broker that worked", "[connector]") {
  Node one, two;
  Rig rig;
  rig.broker.urls = {url_of("127.0.0.1", one.number()), url_of("127.0.0.1", two.number())};
  rig.nodes.prefer(1);
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->value().url == &rig.broker.urls[1]);
}

TEST_CASE("a name is resolved and each of its addresses tried", "[connector]") {
  Node alive;
  Rig rig;
  rig.broker.urls = {url_of("localhost", alive.number())};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->ok());
}

TEST_CASE("a broker that comes up while a client waits is found", "[connector]") {
  Node late(Node::Says::start, false);
  Rig rig;
  rig.broker.urls = {url_of("127.0.0.1", late.number())};
  rig.start();
  rig.loop.run_ready();  // the first round is refused
  late.listen();
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
  REQUIRE(text.find("within broker.connect_timeout (300 ms): amqp://127.0.0.1:" + port +
                    ": 127.0.0.1:" + port + ": Connection refused; ") != std::string::npos);
  REQUIRE(text.find("amqp://name.invalid:5672: ") != std::string::npos);
  rig.loop.run_ready();
  REQUIRE(rig.calls == 1);
}

TEST_CASE("a broker that never answers does not take the other's time", "[connector]") {
  test::SilentPort silent;
  Node alive;
  Rig rig;
  rig.broker.connect_timeout_ms = 6000;
  rig.broker.urls = {url_of("127.0.0.1", silent.number), url_of("127.0.0.1", alive.number())};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->ok());
  REQUIRE(rig.outcome->value().url == &rig.broker.urls[1]);
}

TEST_CASE("a node that takes the connection and does not say its start is not reached", "[connector]") {
  using Says = Node::Says;
  const Says what = GENERATE(Says::nothing, Says::half_a_start, Says::goodbye);
  Node silent(what), alive;
  Rig rig;
  rig.broker.connect_timeout_ms = 3000;
  rig.broker.urls = {url_of("127.0.0.1", silent.number()), url_of("127.0.0.1", alive.number())};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->ok());
  REQUIRE(rig.outcome->value().url == &rig.broker.urls[1]);
  REQUIRE(rig.nodes.preferred() == 1);

  // Who comes next does not wait for it, wherever it stands in the list.
  rig.outcome.reset();
  rig.nodes.prefer(0);
  rig.start();
  REQUIRE(rig.loop.run_until([&] { return rig.outcome.has_value(); }, 900));
  REQUIRE(rig.outcome->value().url == &rig.broker.urls[1]);
}

TEST_CASE("when every node is silent the error names each, and what did not come", "[connector]") {
  Node one(Node::Says::nothing), two(Node::Says::half_a_start);
  Rig rig;
  rig.broker.connect_timeout_ms = 1600;
  rig.broker.urls = {url_of("127.0.0.1", one.number()), url_of("127.0.0.1", two.number())};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE_FALSE(rig.outcome->ok());
  const std::string text = rig.outcome->error();
  CAPTURE(text);
  for (const Node* node : {&one, &two}) {
    const std::string address = "127.0.0.1:" + std::to_string(node->number());
    REQUIRE(text.find("amqp://" + address + ": " + address +
                      " accepted the connection and sent no connection.start in time") != std::string::npos);
  }
}

TEST_CASE("the only node has all the time for its start", "[connector]") {
  Node slow(Node::Says::start_late);
  Rig rig;
  rig.broker.connect_timeout_ms = 8000;
  rig.broker.urls = {url_of("127.0.0.1", slow.number())};
  rig.start();
  REQUIRE(rig.finish());
  REQUIRE(rig.outcome->ok());
  REQUIRE(slow.accepted() == 1);
}

TEST_CASE("what failed lately is tried last, for a while", "[connector]") {
  BrokerNodes nodes;
  nodes.failed("127.0.0.1:1", 1000);
  REQUIRE(nodes.failed_lately("127.0.0.1:1", 1000 + BrokerNodes::avoided_ms - 1));
  REQUIRE_FALSE(nodes.failed_lately("127.0.0.1:1", 1000 + BrokerNodes::avoided_ms));
  REQUIRE_FALSE(nodes.failed_lately("127.0.0.1:2", 1000));
  nodes.reached("127.0.0.1:1");
  REQUIRE_FALSE(nodes.failed_lately("127.0.0.1:1", 1000));
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
  rig.connector.emplace(rig.loop.get(), rig.broker, nullptr, rig.nodes, [&](Result<Connected>) {
    called = true;
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
