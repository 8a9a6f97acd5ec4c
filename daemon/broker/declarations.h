// What a pipeline with `declare: true` needs on a broker, as a list of idempotent declarations. Pure
// functions; control.h sends the list.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/config.h"

namespace bellhop {

// The AMQP types that arguments of queues and exchanges have in practice.
using ArgumentValue = std::variant<std::string, int32_t, int64_t, bool>;

struct Declaration {
  enum class Kind { exchange, queue, binding };
  Kind kind;
  std::string name;      // the exchange or queue; for a binding the queue
  std::string exchange;  // of a binding
  std::string key;       // of a binding
  std::vector<std::pair<std::string, ArgumentValue>> arguments = {};
  // bellhop declares everything with these values; what others have declared may have other ones
  // (inequivalence.h).
  std::string type = "direct";  // of an exchange
  bool durable = true, auto_delete = false, internal = false;

  std::string text() const;                                     // for logs: `queue fulfilment.validate`
  const ArgumentValue* argument(const std::string& key) const;  // null when there is none
  bool operator==(const Declaration&) const = default;
};

// The arguments that `dead_letter: true` gives a step's queue.
std::vector<std::pair<std::string, ArgumentValue>> dead_letter_arguments(const std::string& queue);

// As proto/README.md, "Pipeline", says: exchange P; for each step s the quorum queue P.s bound with key s,
// with its P.s.dlq and P.s.parked; and the exchanges acemq.dlx and acemq.retry that tie them together. With
// `dead_letter: false` the queue P.s has no x-dead-letter arguments. What depends on another declaration
// comes after it.
std::vector<Declaration> declarations_of(const config::Pipeline& pipeline);

// The declarations of all pipelines with `declare: true`, each once.
std::vector<Declaration> declarations_of(const config::Config& config);

}  // namespace bellhop
