#include "daemon/broker/confirm_window.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include "config/load.h"
#include "daemon/ops/meter.h"
#include "test/support/catch.h"

namespace bellhop {

static bool operator==(const ConfirmWindow::Answer& a, const ConfirmWindow::Answer& b) {
  return a.client_tag == b.client_tag && a.multiple == b.multiple && a.nack == b.nack;
}

namespace {

using Answers = std::vector<ConfirmWindow::Answer>;

struct Window {
  ConfirmWindow window;
  std::vector<uint32_t> tokens;

  Answers broker(uint64_t tag, bool multiple = false, bool nack = false) {
    Answers answers;
    window.on_broker(tag, multiple, nack, answers, tokens);
    return answers;
  }
  Answers local(uint64_t tag, bool nack = false) {
    Answers answers;
    window.settle_local(tag, nack, answers);
    return answers;
  }
  Answers return_lost(uint64_t tag) {
    Answers answers;
    window.return_lost(tag, answers);
    return answers;
  }
  Answers return_handed(uint64_t tag) {
    Answers answers;
    window.return_handed(tag, answers);
    return answers;
  }
};

TEST_CASE("a publish refused here shifts the tags that follow", "[confirm_window]") {
  Window w;
  CHECK(w.window.push_relayed() == 1);
  CHECK(w.window.push_local() == 2);
  CHECK(w.window.push_relayed() == 3);
  CHECK(w.local(2, true) == Answers{{2, false, true}});
  CHECK(w.broker(2) == Answers{{3, false, false}});
  CHECK(w.broker(1) == Answers{{1, false, false}});
  CHECK(w.window.unsettled() == 0);
  CHECK_FALSE(w.window.is_plain());
}

TEST_CASE("multiple towards the client stops at an unsettled tag", "[confirm_window]") {
  Window w;
  for (int i = 0; i < 3; ++i) w.window.push_relayed();
  CHECK(w.window.push_local() == 4);
  for (int i = 0; i < 3; ++i) w.window.push_relayed();
  // The broker's tags 1 to 5 are the client's 1, 2, 3, 5, 6.
  CHECK(w.broker(5, true) == Answers{{3, true, false}, {5, false, false}, {6, false, false}});
  CHECK(w.local(4) == Answers{{4, false, false}});
  CHECK(w.broker(0, true, true) == Answers{{7, false, true}});
}

TEST_CASE("an ack waits for the return that precedes it", "[confirm_window]") {
  Window w;
  for (int i = 0; i < 3; ++i) w.window.push_relayed();
  w.window.await_return(1);
  CHECK_FALSE(w.window.is_plain());
  CHECK(w.broker(3, true) == Answers{{2, false, false}, {3, false, false}});
  CHECK(w.window.unsettled() == 1);
  CHECK(w.return_handed(1) == Answers{{1, false, false}});
  CHECK(w.return_handed(1).empty());
  CHECK(w.window.unsettled() == 0);
  CHECK(w.window.is_plain());
}

TEST_CASE("a nack that arrives while held stays a nack", "[confirm_window]") {
  Window w;
  w.window.push_relayed();
  w.window.await_return(1);
  CHECK(w.broker(1, false, true).empty());
  CHECK(w.local(1, false).empty());
  CHECK(w.return_handed(1) == Answers{{1, false, true}});
}

TEST_CASE("a publish whose return cannot be handed over is nacked, before or after the broker's ack",
          "[confirm_window]") {
  Window w;
  for (int i = 0; i < 3; ++i) w.window.push_relayed();
  w.window.await_return(1);
  CHECK(w.broker(1).empty());
  CHECK(w.return_lost(1) == Answers{{1, false, true}});
  w.window.await_return(2);
  CHECK(w.return_lost(2) == Answers{{2, false, true}});
  CHECK(w.return_lost(2).empty());
  CHECK(w.broker(2).empty());
  CHECK(w.window.is_plain());
  CHECK(w.broker(3) == Answers{{3, false, false}});
  CHECK(w.window.unsettled() == 0);
}

TEST_CASE("a return that is lost after the broker's ack gives the publish's token no second time",
          "[confirm_window]") {
  Window w;
  w.window.push_relayed(7);
  w.window.await_return(1);
  CHECK(w.broker(1).empty());
  CHECK(w.tokens == std::vector<uint32_t>{7});
  CHECK(w.return_lost(1) == Answers{{1, false, true}});
  CHECK(w.tokens == std::vector<uint32_t>{7});
  CHECK(w.window.unsettled() == 0);
  CHECK(w.window.is_plain());
}

TEST_CASE("tokens name the publishes that the broker settled, once", "[confirm_window]") {
  Window w;
  w.window.push_relayed(7);
  w.window.push_relayed();
  w.window.push_relayed(9);
  CHECK_FALSE(w.window.is_plain());
  CHECK(w.broker(3, true) == Answers{{3, true, false}});
  CHECK(w.tokens == std::vector<uint32_t>{7, 9});
  CHECK(w.window.is_plain());
}

TEST_CASE("tags that are not outstanding change nothing", "[confirm_window]") {
  Window w;
  Answers answers;
  CHECK_FALSE(w.window.on_broker(1, false, false, answers, w.tokens));
  w.window.push_relayed();
  w.window.push_relayed();
  CHECK_FALSE(w.window.on_broker(0, false, false, answers, w.tokens));
  CHECK_FALSE(w.window.on_broker(3, false, false, answers, w.tokens));
  CHECK_FALSE(w.window.on_broker(~uint64_t{0}, true, false, answers, w.tokens));
  CHECK(w.window.on_broker(2, false, false, answers, w.tokens));
  CHECK_FALSE(w.window.on_broker(2, false, false, answers, w.tokens));
  CHECK(answers == Answers{{2, false, false}});
  CHECK(w.window.on_broker(2, true, false, answers, w.tokens));  // covers 1, which is still out
  CHECK_FALSE(w.window.on_broker(2, true, false, answers, w.tokens));
  CHECK_FALSE(w.window.settle_relayed(1, false, false));
  CHECK_FALSE(w.window.settle_relayed(9, true, false));
}

TEST_CASE("plain confirms are only counted", "[confirm_window]") {
  ConfirmWindow window;
  for (uint64_t round = 0; round < 1000; ++round) {
    for (uint64_t i = 1; i <= 10; ++i) CHECK(window.push_relayed() == round * 10 + i);
    CHECK(window.is_plain());
    CHECK(window.settle_relayed(round * 10 + 3, false, false));
    CHECK(window.settle_relayed(round * 10 + 7, true, false));
    CHECK(window.unsettled() == 3);
    CHECK(window.settle_relayed(0, true, false));
    CHECK(window.unsettled() == 0);
  }
}

// The same bookkeeping without any cleverness.
struct Model {
  struct Publish {
    uint64_t broker_tag = 0;
    uint32_t token = 0;
    bool waits = false, open = true, held = false;
    std::optional<bool> kept;
  };
  std::map<uint64_t, Publish> all;
  uint64_t next_broker = 1;
  std::map<uint64_t, bool> told;  // client tag -> nack

  uint64_t push(bool relayed, uint32_t token) {
    const uint64_t tag = all.size() + 1;
    all[tag] = {relayed ? next_broker++ : 0, token, relayed, true, false, {}};
    return tag;
  }
  void settle(uint64_t tag, bool nack) {
    Publish& p = all[tag];
    if (!p.open || p.kept) return;
    if (p.held) {
      p.kept = nack;
    } else {
      p.open = false;
      told[tag] = nack;
    }
  }
  std::vector<uint32_t> broker(uint64_t broker_tag, bool multiple, bool nack) {
    std::vector<uint32_t> tokens;
    for (auto& [tag, p] : all) {
      if (!p.waits ||
          !(multiple ? broker_tag == 0 || p.broker_tag <= broker_tag : p.broker_tag == broker_tag)) {
        continue;
      }
      p.waits = false;
      if (p.token != 0) tokens.push_back(p.token);
      settle(tag, nack);
    }
    return tokens;
  }
  void return_handed(uint64_t tag) {
    Publish& p = all[tag];
    p.held = false;
    if (!p.kept) return;
    p.open = false;
    told[tag] = *p.kept;
    p.kept.reset();
  }
  size_t unsettled() const {
    size_t count = 0;
    for (const auto& [tag, p] : all) count += p.open ? 1 : 0;
    return count;
  }
  bool plain() const {
    if (next_broker != all.size() + 1) return false;
    for (const auto& [tag, p] : all) {
      if (p.held || (p.waits && (p.token != 0 || !p.open))) return false;
    }
    return true;
  }
};

// A client's view: what it still waits for, as the answers arrive.
struct Client {
  std::map<uint64_t, bool> told;
  uint64_t last = 0;

  void take(const Answers& answers, const Model& model) {
    for (const auto& answer : answers) {
      for (uint64_t tag = answer.multiple ? 1 : answer.client_tag; tag <= answer.client_tag; ++tag) {
        if (!model.told.contains(tag)) FAIL("answered tag " << tag << " is not settled");
        told.emplace(tag, answer.nack);
      }
    }
  }
};

TEST_CASE("random publishes and answers match a naive model", "[confirm_window]") {
  const char* given = std::getenv("BELLHOP_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  INFO("BELLHOP_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto below = [&random](uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 300; ++round) {
    ConfirmWindow window;
    Model model;
    Client client;
    const bool only_relayed = below(3) == 0;
    const bool tokens_used = below(2) == 0;
    uint32_t next_token = 1;
    for (int step = 0; step < 400; ++step) {
      Answers answers;
      std::vector<uint32_t> tokens, expected_tokens;
      const uint64_t some_tag = 1 + below(model.all.size() + 2);
      const bool known = model.all.contains(some_tag);
      const bool nack = below(4) == 0;
      switch (below(9)) {
        case 0:
        case 1:
        case 2: {
          const uint32_t token = tokens_used && below(4) == 0 ? next_token++ : 0;
          CHECK(window.push_relayed(token) == model.push(true, token));
          break;
        }
        case 3:
          if (!only_relayed) CHECK(window.push_local() == model.push(false, 0));
          break;
        case 4:
          if (known && below(3) == 0) {
            model.settle(some_tag, nack);
            window.settle_local(some_tag, nack, answers);
          }
          break;
        case 5:
          if (known && model.all[some_tag].open) {
            model.all[some_tag].held = true;
            window.await_return(some_tag);
          }
          break;
        case 6:
          if (known) {
            model.return_handed(some_tag);
            window.return_handed(some_tag, answers);
          }
          break;
        default: {
          const uint64_t broker_tag = below(model.next_broker + 1);
          const bool multiple = below(2) == 0;
          if (window.is_plain() && below(2) == 0) {
            if (broker_tag < model.next_broker) {
              model.broker(broker_tag, multiple, false);
              window.settle_relayed(broker_tag, multiple, false);
              client.told = model.told;
            }
            break;
          }
          if (broker_tag < model.next_broker) expected_tokens = model.broker(broker_tag, multiple, nack);
          window.on_broker(broker_tag, multiple, nack, answers, tokens);
        }
      }
      client.take(answers, model);
      if (client.told != model.told || window.unsettled() != model.unsettled() ||
          window.is_plain() != model.plain() || tokens != expected_tokens) {
        FAIL("differs at round " << round << " step " << step);
      }
      for (size_t i = 0; i + 1 < answers.size(); ++i) {
        if (answers[i + 1].multiple || answers[i].client_tag >= answers[i + 1].client_tag)
          FAIL("order of answers");
      }
    }
  }
}

}  // namespace
TEST_CASE("each publish is counted once, by its outcome", "[confirm_window]") {
  Meter meter(config::load_text("broker: { url: amqp://localhost }", "f").config);
  SessionMeter session(meter, 1, Door::unix_socket, "");
  const auto outcomes = [&] { return meter.totals().routes[0].outcomes; };
  Answers answers;
  std::vector<uint32_t> tokens;
  {
    ConfirmWindow window(&session);
    session.now_ms = 1000;
    for (int i = 0; i < 4; ++i) window.push_relayed(0, session.begin_publish(0, 10));
    window.push_local();  // a hop
    CHECK(session.unconfirmed.value() == 5);
    session.now_ms = 1030;
    CHECK(window.on_broker(1, false, false, answers, tokens));
    CHECK(window.on_broker(1, true, false, answers, tokens) == false);
    CHECK(window.on_broker(2, false, true, answers, tokens));
    window.note_returned(3);
    window.await_return(3);
    CHECK(window.on_broker(3, false, false, answers, tokens));
    CHECK(session.unconfirmed.value() == 3);
    window.return_handed(3, answers);
    window.settle_local(5, false, answers);
    CHECK(session.unconfirmed.value() == 1);
  }
  //                                   confirmed, nacked, returned, refused, unconfirmed
  CHECK(outcomes() == std::array<uint64_t, 5>{1, 1, 1, 0, 1});
  CHECK(session.unconfirmed.value() == 0);
  CHECK(meter.totals().routes[0].bytes == 40);
  CHECK(meter.totals().routes[0].until_confirmed.count() == 3);
  CHECK(meter.totals().routes[0].until_confirmed.sum_ms == 90);
}

TEST_CASE("what is relayed plainly is counted as well", "[confirm_window]") {
  Meter meter(config::load_text("broker: { url: amqp://localhost }", "f").config);
  SessionMeter session(meter, 1, Door::unix_socket, "");
  ConfirmWindow window(&session);
  for (int i = 0; i < 10; ++i) window.push_relayed(0, session.begin_publish(0, 1));
  REQUIRE(window.is_plain());
  CHECK(window.settle_relayed(4, true, false));
  CHECK(window.settle_relayed(6, false, true));
  CHECK(window.settle_relayed(0, true, false));
  CHECK(meter.totals().routes[0].outcomes == std::array<uint64_t, 5>{9, 1, 0, 0, 0});
}

}  // namespace bellhop
