// claim_check: which bodies go to which store.
#include <algorithm>

#include "config/load_sections.h"

namespace bellhop::config {

namespace {

std::vector<std::string> store_names(const Config& config) {
  std::vector<std::string> names;
  for (const Store& store : config.stores) names.push_back(store.name);
  return names;
}

}  // namespace

std::optional<std::string> read_store_name(const Value& value, const Config& config) {
  auto name = value.text();
  const std::vector<std::string> names = store_names(config);
  if (name && std::find(names.begin(), names.end(), *name) == names.end()) {
    value.error_with_value("is no configured store, allowed: " +
                           (names.empty() ? "a store of `stores`, which has none" : listed(names)));
  }
  return name;
}

void read_claim_check(const Value& value, const Config& config, ClaimCheck& out) {
  Section section(value);
  if (!section.ok()) return;
  section.read("enabled", out.enabled);
  const std::vector<std::string> names = store_names(config);
  const auto store = section.find("store");
  if (store) {
    // Kept although it is not configured, so that what inherits it is not reported as well.
    if (const auto name = read_store_name(*store, config)) out.store = *name;
  }
  section.read_bytes("threshold", out.threshold_bytes, 0);
  section.read_choice<bool>("inline_framing", out.inline_always, {{"as_needed", false}, {"always", true}});
  section.read_choice<bool>("already_framed", out.pass_already_framed, {{"escape", false}, {"pass", true}});
  section.finish();
  // One store is the one meant. Of several none is guessed: a payload in the wrong store is found by nobody.
  if (out.store.empty() && !store && out.enabled && names.size() == 1) out.store = names.front();
  if (out.store.empty() && !store && out.enabled && names.size() > 1)
    section.missing("store", "is missing with more than one store configured, allowed: " + listed(names) +
                                 "; or enabled: false");
}

void load_claim_check(Section& root, Config& config) {
  ClaimCheck& claim_check = config.claim_check;
  const auto value = root.find("claim_check");
  if (value) read_claim_check(*value, config, claim_check);
  // Also while disabled: a delivery is restored from it, and a route may enable it.
  if (claim_check.store.empty() && config.stores.size() == 1) claim_check.store = config.stores.front().name;
  if (!value && config.stores.size() > 1)
    root.missing("claim_check.store", "is missing with more than one store configured, allowed: " +
                                          listed(store_names(config)) + "; or enabled: false");
}

}  // namespace bellhop::config
