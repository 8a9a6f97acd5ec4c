// A Link with a TlsStream: the same promises as over a bare socket.
#include <optional>

#include "daemon/wire/link.h"
#include "test/support/catch.h"
#include "test/support/test_loop.h"
#include "test/support/tls_peer.h"

using namespace bellhop;
using bellhop::test::TestLoop;
using bellhop::test::TlsRig;

namespace {

struct Owner : LinkOwner {
  std::string received, reason;
  int reads = 0, writable = 0, ends = 0;
  std::function<void(Link&)> when_bytes = [this](Link& link) {
    received += as_text(link.unread());
    link.consume(link.unread().size());
  };

  void on_bytes(Link& link) override {
    ++reads;
    when_bytes(link);
  }
  void on_writable_again(Link&) override { ++writable; }
  void on_end(Link&, std::string why) override {
    ++ends;
    reason = std::move(why);
  }
};

// The link on one end of the pair, the peer on the other. Members go in the reverse order.
struct Rig {
  TestLoop loop;
  TlsRig tls;
  Owner owner;
  std::optional<Link> link;

  Rig() {
    REQUIRE(tls.shake_hands() == TlsStream::Step::done);
    link.emplace(tls.pair.release_a(), owner, std::move(tls.stream));
    REQUIRE(link->start(loop.get()).ok());
  }
  // Carries until the condition holds.
  template <typename Condition>
  bool run_until(Condition holds) {
    return loop.run_until([&] {
      tls.carry_up();
      put(to_client, tls.peer->output());
      const size_t given = to_client.empty() ? 0 : tls.give(to_client);
      to_client.erase(to_client.begin(), to_client.begin() + static_cast<ptrdiff_t>(given));
      return holds();
    });
  }
  Buffer to_client;
};

std::string text_of(size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i) text += static_cast<char>('a' + (i * 7) % 26);
  return text;
}

}  // namespace

TEST_CASE("a link over TLS reads and sends", "[link][tls]") {
  Rig rig;
  rig.tls.peer->says("hello");
  REQUIRE(rig.run_until([&] { return rig.owner.received == "hello"; }));
  rig.link->outbox().append(as_bytes("good "));
  rig.link->outbox().borrow(as_bytes("day"));
  rig.link->flush();
  REQUIRE(rig.run_until([&] { return rig.tls.peer->heard == "good day"; }));
  REQUIRE_FALSE(rig.link->is_blocked());
}

TEST_CASE("what TLS holds when reading pauses comes when it goes on, with no more from the peer",
          "[link][tls]") {
  Rig rig;
  const std::string text = text_of(200'000);
  size_t consumed = 0;
  std::string got;
  SECTION("paused at every read") {
    rig.owner.when_bytes = [&](Link& link) {
      got += as_text(link.unread());
      link.consume(link.unread().size());
      link.pause_reading();
    };
  }
  SECTION("full at every read: little is consumed") {
    rig.owner.when_bytes = [&](Link&) {};
  }
  rig.tls.peer->says(text);
  REQUIRE(rig.run_until([&] {
    if (rig.link->is_paused()) rig.link->resume_reading();
    const size_t part = std::min<size_t>(rig.link->unread().size(), 5000);
    got += as_text(rig.link->unread().first(part));
    rig.link->consume(part);
    consumed += part;
    return got.size() == text.size();
  }));
  REQUIRE((got == text));
}

TEST_CASE("an idle link over TLS does not spin", "[link][tls]") {
  Rig rig;
  rig.tls.peer->says("one");
  rig.tls.peer->says("two");
  Buffer wire = rig.tls.peer->output();
  rig.tls.give(Bytes(wire).first(wire.size() - 3));  // a record that is not whole
  REQUIRE(rig.loop.run_until([&] { return rig.owner.received == "one"; }));
  REQUIRE(uv_run(rig.loop.get(), UV_RUN_NOWAIT) != 0);
  REQUIRE(uv_backend_timeout(rig.loop.get()) != 0);  // it would wait for the socket
  rig.tls.give(Bytes(wire).subspan(wire.size() - 3));
  REQUIRE(rig.loop.run_until([&] { return rig.owner.received == "onetwo"; }));
}

TEST_CASE("a link over TLS keeps what a full socket does not take, and says when all is out", "[link][tls]") {
  Rig rig;
  test::set_send_buffer(rig.link->fd(), 1);
  const std::string text = text_of(500'000);
  {
    const std::string lent = text;
    rig.link->outbox().borrow(as_bytes(lent));
    rig.link->flush();
  }
  REQUIRE(rig.link->is_blocked());
  REQUIRE(rig.run_until([&] { return rig.owner.writable == 1; }));
  REQUIRE(rig.run_until([&] { return rig.tls.peer->heard.size() == text.size(); }));
  REQUIRE((rig.tls.peer->heard == text));
}

TEST_CASE("a link tells the peer's close_notify once, after its last bytes", "[link][tls]") {
  Rig rig;
  rig.tls.peer->says("bye");
  rig.tls.peer->says_end();
  REQUIRE(rig.run_until([&] { return rig.owner.ends == 1; }));
  REQUIRE(rig.owner.received == "bye");
  REQUIRE(rig.owner.reason == "the peer closed the connection");
}

TEST_CASE("a link tells what broke TLS", "[link][tls]") {
  Rig rig;
  rig.tls.peer->says("bad");
  Buffer damaged = rig.tls.peer->output();
  damaged.back() ^= 1;
  rig.tls.give(damaged);
  REQUIRE(rig.loop.run_until([&] { return rig.owner.ends == 1; }));
  REQUIRE(rig.owner.reason.starts_with("TLS failed: "));
}

TEST_CASE("closing a link over TLS, or ending its writes, says close_notify after the last bytes",
          "[link][tls]") {
  Rig rig;
  rig.link->outbox().append(as_bytes("bye"));
  SECTION("close") {
    rig.link->flush();
    bool closed = false;
    rig.link->close([&closed] { closed = true; });
    REQUIRE(rig.run_until([&] { return closed; }));
  }
  SECTION("shut_down_writes") {
    rig.link->shut_down_writes();
  }
  rig.tls.carry_up();
  REQUIRE(rig.tls.peer->heard == "bye");
  REQUIRE(rig.tls.peer->heard_end);
}
