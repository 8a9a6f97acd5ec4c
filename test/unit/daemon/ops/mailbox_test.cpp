#include "daemon/ops/mailbox.h"

#include <atomic>
#include <thread>

#include "test/support/catch.h"
#include "test/support/test_loop.h"

using namespace bellhop;
using bellhop::test::TestLoop;

TEST_CASE("a mailbox runs what other threads post, each thread's in its order", "[mailbox]") {
  TestLoop loop;
  auto opened = Mailbox::open(loop.get());
  REQUIRE(opened.ok());
  const std::shared_ptr<Mailbox> mailbox = opened.value();

  constexpr int thread_count = 4, posts_of_each = 2000;
  std::vector<std::vector<int>> seen(thread_count);
  int ran = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < thread_count; ++thread) {
    threads.emplace_back([&mailbox, &seen, &ran, thread] {
      for (int i = 0; i < posts_of_each; ++i) {
        mailbox->post([&seen, &ran, thread, i] {
          seen[static_cast<size_t>(thread)].push_back(i);
          ++ran;
        });
      }
    });
  }
  REQUIRE(loop.run_until([&ran] { return ran == thread_count * posts_of_each; }));
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<int>& each : seen) REQUIRE(std::is_sorted(each.begin(), each.end()));
  mailbox->close();
}

TEST_CASE("a task may post another", "[mailbox]") {
  TestLoop loop;
  const auto mailbox = Mailbox::open(loop.get()).value();
  std::vector<int> order;
  mailbox->post([&] {
    mailbox->post([&order] { order.push_back(3); });
    order.push_back(1);
  });
  mailbox->post([&order] { order.push_back(2); });
  REQUIRE(loop.run_until([&order] { return order.size() == 3; }));
  REQUIRE(order == std::vector<int>{1, 2, 3});
  mailbox->close();
}

TEST_CASE("after close nothing runs, and what tasks hold is let go", "[mailbox]") {
  TestLoop loop;
  auto mailbox = Mailbox::open(loop.get()).value();
  const auto held = std::make_shared<int>(1);
  bool ran = false, closed = false;

  SECTION("a task that waits when it is closed") {
    mailbox->post([held, &ran] { ran = true; });
    mailbox->close([&closed] { closed = true; });
  }
  SECTION("a task posted later, from another thread") {
    mailbox->close([&closed] { closed = true; });
    std::thread([&mailbox, &held, &ran] { mailbox->post([held, &ran] { ran = true; }); }).join();
  }
  SECTION("closed by a task, with another one behind it") {
    mailbox->post([&mailbox, &closed] { mailbox->close([&closed] { closed = true; }); });
    mailbox->post([held, &ran] { ran = true; });
  }
  REQUIRE(loop.run_until([&closed] { return closed; }));
  REQUIRE_FALSE(ran);
  REQUIRE(held.use_count() == 1);
}

TEST_CASE("what a dropped task holds may post while it is destroyed", "[mailbox]") {
  TestLoop loop;
  const auto mailbox = Mailbox::open(loop.get()).value();
  struct PostsAtEnd {
    std::shared_ptr<Mailbox> to;
    ~PostsAtEnd() {
      to->post([] {});
    }
  };
  mailbox->post([held = std::make_shared<PostsAtEnd>(PostsAtEnd{mailbox})] {});
  mailbox->close();
  loop.run_ready();
}

TEST_CASE("posting may race with closing and outlive the loop", "[mailbox]") {
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> stop = false;
    std::thread poster;
    {
      TestLoop loop;
      const auto mailbox = Mailbox::open(loop.get()).value();
      int ran = 0;
      const auto counted = std::make_shared<int*>(&ran);
      poster = std::thread([mailbox, counted, &stop] {
        while (!stop) mailbox->post([counted] { ++**counted; });
      });
      REQUIRE(loop.run_until([&ran] { return ran > 10; }));
      mailbox->close();
    }
    stop = true;
    poster.join();
  }
}
