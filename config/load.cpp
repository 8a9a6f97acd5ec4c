#include "config/load.h"

#include "config/load_sections.h"
#include "config/read_file.h"
#include "config/yaml_tree.h"

namespace bellhop::config {

namespace {

constexpr size_t file_bytes_max = 4 << 20;

void load_root(const YamlNode& tree, Config& config, Problems& problems) {
  Section root(Value(tree, Place{}, "", problems));
  if (!root.ok()) return;
  // In the sample's order, which is how an error lists them.
  for (const char* key : {"service", "listen", "broker", "stores", "claim_check", "stamp", "pipelines",
                          "routes", "slip", "consume", "limits", "log"})
    root.known(key);
  load_service(root, config);
  load_broker(root, config);
  load_listen(root, config);
  load_stores(root, config);
  load_claim_check(root, config);
  load_stamp(root, config);
  load_pipelines(root, config);
  load_routes(root, config);
  load_slip(root, config);
  load_consume(root, config);
  load_limits(root, config);
  load_log(root, config);
  root.finish();
}

}  // namespace

Loaded load_text(std::string_view yaml, const std::string& name) {
  Loaded out;
  Problems problems;
  YamlNode tree;
  if (parse_yaml(yaml, tree, problems)) load_root(tree, out.config, problems);
  out.errors = problems.lines(name);
  return out;
}

Loaded load_file(const std::string& path) {
  const Result<std::string> text = read_file(path, file_bytes_max);
  if (text) return load_text(text.value(), path);
  Loaded out;
  out.errors.push_back(path + ":1:1: file: " + text.error() + ", allowed: a readable YAML file");
  return out;
}

}  // namespace bellhop::config
