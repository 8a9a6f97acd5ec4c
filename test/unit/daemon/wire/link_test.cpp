#include "daemon/wire/link.h"

#include <algorithm>
#include <optional>

#include "test/support/catch.h"
#include "test/support/sockets.h"
#include "test/support/test_loop.h"

using namespace bellhop;
using bellhop::test::read_some;
using bellhop::test::SocketPair;
using bellhop::test::TestLoop;

namespace {

// An owner that records, and does on each callback what the test gives it.
struct Owner : LinkOwner {
  std::string received;
  int reads = 0, writable = 0, ends = 0;
  std::string reason;
  std::function<void(Link&)> when_bytes = [this](Link& link) {
    received += as_text(link.unread());
    link.consume(link.unread().size());
  };
  std::function<void(Link&)> when_writable = [](Link&) {};
  std::function<void(Link&)> when_end = [](Link&) {};

  void on_bytes(Link& link) override {
    ++reads;
    when_bytes(link);
  }
  void on_writable_again(Link& link) override {
    ++writable;
    when_writable(link);
  }
  void on_end(Link& link, std::string why) override {
    ++ends;
    reason = std::move(why);
    when_end(link);
  }
};

// A link on one end of a pair, the test on the other. Members go in the reverse order: the link before the
// loop.
struct Rig {
  TestLoop loop;
  SocketPair pair;
  Owner owner;
  std::optional<Link> link;

  Rig() {
    link.emplace(pair.release_a(), owner);
    REQUIRE(link->start(loop.get()).ok());
  }
  void peer_sends(std::string_view text) {
    REQUIRE(::send(pair.b, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  }
  std::string peer_has() { return std::string(as_text(read_some(pair.b, 1 << 20))); }
};

}  // namespace

TEST_CASE("a link hands up what it reads and sends what its outbox holds", "[link]") {
  Rig rig;
  rig.peer_sends("hello");
  REQUIRE(rig.loop.run_until([&] { return rig.owner.received == "hello"; }));

  rig.link->outbox().append(as_bytes("good "));
  rig.link->outbox().borrow(as_bytes("day"));
  rig.link->flush();
  REQUIRE(rig.peer_has() == "good day");
  REQUIRE_FALSE(rig.link->is_blocked());
  REQUIRE(rig.owner.writable == 0);
}

TEST_CASE("bytes that are not consumed are there again, with more behind them", "[link]") {
  Rig rig;
  std::vector<std::string> seen;
  rig.owner.when_bytes = [&seen](Link& link) {
    seen.emplace_back(as_text(link.unread()));
    link.consume(link.unread().size() / 2);
  };
  rig.peer_sends("abcd");
  REQUIRE(rig.loop.run_until([&] { return rig.owner.reads == 1; }));
  rig.peer_sends("ef");
  REQUIRE(rig.loop.run_until([&] { return rig.owner.reads == 2; }));
  REQUIRE(seen == std::vector<std::string>{"abcd", "cdef"});
}

TEST_CASE("consumed bytes stay in place until the next read, so they can be borrowed", "[link]") {
  Rig rig;
  rig.owner.when_bytes = [](Link& link) {
    const Bytes all = link.unread();
    link.consume(3);
    link.outbox().borrow(all.first(3));
    link.consume(all.size() - 3);
    link.outbox().borrow(all.subspan(3));
    link.flush();
  };
  rig.peer_sends("echo me");
  std::string back;
  REQUIRE(rig.loop.run_until([&] { return (back += rig.peer_has()) == "echo me"; }));
}

TEST_CASE("the buffer grows to the frame that is expected, and only for it", "[link]") {
  Rig rig;
  constexpr size_t frame_bytes = 300'000;
  rig.owner.when_bytes = [](Link& link) {
    if (link.unread().size() < frame_bytes) {
      link.expect(frame_bytes);
    } else {
      link.consume(frame_bytes);
    }
  };
  const std::string frame(frame_bytes, 'f');
  for (int round = 0; round < 3; ++round) {
    size_t sent = 0;
    REQUIRE(rig.loop.run_until([&] {
      if (sent < frame_bytes) {
        const ssize_t part = ::send(rig.pair.b, frame.data() + sent, frame_bytes - sent, MSG_NOSIGNAL);
        if (part > 0) sent += static_cast<size_t>(part);
      }
      return sent == frame_bytes && rig.link->unread().empty();
    }));
  }
  // Small reads make it small again; an idle link can give up all of it.
  rig.owner.when_bytes = [](Link& link) { link.consume(link.unread().size()); };
  for (int i = 0; i < 100; ++i) {
    const int before = rig.owner.reads;
    rig.peer_sends("x");
    REQUIRE(rig.loop.run_until([&] { return rig.owner.reads > before; }));
  }
  rig.link->release_idle();
  rig.peer_sends("y");
  const int before = rig.owner.reads;
  REQUIRE(rig.loop.run_until([&] { return rig.owner.reads > before; }));
}

TEST_CASE("a buffer that is full and not consumed stops reading until something is", "[link]") {
  Rig rig;
  rig.owner.when_bytes = [](Link&) {};
  std::string text;
  for (size_t i = 0; i < 100'000; ++i) text += static_cast<char>('a' + i % 26);
  rig.peer_sends(std::string_view(text));
  REQUIRE(rig.loop.run_until([&] { return rig.link->unread().size() == Link::read_bytes; }));
  const int reads = rig.owner.reads;
  rig.loop.run_ready();
  REQUIRE(rig.owner.reads == reads);

  std::string all(as_text(rig.link->unread()));
  rig.link->consume(rig.link->unread().size());
  REQUIRE(rig.loop.run_until([&] { return rig.link->unread().size() == text.size() - all.size(); }));
  all += as_text(rig.link->unread());
  REQUIRE((all == text));
}

TEST_CASE("a paused link reads nothing until it is resumed", "[link]") {
  Rig rig;
  rig.link->pause_reading();
  rig.peer_sends("later");
  rig.loop.run_ready();
  REQUIRE(rig.owner.reads == 0);
  rig.link->resume_reading();
  REQUIRE(rig.loop.run_until([&] { return rig.owner.received == "later"; }));
}

TEST_CASE("a full socket keeps the rest, and says when all of it is out", "[link]") {
  Rig rig;
  test::set_send_buffer(rig.link->fd(), 1);
  std::string text;
  for (size_t i = 0; i < 500'000; ++i) text += static_cast<char>('a' + i % 26);
  {
    const std::string lent = text;
    rig.link->outbox().borrow(as_bytes(lent));
    rig.link->flush();
  }
  REQUIRE(rig.link->is_blocked());
  const std::string behind = "and what was added while it was full";
  {
    const std::string lent = behind;
    rig.link->outbox().borrow(as_bytes(lent));
    rig.link->flush();
  }
  std::string got;
  REQUIRE(rig.loop.run_until([&] {
    got += rig.peer_has();
    return rig.owner.writable == 1;
  }));
  got += rig.peer_has();
  REQUIRE((got == text + behind));
  REQUIRE_FALSE(rig.link->is_blocked());
}

TEST_CASE("the peer's end is told once, after its last bytes", "[link]") {
  Rig rig;
  rig.peer_sends("bye");
  rig.pair.close_b();
  REQUIRE(rig.loop.run_until([&] { return rig.owner.ends == 1; }));
  REQUIRE(rig.owner.received == "bye");
  REQUIRE(rig.owner.reason == "the peer closed the connection");
  rig.link->outbox().append(as_bytes("too late"));
  rig.link->flush();
  rig.loop.run_ready();
  REQUIRE(rig.owner.ends == 1);
}

TEST_CASE("a failed write is told from the loop, after what the peer had said", "[link]") {
  Rig rig;
  rig.peer_sends("because");
  rig.pair.close_b();
  rig.link->outbox().append(as_bytes("hello?"));
  rig.link->flush();
  REQUIRE(rig.owner.ends == 0);
  REQUIRE(rig.loop.run_until([&] { return rig.owner.ends == 1; }));
  REQUIRE(rig.owner.received == "because");
  REQUIRE(rig.owner.reason == "writing failed: Broken pipe");
}

TEST_CASE("a failed write is told also while reading is paused", "[link]") {
  Rig rig;
  rig.link->pause_reading();
  rig.pair.close_b();
  rig.link->outbox().append(as_bytes("hello?"));
  rig.link->flush();
  REQUIRE(rig.loop.run_until([&] { return rig.owner.ends == 1; }));
}

TEST_CASE("a reset while bytes wait to be written is told", "[link]") {
  Rig rig;
  test::set_send_buffer(rig.link->fd(), 1);
  rig.link->outbox().append(Buffer(500'000, 'z'));
  rig.link->flush();
  REQUIRE(rig.link->is_blocked());
  rig.pair.close_b();  // with unread bytes: a reset
  REQUIRE(rig.loop.run_until([&] { return rig.owner.ends == 1; }));
  REQUIRE(rig.owner.writable == 0);
}

TEST_CASE("shutting down writes sends everything first and reads on", "[link]") {
  Rig rig;
  test::set_send_buffer(rig.link->fd(), 1);
  rig.link->outbox().append(Buffer(200'000, 'w'));
  rig.link->shut_down_writes();
  size_t got = 0;
  bool ended = false;
  REQUIRE(rig.loop.run_until([&] {
    got += read_some(rig.pair.b, 1 << 20, &ended).size();
    return ended;
  }));
  REQUIRE(got == 200'000);
  rig.peer_sends("I see");
  REQUIRE(rig.loop.run_until([&] { return rig.owner.received == "I see"; }));
}

TEST_CASE("a link may be closed or destroyed in any of its callbacks", "[link]") {
  Rig rig;
  bool closed = false;
  const auto close = [&closed](Link& link) { link.close([&closed] { closed = true; }); };
  const auto destroy = [&rig, &close](Link& link) {
    close(link);
    rig.link.reset();
  };
  const bool destroys = GENERATE(false, true);
  const std::function<void(Link&)> go = destroys ? std::function<void(Link&)>(destroy) : close;
  CAPTURE(destroys);

  SECTION("in on_bytes") {
    rig.owner.when_bytes = go;
    rig.peer_sends("x");
  }
  SECTION("in on_end") {
    rig.owner.when_end = go;
    rig.pair.close_b();
  }
  SECTION("in on_end of a failed write") {
    rig.owner.when_end = go;
    rig.pair.close_b();
    rig.link->outbox().append(as_bytes("x"));
    rig.link->flush();
  }
  SECTION("in on_bytes while a failed write is drained") {
    rig.owner.when_bytes = go;
    rig.peer_sends("x");
    rig.pair.close_b();
    rig.link->outbox().append(as_bytes("x"));
    rig.link->flush();
  }
  SECTION("in on_writable_again, with bytes to read as well") {
    rig.owner.when_writable = go;
    test::set_send_buffer(rig.link->fd(), 1);
    rig.link->outbox().append(Buffer(100'000, 'x'));
    rig.link->flush();
    rig.link->pause_reading();
    rig.peer_sends("x");
    rig.link->resume_reading();
    REQUIRE(rig.loop.run_until([&] {
      rig.peer_has();
      return closed;
    }));
    REQUIRE(rig.owner.ends == 0);
  }
  REQUIRE(rig.loop.run_until([&] { return closed; }));
  REQUIRE(rig.owner.reads + rig.owner.ends + rig.owner.writable >= 1);
}

TEST_CASE("closing ends the connection at once and frees the descriptor", "[link]") {
  Rig rig;
  const int fd = rig.link->fd();
  bool closed = false;
  rig.link->close([&closed] { closed = true; });
  REQUIRE(rig.link->is_closed());
  REQUIRE(::fcntl(fd, F_GETFD) == -1);
  bool ended = false;
  read_some(rig.pair.b, 1, &ended);
  REQUIRE(ended);
  REQUIRE_FALSE(closed);
  REQUIRE(rig.loop.run_until([&closed] { return closed; }));
}

TEST_CASE("a link that was never started closes its descriptor too", "[link]") {
  SocketPair pair;
  Owner owner;
  { Link link(pair.release_a(), owner); }
  bool ended = false;
  read_some(pair.b, 1, &ended);
  REQUIRE(ended);
}

TEST_CASE("two links relay a stream through small sockets byte for byte", "[link]") {
  TestLoop loop;
  SocketPair client, broker;
  Owner down, up;
  Link below(client.release_a(), down), above(broker.release_a(), up);
  REQUIRE(below.start(loop.get()).ok());
  REQUIRE(above.start(loop.get()).ok());
  test::set_send_buffer(above.fd(), 1);
  down.when_bytes = [&above](Link& link) {
    above.outbox().borrow(link.unread());
    link.consume(link.unread().size());
    above.flush();
    if (above.is_blocked()) link.pause_reading();
  };
  up.when_writable = [&below](Link&) { below.resume_reading(); };

  std::string text;
  for (size_t i = 0; i < 2'000'000; ++i) text += static_cast<char>('a' + (i * i) % 26);
  std::string got;
  size_t sent = 0;
  REQUIRE(loop.run_until([&] {
    const ssize_t part =
        ::send(client.b, text.data() + sent, text.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (part > 0) sent += static_cast<size_t>(part);
    got += as_text(read_some(broker.b, 30'000));
    return got.size() == text.size();
  }));
  REQUIRE((got == text));
  REQUIRE(up.writable > 0);
}
