// Consumers: a channel's book of its consumers. It changes with what the client asks and the broker answers,
// in the order of the frames. A consumer is known from when it may get a delivery to when it gets none.
// One thread (the session's).
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "config/routing_table.h"

namespace bellhop {

struct Consumer {
  std::string queue;
  bool no_ack = false;
  config::PipelineStep input = {};  // what its queue is
};

class Consumers {
 public:
  // basic.consume went up. `tag` is empty where the broker is to make one; it then must be one that is
  // answered. A tag that is in use again is the new consumer's.
  void ask(std::string_view tag, Consumer consumer, bool is_answered);
  // basic.consume-ok.
  void accept(std::string_view tag);
  // basic.cancel went up. It is asked for an answer in any case; `is_wanted`: by the client as well.
  void cancel(std::string_view tag, bool is_wanted);
  // basic.cancel-ok, or the broker's own basic.cancel (`is_asked` false). True: the client wants to hear it.
  bool end(std::string_view tag, bool is_asked);

  // Null when there is none. Good until the next change.
  const Consumer* find(std::string_view tag) const;
  // The configuration is another now.
  void find_inputs(const config::RoutingTable& routing);
  bool has_no_ack() const { return no_ack_ != 0; }
  size_t size() const { return known_.size(); }

 private:
  struct Known {
    Consumer consumer;
    // basic.cancel sent up and not answered. The tag may be in use again meanwhile: is_cancelled is false
    // then.
    size_t cancels_awaited = 0;
    bool is_cancelled = false;
  };
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  void put(std::string_view tag, Consumer consumer);

  std::unordered_map<std::string, Known, TextHash, std::equal_to<>> known_;
  size_t no_ack_ = 0;
  std::deque<std::optional<Consumer>> asked_;  // a named one is known already
  std::deque<bool> cancels_wanted_;
};

}  // namespace bellhop
