#include "daemon/broker/tag_window.h"

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "test/support/catch.h"

namespace bellhop {

static bool operator==(const TagWindow::Piece& a, const TagWindow::Piece& b) {
  return a.tag == b.tag && a.multiple == b.multiple;
}

namespace {

using Owner = TagWindow::Owner;
using Pieces = std::vector<TagWindow::Piece>;

TagWindow window_of(const std::string& owners) {
  TagWindow window;
  uint64_t tag = 0;
  for (char owner : owners) window.add(++tag, owner == 'c' ? Owner::client : Owner::bellhop);
  return window;
}

TEST_CASE("multiple stops below the first tag of bellhop's, later ones go alone", "[tag_window]") {
  TagWindow window = window_of("cccbccb");
  CHECK_FALSE(window.is_plain());
  CHECK(window.settle(6, true).pieces == Pieces{{3, true}, {5, false}, {6, false}});
  CHECK(window.client_unsettled() == 0);
  window.settle_own(4);
  window.settle_own(7);
  CHECK(window.is_plain());
}

TEST_CASE("multiple below bellhop's tags goes as it came", "[tag_window]") {
  TagWindow window = window_of("cccb");
  CHECK(window.settle(2, true).pieces == Pieces{{2, true}});
  CHECK(window.owner(3) == Owner::client);
}

TEST_CASE("tag 0 covers only what the client was handed", "[tag_window]") {
  TagWindow window = window_of("bcbc");
  CHECK(window.settle(0, true).pieces == Pieces{{2, false}, {4, false}});
  const auto again = window.settle(0, true);
  CHECK(again.ok);
  CHECK(again.pieces.empty());
  CHECK(window.owner(1) == Owner::bellhop);
  CHECK(window.owner(3) == Owner::bellhop);
  TagWindow plain = window_of("cc");
  CHECK(plain.settle(0, true).pieces == Pieces{{0, true}});
  CHECK(plain.client_unsettled() == 0);
}

TEST_CASE("a client cannot settle a tag that it was not handed", "[tag_window]") {
  TagWindow window = window_of("cbc");
  CHECK_FALSE(window.settle(2, false).ok);
  CHECK_FALSE(window.settle(2, true).ok);
  CHECK(window.client_unsettled() == 2);
}

TEST_CASE("what the window does not know goes to the broker as it came", "[tag_window]") {
  TagWindow window = window_of("cbc");
  CHECK(window.settle(9, false).pieces == Pieces{{9, false}});
  CHECK(window.settle(9, true).pieces == Pieces{{9, true}});
  CHECK(window.settle(0, false).pieces == Pieces{{0, false}});
  CHECK(window.settle(1, false).pieces == Pieces{{1, false}});
  CHECK(window.settle(1, false).pieces == Pieces{{1, false}});
  CHECK(window.client_unsettled() == 1);
}

TEST_CASE("a tag given over belongs to its new owner", "[tag_window]") {
  TagWindow window = window_of("bcc");
  window.give(1, Owner::client);
  CHECK(window.is_plain());
  CHECK(window.client_unsettled() == 3);
  window.give(2, Owner::bellhop);
  CHECK(window.settle(3, true).pieces == Pieces{{1, true}, {3, false}});
  window.give(2, Owner::client);
  CHECK(window.settle(2, true).pieces == Pieces{{2, true}});
  window.give(2, Owner::bellhop);
  CHECK(window.owner(2) == Owner::settled);
}

TEST_CASE("one old unsettled tag does not let the window grow", "[tag_window]") {
  TagWindow window;
  window.add(1, Owner::bellhop);
  for (uint64_t tag = 2; tag < 100'000; ++tag) {
    window.add(tag, Owner::client);
    const auto covered = window.settle(tag, true);
    if (!(covered.pieces == Pieces{{tag, false}})) FAIL("tag " << tag);
  }
  CHECK(window.owner(1) == Owner::bellhop);
  CHECK(window.client_unsettled() == 0);
  window.settle_own(1);
  CHECK(window.is_plain());
}

TEST_CASE("gaps, as huge as they may be, cost nothing", "[tag_window]") {
  TagWindow window;
  window.add(5, Owner::bellhop);
  window.add(uint64_t{1} << 60, Owner::client);
  window.add(7, Owner::client);             // not rising: ignored
  window.add(~uint64_t{0}, Owner::client);  // past what a channel can reach: ignored
  CHECK(window.client_unsettled() == 1);
  CHECK(window.owner(uint64_t{1} << 60) == Owner::client);
  CHECK(window.owner(6) == Owner::settled);
  window.clear();
  CHECK(window.owner(5) == Owner::settled);
  CHECK(window.is_plain());
  CHECK(window.client_unsettled() == 0);
}

TEST_CASE("random deliveries and acks match a naive model", "[tag_window]") {
  const char* given = std::getenv("BELLHOP_TEST_SEED");
  const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  INFO("BELLHOP_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto below = [&random](uint64_t bound) { return random() % bound; };
  for (int round = 0; round < 300; ++round) {
    TagWindow window;
    std::map<uint64_t, Owner> model;  // unsettled ones only
    uint64_t latest = 0;
    const uint64_t owned_in = 1 + below(20);
    for (int step = 0; step < 500; ++step) {
      const uint64_t tag = below(latest + 2);
      const Owner owner = model.contains(tag) ? model[tag] : Owner::settled;
      switch (below(8)) {
        case 0:
        case 1:
        case 2: {
          latest += below(10) == 0 ? 1 + below(200) : 1;
          const Owner fresh = below(owned_in) == 0 ? Owner::bellhop : Owner::client;
          window.add(latest, fresh);
          model[latest] = fresh;
          break;
        }
        case 3: {
          const Owner fresh = below(2) == 0 ? Owner::bellhop : Owner::client;
          window.give(tag, fresh);
          if (owner != Owner::settled) model[tag] = fresh;
          break;
        }
        case 4:
          window.settle_own(tag);
          if (owner == Owner::bellhop) model.erase(tag);
          break;
        default: {
          const bool multiple = below(2) == 0;
          std::set<uint64_t> expected;
          const bool names_all = tag == 0 && multiple;
          for (const auto& [each, whose] : model) {
            if (whose == Owner::client && (each == tag || (multiple && (names_all || each < tag))))
              expected.insert(each);
          }
          if (window.is_plain() && (names_all || owner == Owner::client) && below(2) == 0) {
            window.settle_plain(tag, multiple);
            for (uint64_t each : expected) model.erase(each);
            break;
          }
          const auto covered = window.settle(tag, multiple);
          if (covered.ok != (owner != Owner::bellhop || names_all)) FAIL("ok of tag " << tag);
          if (!covered.ok) break;
          if (!names_all && owner == Owner::settled) {
            if (!(covered.pieces == Pieces{{tag, multiple}})) FAIL("unknown tag " << tag);
            break;
          }
          std::set<uint64_t> told;
          for (size_t i = 0; i < covered.pieces.size(); ++i) {
            const auto& piece = covered.pieces[i];
            if (piece.multiple && i != 0) FAIL("a multiple that is not the first piece");
            if (!piece.multiple) told.insert(piece.tag);
            for (const auto& [each, whose] : model) {
              if (!piece.multiple || (piece.tag != 0 && each > piece.tag)) continue;
              if (whose == Owner::bellhop) FAIL("covers bellhop's tag " << each);
              told.insert(each);
            }
          }
          if (told != expected) FAIL("round " << round << " step " << step << " tag " << tag);
          for (uint64_t each : expected) model.erase(each);
        }
      }
      size_t clients = 0;
      for (const auto& [each, whose] : model) clients += whose == Owner::client ? 1 : 0;
      if (window.client_unsettled() != clients || window.is_plain() != (clients == model.size()))
        FAIL("counters");
      const uint64_t probe = below(latest + 2);
      if (window.owner(probe) != (model.contains(probe) ? model[probe] : Owner::settled))
        FAIL("owner of " << probe);
    }
  }
}

TEST_CASE("what was settled in a transaction is the client's again after a rollback", "[tag_window]") {
  TagWindow window = window_of("ccbcc");
  CHECK(window.settle(4, true, Owner::in_tx).pieces == Pieces{{2, true}, {4, false}});
  CHECK(window.settle(0, true, Owner::in_tx).pieces == Pieces{{5, false}});
  window.end_tx(false);
  CHECK(window.client_unsettled() == 4);
  CHECK(window.settle(1, false, Owner::in_tx).pieces == Pieces{{1, false}});
  CHECK(window.settle(0, true, Owner::in_tx).pieces == Pieces{{2, true}, {4, false}, {5, false}});
  window.end_tx(true);
  CHECK(window.client_unsettled() == 0);
  CHECK(window.owner(3) == Owner::bellhop);
}

TEST_CASE("a plain settle in a transaction covers what no earlier one of it did", "[tag_window]") {
  TagWindow window = window_of("cccc");
  window.settle_plain(2, false, Owner::in_tx);
  window.settle_plain(3, true, Owner::in_tx);
  window.add(5, Owner::client);
  CHECK(window.client_unsettled() == 5);
  window.end_tx(true);
  CHECK(window.client_unsettled() == 2);
  CHECK(window.owner(2) == Owner::settled);
  CHECK(window.owner(4) == Owner::client);
}

}  // namespace
}  // namespace bellhop
