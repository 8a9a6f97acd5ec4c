#include "daemon/wire/outbox.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <random>

#include "test/support/catch.h"
#include "test/support/sockets.h"

using namespace bellhop;
using bellhop::test::read_some;
using bellhop::test::SocketPair;

namespace {

std::string sent_text(int fd) {
  return std::string(as_text(read_some(fd, 1 << 20)));
}

}  // namespace

TEST_CASE("an outbox sends appended and borrowed bytes in the order they came", "[outbox]") {
  SocketPair pair;
  Outbox outbox;
  const std::string first = "borrowed-", second = "again-";

  outbox.append(as_bytes("one-"));
  outbox.borrow(as_bytes(first));
  put(outbox.tail(), as_bytes("two-"));
  outbox.append(as_bytes("three-"));
  outbox.borrow(as_bytes(second));
  outbox.append(as_bytes("end"));

  REQUIRE(outbox.pending() == 4 + 9 + 4 + 6 + 6 + 3);
  REQUIRE(outbox.flush(pair.a) == 32);
  REQUIRE(outbox.empty());
  REQUIRE(sent_text(pair.b) == "one-borrowed-two-three-again-end");
}

TEST_CASE("an outbox with nothing in it sends nothing", "[outbox]") {
  SocketPair pair;
  Outbox outbox;
  outbox.append({});
  outbox.borrow({});
  REQUIRE(outbox.empty());
  REQUIRE(outbox.flush(pair.a) == 0);
  bool ended = true;
  REQUIRE(read_some(pair.b, 10, &ended).empty());
  REQUIRE_FALSE(ended);
}

TEST_CASE("borrows that touch each other and more than 64 pieces all go out", "[outbox]") {
  SocketPair pair;
  Outbox outbox;
  const std::string text = "abcdefghijklmnopqrstuvwxyz";
  std::string expected;
  for (int round = 0; round < 100; ++round) {
    outbox.borrow(as_bytes(text).first(5));
    outbox.borrow(as_bytes(text).subspan(5, 5));
    outbox.append(as_bytes("-"));
    expected += "abcdefghij-";
  }
  REQUIRE(outbox.flush(pair.a) == static_cast<ssize_t>(expected.size()));
  REQUIRE(sent_text(pair.b) == expected);
}

TEST_CASE("what the socket did not take is kept although the lender reuses the bytes", "[outbox]") {
  SocketPair pair;
  test::set_send_buffer(pair.a, 1);
  Outbox outbox;
  Buffer lent(300'000, 'x');
  outbox.append(as_bytes("<"));
  outbox.borrow(lent);
  outbox.append(as_bytes(">"));

  const ssize_t sent = outbox.flush(pair.a);
  REQUIRE(sent > 0);
  REQUIRE(outbox.pending() == 300'002 - static_cast<size_t>(sent));
  lent.assign(lent.size(), '!');

  Buffer received;
  while (!outbox.empty()) {
    put(received, read_some(pair.b, 1 << 20));
    REQUIRE(outbox.flush(pair.a) >= 0);
  }
  put(received, read_some(pair.b, 1 << 20));
  REQUIRE(received.size() == 300'002);
  REQUIRE(received.front() == '<');
  REQUIRE(received.back() == '>');
  REQUIRE(std::count(received.begin(), received.end(), 'x') == 300'000);
}

TEST_CASE("own() keeps borrowed bytes without a socket", "[outbox]") {
  SocketPair pair;
  Outbox outbox;
  std::string lent = "lent";
  outbox.borrow(as_bytes(lent));
  outbox.append(as_bytes("+own"));
  outbox.own();
  lent = "gone";
  outbox.borrow(as_bytes(lent));
  outbox.own();
  REQUIRE(outbox.pending() == 12);
  REQUIRE(outbox.flush(pair.a) == 12);
  REQUIRE(sent_text(pair.b) == "lent+owngone");
}

TEST_CASE("held bytes are sent from where they are, and their owner is let go", "[outbox]") {
  SocketPair pair;
  Outbox outbox;
  auto owner = std::make_shared<const std::string>("held");
  outbox.append(as_bytes("<"));
  outbox.hold(as_bytes(*owner), owner);
  outbox.append(as_bytes(">"));
  REQUIRE(owner.use_count() == 2);
  REQUIRE(outbox.flush(pair.a) == 6);
  REQUIRE(sent_text(pair.b) == "<held>");
  REQUIRE(owner.use_count() == 1);
}

TEST_CASE("own() copies what stands between held bytes, and not those", "[outbox]") {
  SocketPair pair;
  Outbox outbox;
  std::string lent = "lent";
  auto held = std::make_shared<std::string>("held");
  outbox.borrow(as_bytes(lent));
  outbox.hold(as_bytes(*held), held);
  outbox.append(as_bytes("own"));
  outbox.borrow(as_bytes(lent));
  outbox.hold(as_bytes(*held), held);
  outbox.own();
  lent = "gone";
  *held = "HELD";
  REQUIRE(outbox.pending() == 19);
  REQUIRE(outbox.flush(pair.a) == 19);
  REQUIRE(sent_text(pair.b) == "lentHELDownlentHELD");
  REQUIRE(held.use_count() == 1);
}

TEST_CASE("held bytes outlive a socket that is full, and are let go when all is dropped", "[outbox]") {
  SocketPair pair;
  Outbox outbox;
  auto owner = std::make_shared<const Buffer>(Buffer(3 << 20, 'h'));
  for (int i = 0; i < 3; ++i) {
    outbox.append(as_bytes("["));
    outbox.hold(Bytes(*owner).subspan(static_cast<size_t>(i) << 20, 1 << 20), owner);
    outbox.append(as_bytes("]"));
  }
  const ssize_t sent = outbox.flush(pair.a);
  REQUIRE(sent > 0);
  REQUIRE(sent < (3 << 20));
  REQUIRE(outbox.pending() == static_cast<size_t>((3 << 20) + 6 - sent));
  Buffer received;
  while (received.size() < (2 << 20)) {
    put(received, read_some(pair.b, 1 << 20));
    REQUIRE(outbox.flush(pair.a) >= 0);
  }
  REQUIRE(received[0] == '[');
  REQUIRE(received[(1 << 20) + 1] == ']');
  REQUIRE(received[(1 << 20) + 2] == '[');
  REQUIRE(owner.use_count() > 1);
  outbox.clear();
  REQUIRE(owner.use_count() == 1);
}

TEST_CASE("a broken socket is an error, and what waited is dropped", "[outbox]") {
  SocketPair pair;
  pair.close_b();
  Outbox outbox;
  outbox.append(as_bytes("nobody reads this"));
  REQUIRE(outbox.flush(pair.a) == -1);
  REQUIRE(errno == EPIPE);
  REQUIRE(outbox.empty());
}

TEST_CASE("a large backlog's memory is given back once it is out", "[outbox]") {
  SocketPair pair;
  Outbox outbox;
  outbox.append(Buffer(1 << 20, 'y'));
  size_t received = 0;
  while (!outbox.empty()) {
    REQUIRE(outbox.flush(pair.a) >= 0);
    received += read_some(pair.b, 1 << 20).size();
  }
  while (received < (1 << 20)) received += read_some(pair.b, 1 << 20).size();
  REQUIRE(outbox.tail().capacity() <= 256 * 1024);
}

TEST_CASE("any mix of appends, borrows, flushes and reads keeps every byte in order", "[outbox]") {
  const char* given = std::getenv("BELLHOP_SEED");
  const unsigned seed =
      given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&random](size_t end) {
    return std::uniform_int_distribution<size_t>(0, end - 1)(random);
  };

  SocketPair pair;
  test::set_send_buffer(pair.a, 1);
  Outbox outbox;
  Buffer expected, received;
  unsigned next = 0;
  Buffer lent;  // refilled only after a flush, as a link's inbound buffer is
  size_t lent_used = 0;
  const auto fill = [&](Buffer& bytes) {
    for (uint8_t& each : bytes) {
      each = static_cast<uint8_t>(next * 31 + (next >> 3));
      ++next;
    }
  };
  // The biggest pieces pass what the socket holds, and the small ones are more than one sendmsg can name.
  const auto refill = [&] {
    lent.resize(1 + below(below(4) == 0 ? 40'000 : 400));
    fill(lent);
    lent_used = 0;
  };
  refill();
  for (int step = 0; step < 10'000; ++step) {
    switch (below(9)) {
      case 0:
      case 1: {
        Buffer bytes(below(300));
        fill(bytes);
        put(expected, bytes);
        if (below(2) == 0) {
          outbox.append(bytes);
        } else {
          put(outbox.tail(), bytes);
        }
        break;
      }
      case 2:
      case 3:
      case 4: {
        const size_t skipped = below(3) == 0 ? below(lent.size() - lent_used + 1) : 0;
        lent_used += skipped;
        const Bytes piece = Bytes(lent).subspan(lent_used, below(lent.size() - lent_used + 1));
        lent_used += piece.size();
        put(expected, piece);
        outbox.borrow(piece);
        break;
      }
      case 5: {
        auto owner =
            std::make_shared<const Buffer>(Buffer(1 + below(5000), static_cast<uint8_t>(below(256))));
        put(expected, *owner);
        outbox.hold(*owner, owner);
        break;
      }
      case 6:
        if (below(4) == 0) {
          outbox.own();
        } else {
          REQUIRE(outbox.flush(pair.a) >= 0);
        }
        lent.assign(lent.size(), 0xEE);  // a reference kept too long would show
        refill();
        break;
      default:
        put(received, read_some(pair.b, 1 + below(60'000)));
    }
    REQUIRE(outbox.pending() <= expected.size());
  }
  while (!outbox.empty()) {
    REQUIRE(outbox.flush(pair.a) >= 0);
    put(received, read_some(pair.b, 1 << 20));
  }
  while (received.size() < expected.size()) {
    const Buffer more = read_some(pair.b, 1 << 20);
    if (more.empty()) break;
    put(received, more);
  }
  REQUIRE(received.size() == expected.size());
  REQUIRE((received == expected));
}
