// A publish that stands whole at the front of a buffer.
#include "proto/whole_publish.h"

#include "test/support/catch.h"
#include "test/unit/daemon/door/amqp/frames.h"

using namespace bellhop;
using namespace bellhop::test;
using proto::whole_publish;

namespace {
constexpr size_t frame_max = 4096;
}

TEST_CASE("three whole frames of one channel are found, whatever follows", "[proto]") {
  const Buffer one = publish(7, "orders", "new", "hello", false, "id-1");
  const Buffer all = joined({one, publish(8, "e", "k", "x")});
  const auto whole = whole_publish(all, frame_max);
  REQUIRE(whole.has_value());
  CHECK(whole->channel == 7);
  CHECK(whole->flags == 0x8000u >> proto::message_id);
  CHECK(whole->raw().size() == one.size());
  CHECK(proto::decode_publish(proto::whole_frame(whole->method()).payload).value().routing_key == "new");
  CHECK(as_text(proto::whole_frame(whole->body()).payload) == "hello");
}

TEST_CASE("one that is cut off anywhere is none", "[proto]") {
  const Buffer one = publish(7, "orders", "new", "hello", false, "id-1");
  for (size_t bytes = 0; bytes < one.size(); ++bytes) {
    const Buffer cut(one.begin(), one.begin() + static_cast<ptrdiff_t>(bytes));
    CHECK_FALSE(whole_publish(cut, frame_max).has_value());
  }
}

TEST_CASE("what is not the usual case is none", "[proto]") {
  Buffer method;
  proto::put_publish(method, 1, {"e", "k", false, false});
  const auto none = [](const Buffer& bytes) { return !whole_publish(bytes, frame_max).has_value(); };
  CHECK(none(joined({method, header_frame(1, 10), body_frame(1, "hello"), body_frame(1, "hello")})));
  CHECK(none(joined({method, header_frame(1, 0), method})));
  CHECK(none(joined({method, header_frame(2, 5), body_frame(1, "hello")})));
  CHECK(none(joined({method, header_frame(1, 5), body_frame(2, "hello")})));
  CHECK(none(joined({method, method, header_frame(1, 5), body_frame(1, "hello")})));
  CHECK(none(joined({header_frame(1, 5), body_frame(1, "hello")})));
  CHECK(none(ack(1, 7)));
  Buffer other_end = publish(1, "e", "k", "hello");
  other_end.back() = 0;
  CHECK(none(other_end));
  Buffer other_class = publish(1, "e", "k", "hello");
  other_class[method.size() + proto::frame_head_bytes + 1] = 50;
  CHECK(none(other_class));
}

TEST_CASE("a frame above frame_max is left to who refuses it", "[proto]") {
  const std::string longest(frame_max, 'x');
  CHECK(whole_publish(publish(1, "e", "k", longest), frame_max).has_value());
  CHECK_FALSE(whole_publish(publish(1, "e", "k", longest + "x"), frame_max).has_value());
}
