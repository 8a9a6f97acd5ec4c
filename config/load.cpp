#include "config/load.h"

#include <sys/stat.h>

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
                          "routes", "slip", "consume", "limits", "admin", "log"})
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
  load_admin(root, config);
  load_log(root, config);
  root.finish();
}

Loaded load(std::string_view yaml, const std::string& name, bool is_readable_by_all) {
  Loaded out;
  Problems problems;
  YamlNode tree;
  if (parse_yaml(yaml, tree, problems)) load_root(tree, out.config, problems);
  if (is_readable_by_all)
    problems.warn_of_secret(
        "is a secret, and every user of this host may read the file: chmod o-r the file, or put the secret "
        "elsewhere, as in ${file:/run/secrets/x}");
  out.lacks_only_files = !problems.empty() && !problems.has_wrong_text();
  out.files = problems.files();
  out.errors = problems.lines(name);
  out.warnings = problems.warning_lines(name);
  return out;
}

}  // namespace

Loaded load_text(std::string_view yaml, const std::string& name) {
  return load(yaml, name, false);
}

Loaded load_file(const std::string& path) {
  const Result<std::string> text = read_file(path, file_bytes_max);
  if (text) {
    struct stat info {};
    Loaded out = load(text.value(), path, ::stat(path.c_str(), &info) == 0 && (info.st_mode & S_IROTH) != 0);
    out.files.push_back(path);
    return out;
  }
  Loaded out;
  out.files.push_back(path);
  out.errors.push_back(path + ": " + text.error());
  out.lacks_only_files = true;
  return out;
}

}  // namespace bellhop::config
