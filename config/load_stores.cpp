// stores: where payloads go.
#include "config/load_s3_store.h"
#include "config/load_sections.h"
#include "config/names.h"

namespace bellhop::config {

namespace {

constexpr uint64_t retention_ms_min = 60 * 1000;
constexpr uint64_t retention_ms_max = uint64_t{36500} * 86400 * 1000;

FilesystemStore read_filesystem(Section& section) {
  FilesystemStore out;
  if (const auto path = section.find("path")) {
    if (auto text = path->text()) {
      if (text->empty()) path->error("is empty, allowed: a directory's path");
      out.path = std::move(*text);
    }
  } else {
    section.missing("path", "is missing, allowed: a directory's path");
  }
  if (const auto mode = section.find("mode"))
    if (const auto bits = mode->mode()) out.mode = *bits;
  section.read("group", out.group);
  section.read("fsync", out.fsync);
  section.read_choice<bool>("marker", out.marker_required, {{"required", true}, {"optional", false}});
  if (const auto retention = section.find("retention"))
    out.retention_ms = retention->time_ms(retention_ms_min, retention_ms_max);
  return out;
}

// A store with errors is kept under its name too, so that what names it is not reported as well.
Store read_store(const std::string& name, const Value& value) {
  enum class Type { none, filesystem, s3, memory };
  Store store{name, MemoryStore{}, proto::KeyRule::issued};
  Section section(value);
  if (!section.ok()) return store;
  Type type = Type::none;
  section.read_choice<Type>("type", type,
                            {{"filesystem", Type::filesystem}, {"s3", Type::s3}, {"memory", Type::memory}});
  if (!section.find("type")) section.missing("type", "is missing, allowed: filesystem, s3, memory");
  // Which keys are unknown depends on the type.
  if (type == Type::none) return store;
  section.read_choice<proto::KeyRule>("keys", store.keys,
                                      {{"issued", proto::KeyRule::issued}, {"any", proto::KeyRule::any}});
  if (type == Type::filesystem) store.kind = read_filesystem(section);
  if (type == Type::s3) store.kind = read_s3(section);
  section.finish();
  return store;
}

}  // namespace

void load_stores(Section& root, Config& config) {
  const auto value = root.find("stores");
  if (!value) return;
  const auto entries = value->named("stores, each with its type");
  if (!entries) return;
  for (const auto& [name, item] : *entries) {
    check_store_name(item, name);
    config.stores.push_back(read_store(name, item));
  }
}

}  // namespace bellhop::config
