#include "daemon/cli/service_status.h"

#include "daemon/ops/waits.h"
#include "test/support/catch.h"

using namespace bellhop;

TEST_CASE("the status line says what bellhop does, and what it waits for", "[service]") {
  ServiceFacts facts;
  facts.addresses = {"unix:/run/bellhop/bellhop.sock", "tcp:127.0.0.1:5673"};
  const std::string at = "listening on unix:/run/bellhop/bellhop.sock, tcp:127.0.0.1:5673";
  CHECK(status_of(facts) == at + "; no session");
  facts.sessions = 1;
  facts.broker = Meter::BrokerState::up;
  CHECK(status_of(facts) == at + "; 1 session; broker reached");
  facts.sessions = 2;
  facts.broker = Meter::BrokerState::down;
  facts.waits = {"store 'archive'", "store 'claims'"};
  CHECK(status_of(facts) ==
        at + "; 2 sessions; waits for the broker; waits for store 'archive', store 'claims'");
  facts.broker = Meter::BrokerState::refuses;
  facts.waits.clear();
  facts.reload_failed = 3;
  CHECK(status_of(facts) == at + "; 2 sessions; the broker refuses bellhop's login; the configuration has a "
                                 "mistake, number 3 stays in use: the log says which");
}

TEST_CASE("while it drains the line says how much is left", "[service]") {
  ServiceFacts facts;
  facts.sessions = 3;
  facts.drain_left_ms = 18'200;
  CHECK(status_of(facts) == "draining: 3 sessions left, 19 s at most");
  facts.sessions = 0;
  CHECK(status_of(facts) == "draining: all sessions have ended, the stores are being closed");
}

TEST_CASE("what is waited for is shown once, until nobody waits for it", "[service]") {
  using Whats = std::vector<std::string>;
  Wait claims("store 'claims'"), archive("store 'archive'");
  CHECK_FALSE(claims.over());
  claims.begin();
  claims.begin();
  {
    Wait newer("store 'claims'");
    newer.begin();
    archive.begin();
    CHECK(what_is_waited_for() == Whats{"store 'archive'", "store 'claims'"});
    CHECK(claims.over());
    CHECK_FALSE(claims.over());
    CHECK(what_is_waited_for() == Whats{"store 'archive'", "store 'claims'"});
  }
  CHECK(what_is_waited_for() == Whats{"store 'archive'"});
  CHECK(archive.over());
  CHECK(what_is_waited_for().empty());
}
