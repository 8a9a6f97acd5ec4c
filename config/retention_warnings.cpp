#include "config/retention_warnings.h"

#include <set>

#include "config/units.h"

namespace bellhop::config {

namespace {

// Empty: the store keeps its objects, as far as the configuration says.
std::string retention_of(const Config& config, const std::string& store_name) {
  for (const Store& store : config.stores) {
    const auto* const files = std::get_if<FilesystemStore>(&store.kind);
    if (store.name == store_name && files != nullptr && files->retention_ms)
      return show_time(*files->retention_ms);
  }
  return {};
}

}  // namespace

std::vector<std::string> retention_warnings(const Config& config) {
  std::vector<std::string> warnings;
  for (const Pipeline& pipeline : config.pipelines) {
    if (!pipeline.declare) continue;
    // What a hop offloads goes by the general rule, what a start offloads by its route's.
    std::set<std::string> stores;
    if (config.claim_check.offloads()) stores.insert(config.claim_check.store);
    for (const Route& route : config.routes) {
      if (route.slip_pipeline == pipeline.name && route.claim_check.offloads())
        stores.insert(route.claim_check.store);
    }
    for (const std::string& store : stores) {
      const std::string kept = retention_of(config, store);
      if (kept.empty()) continue;
      warnings.push_back("the queues of pipeline '" + pipeline.name +
                         "' hold messages without a time limit, and store '" + store +
                         "' removes their payloads after " + kept +
                         ": a message that waits longer is parked; give the store a longer retention, or "
                         "the queues a shorter message-ttl by a policy");
    }
  }
  return warnings;
}

}  // namespace bellhop::config
