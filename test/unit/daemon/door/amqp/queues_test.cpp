// The two orders of a channel, as containers.
#include "daemon/door/amqp/delivery_queue.h"
#include "daemon/door/amqp/publish_queue.h"
#include "test/support/catch.h"
#include "test/unit/daemon/door/amqp/frames.h"

using namespace bellhop;

namespace {

struct Memory {
  Budget budget{1 << 20};
  std::atomic<uint64_t> held_for_clients{0};
  SessionMemory session{budget, held_for_clients};
};

std::shared_ptr<Delivery> delivery_of(std::string_view frames, DeliveryKind kind = DeliveryKind::deliver) {
  auto delivery = std::make_shared<Delivery>();
  delivery->kind = kind;
  put(delivery->frames, as_bytes(frames));
  return delivery;
}

}  // namespace

TEST_CASE("a delivery counts as held while it is queued, with all that it grows to", "[session]") {
  Memory memory;
  DeliveryQueue queue(memory.session);
  auto first = delivery_of("12345"), second = delivery_of("1");
  queue.push(first);
  queue.push(second);
  put(second->frames, as_bytes("234"));
  second->grow();
  CHECK(memory.session.held_for_client_bytes() == first->held_bytes() + second->held_bytes());
  queue.pop_front();
  CHECK(memory.session.held_for_client_bytes() == second->held_bytes());
  queue.take_out(first);
  CHECK(queue.size() == 1);
  queue.take_out(second);
  CHECK(queue.empty());
  CHECK(memory.session.held_for_client_bytes() == 0);
}

TEST_CASE("what is taken out of a delivery queue leaves the others in their order", "[session]") {
  Memory memory;
  DeliveryQueue queue(memory.session);
  for (const char* each : {"a", "b", "c", "d"}) queue.push(delivery_of(each));
  const auto taken = queue.take_out_if(
      [](const auto& delivery) { return delivery->frames[0] == 'a' || delivery->frames[0] == 'c'; });
  CHECK(taken.size() == 2);
  CHECK(queue.size() == 2);
  CHECK(as_text(queue.front()->frames) == "b");
  CHECK(as_text(queue.back()->frames) == "d");
  CHECK(memory.session.leases(MemoryUse::delivery) == 2);
}

TEST_CASE("a delivery queue knows how many consumers' ends stand in it", "[session]") {
  Memory memory;
  DeliveryQueue queue(memory.session);
  queue.push(delivery_of("a"));
  queue.push_frames(1, 1, DeliveryKind::notice, as_bytes("cancel-ok"), "c");
  CHECK(queue.notices() == 1);
  CHECK(queue.back()->consumer_tag == "c");
  queue.clear();
  CHECK(queue.notices() == 0);
  CHECK(memory.session.held_bytes() == 0);
}

TEST_CASE("a spilled delivery takes memory until its frames are in the file", "[session]") {
  Memory memory;
  DeliveryQueue queue(memory.session);
  auto delivery = delivery_of(std::string(1000, 'x'));
  queue.push(delivery);
  const uint64_t before = memory.session.held_bytes();
  const Buffer frames = delivery->spill(nullptr, 0);
  CHECK(memory.session.held_bytes() == before);
  delivery->spilled();
  CHECK(memory.session.held_bytes() == before - 1000);
  delivery->bring_back();
  delivery->make_plain(frames);
  CHECK(memory.session.held_bytes() == before);
}

TEST_CASE("a publish queue counts frames while they wait, and grows with its last", "[session]") {
  Memory memory;
  PublishQueue queue(memory.session);
  PublishQueue::Entry entry;
  entry.kind = PublishQueue::Entry::Kind::publish;
  entry.frames = test::body_frame(1, "abc");
  entry.open = true;
  queue.push(std::move(entry));
  CHECK(memory.session.held_bytes() == 11);
  queue.append(test::body_frame(1, "d"));
  CHECK(memory.session.held_bytes() == 20);
  CHECK(queue.publishes() == 1);
  CHECK_FALSE(queue.ends_with_close());
  PublishQueue::Entry close;
  close.frames = test::close(1, 200, "bye");
  queue.push(std::move(close));
  CHECK(queue.ends_with_close());
  CHECK(queue.publishes() == 1);
  CHECK(queue.pop_front().frames.size() == 20);
  queue.drop_back();
  CHECK(queue.empty());
  CHECK(memory.session.held_bytes() == 0);
  CHECK(memory.session.leases(MemoryUse::queued_publish) == 0);
}

TEST_CASE("a job that is dropped gives back what it held, whoever else still has it", "[session]") {
  Memory memory;
  TransferSlots slots(1);
  PublishQueue queue(memory.session);
  auto job = std::make_shared<PublishJob>();
  job->slot = slots.take();
  job->memory = MemoryLease(memory.session, MemoryUse::publish, 100);
  PublishQueue::Entry entry;
  entry.kind = PublishQueue::Entry::Kind::job;
  entry.job = job;
  queue.push(std::move(entry));
  queue.clear();
  CHECK_FALSE(slots.is_full());
  CHECK(memory.session.held_bytes() == 0);
}
