#include "daemon/broker/declarations.h"

#include <set>

namespace bellhop {
namespace {

constexpr const char* dead_letters = "acemq.dlx";
constexpr const char* retries = "acemq.retry";
constexpr const char* dead_suffix = ".dlq";

Declaration exchange(const std::string& name) {
  return {Declaration::Kind::exchange, name, "", ""};
}
Declaration queue(const std::string& name) {
  return {Declaration::Kind::queue, name, "", ""};
}
Declaration binding(const std::string& name, const std::string& exchange, const std::string& key) {
  return {Declaration::Kind::binding, name, exchange, key};
}

}  // namespace

std::string Declaration::text() const {
  switch (kind) {
    case Kind::exchange:
      return "exchange " + name;
    case Kind::queue:
      return "queue " + name;
    case Kind::binding:
      return "binding of queue " + name + " to exchange " + exchange + " with key " + key;
  }
  return name;
}

const ArgumentValue* Declaration::argument(const std::string& key) const {
  for (const auto& [name, value] : arguments) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::vector<std::pair<std::string, ArgumentValue>> dead_letter_arguments(const std::string& queue) {
  return {{"x-dead-letter-exchange", dead_letters}, {"x-dead-letter-routing-key", queue + dead_suffix}};
}

std::vector<Declaration> declarations_of(const config::Pipeline& pipeline) {
  std::vector<Declaration> all{exchange(pipeline.name), exchange(dead_letters), exchange(retries)};
  for (const std::string& step : pipeline.steps) {
    const std::string source = pipeline.name + "." + step;
    const std::string dead = source + dead_suffix, parked = source + ".parked";
    all.push_back(queue(dead));
    all.push_back(binding(dead, dead_letters, dead));
    all.push_back(queue(parked));
    all.push_back(binding(parked, dead_letters, parked));
    all.push_back(queue(source));
    all.back().arguments = {{"x-queue-type", "quorum"}};
    if (pipeline.dead_letter) {
      for (auto& each : dead_letter_arguments(source)) all.back().arguments.push_back(std::move(each));
    }
    all.push_back(binding(source, retries, source));
    all.push_back(binding(source, pipeline.name, step));
  }
  return all;
}

std::vector<Declaration> declarations_of(const config::Config& config) {
  std::vector<Declaration> all;
  std::set<std::pair<std::string, decltype(Declaration::arguments)>> seen;
  for (const config::Pipeline& pipeline : config.pipelines) {
    if (!pipeline.declare) continue;
    for (Declaration& each : declarations_of(pipeline)) {
      if (seen.emplace(each.text(), each.arguments).second) all.push_back(std::move(each));
    }
  }
  return all;
}

}  // namespace bellhop
