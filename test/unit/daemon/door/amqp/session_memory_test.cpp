#include "daemon/door/amqp/session_memory.h"

#include "daemon/door/amqp/transfer_slots.h"
#include "test/support/catch.h"

using namespace bellhop;

namespace {

struct Memory {
  Budget budget{100};
  std::atomic<uint64_t> held_for_clients{0};
  SessionMemory session{budget, held_for_clients};
};

}  // namespace

TEST_CASE("a lease counts while it lives, for its session and its use", "[session]") {
  Memory memory;
  {
    MemoryLease lease(memory.session, MemoryUse::publish, 10);
    lease.grow(5);
    CHECK(memory.session.held_bytes() == 15);
    CHECK(memory.session.leases(MemoryUse::publish) == 1);
    lease.shrink(7);
    CHECK(lease.bytes() == 8);
    MemoryLease moved = std::move(lease);
    CHECK_FALSE(lease.is_active());
    CHECK(memory.session.held_bytes() == 8);
    lease.end();
    CHECK(memory.session.leases(MemoryUse::publish) == 1);
  }
  CHECK(memory.session.held_bytes() == 0);
  CHECK(memory.session.leases(MemoryUse::publish) == 0);
}

TEST_CASE("what is held for clients is counted beside, for all sessions", "[session]") {
  Memory memory;
  MemoryLease held(memory.session, MemoryUse::delivery, 30);
  const MemoryLease arriving(memory.session, MemoryUse::arriving_claim, 4);
  CHECK(memory.session.held_for_client_bytes() == 34);
  CHECK(memory.held_for_clients == 34);
  held.end();
  CHECK(memory.session.held_for_client_bytes() == 4);
  CHECK(memory.held_for_clients == 4);
}

TEST_CASE("a lease that is overwritten ends, and one takes another use as a whole", "[session]") {
  Memory memory;
  MemoryLease lease(memory.session, MemoryUse::arriving_hop, 10);
  lease = MemoryLease(memory.session, MemoryUse::arriving_hop, 20);
  CHECK(memory.session.held_bytes() == 20);
  lease.become(MemoryUse::publish);
  CHECK(memory.session.held_bytes() == 20);
  CHECK(memory.session.leases(MemoryUse::arriving_hop) == 0);
  CHECK(memory.session.leases(MemoryUse::publish) == 1);
}

TEST_CASE("a session is over its budget with what others than its peers will free", "[session]") {
  Memory memory;
  const uint64_t more_than_floor = (uint64_t{1} << 20) + 1;
  MemoryLease held(memory.session, MemoryUse::delivery, more_than_floor);
  const MemoryLease arriving(memory.session, MemoryUse::arriving_hop, more_than_floor);
  CHECK_FALSE(memory.session.over_budget());
  MemoryLease publishes(memory.session, MemoryUse::publish, more_than_floor);
  CHECK(memory.session.over_budget());
  publishes.shrink(1);
  CHECK_FALSE(memory.session.over_budget());
}

TEST_CASE("a transfer's place is taken until its slot ends, and a finishing one counts as such",
          "[session]") {
  TransferSlots slots(2);
  TransferSlot one = slots.take();
  CHECK_FALSE(slots.is_full());
  {
    TransferSlot two = slots.take();
    CHECK(slots.is_full());
    two.finish();
    two.finish();
    CHECK(slots.finishing() == 1);
    const TransferSlot three = slots.take();
    one.end();
    CHECK(slots.is_full());
  }
  CHECK(slots.finishing() == 0);
  CHECK_FALSE(slots.is_full());
  CHECK_FALSE(one.is_active());
}
