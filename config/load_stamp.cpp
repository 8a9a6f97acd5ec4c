// stamp: what is filled in on a publish.
#include "config/load_sections.h"

namespace bellhop::config {

void read_stamp(const Value& value, Stamp& out) {
  Section section(value);
  if (!section.ok()) return;
  section.read_choice<DeliveryMode>("delivery_mode", out.delivery_mode,
                                    {{"persistent", DeliveryMode::persistent},
                                     {"transient", DeliveryMode::transient},
                                     {"keep", DeliveryMode::keep}});
  section.read_choice<bool>("message_id", out.fill_message_id, {{"fill", true}, {"keep", false}});
  section.read_choice<bool>("envelope", out.envelope, {{"none", false}, {"acemq", true}});
  section.finish();
}

void load_stamp(Section& root, Config& config) {
  if (const auto value = root.find("stamp")) read_stamp(*value, config.stamp);
}

}  // namespace bellhop::config
