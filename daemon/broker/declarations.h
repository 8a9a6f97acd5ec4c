// What a pipeline with `declare: true` needs on a broker, as a list of idempotent declarations. Pure:
// control.h sends them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/config.h"

namespace bellhop {

struct Declaration {
  enum class Kind { exchange, queue, binding };
  Kind kind;
  std::string name;      // the exchange (durable, direct) or queue (durable); for a binding the queue
  std::string exchange;  // of a binding
  std::string key;       // of a binding
  std::vector<std::pair<std::string, std::string>> arguments;  // of a queue; all are strings

  std::string text() const;  // for logs: `queue fulfilment.validate`
  bool operator==(const Declaration&) const = default;
};

// proto/README.md, "Pipeline": exchange P; for each step s the quorum queue P.s bound with key s, its
// P.s.dlq and P.s.parked, and the exchanges acemq.dlx and acemq.retry that tie them together. What depends on
// another one comes after it.
std::vector<Declaration> declarations_of(const config::Pipeline& pipeline);

// Those of all pipelines with `declare: true`, each once.
std::vector<Declaration> declarations_of(const config::Config& config);

}  // namespace bellhop
