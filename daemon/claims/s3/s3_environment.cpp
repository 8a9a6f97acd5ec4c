#include "daemon/claims/s3/s3_environment.h"

#include "config/read_file.h"

namespace bellhop {

namespace {

constexpr size_t file_bytes_max = 1 << 20;
constexpr std::string_view blanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string shared_file(const Environment& environment, const char* name, const char* below_home) {
  std::string path = variable(environment, name);
  if (!path.empty()) return path;
  const std::string home = variable(environment, "HOME");
  return home.empty() ? std::string() : home + below_home;
}

}  // namespace

std::string variable(const Environment& environment, const char* name) {
  const char* const value = environment(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string aws_profile(const Environment& environment) {
  const std::string name = variable(environment, "AWS_PROFILE");
  return name.empty() ? "default" : name;
}

std::string credentials_file(const Environment& environment) {
  return shared_file(environment, "AWS_SHARED_CREDENTIALS_FILE", "/.aws/credentials");
}

std::optional<std::string> ini_value(std::string_view text, std::string_view section, std::string_view key) {
  bool inside = false;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view whole = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      inside = line.back() == ']' && trimmed(line.substr(1, line.size() - 2)) == section;
      continue;
    }
    // An indented line belongs to the key before it.
    const size_t equals = line.find('=');
    if (!inside || equals == std::string_view::npos || blanks.find(whole.front()) != std::string_view::npos)
      continue;
    if (trimmed(line.substr(0, equals)) == key) return std::string(trimmed(line.substr(equals + 1)));
  }
  return {};
}

std::string find_s3_region(const config::S3Store& store, const Environment& environment) {
  if (!store.region.empty()) return store.region;
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (std::string region = variable(environment, name); !region.empty()) return region;
  }
  const std::string name = aws_profile(environment);
  const std::string in_config = name == "default" ? name : "profile " + name;
  for (const auto& [path, section] :
       {std::pair(shared_file(environment, "AWS_CONFIG_FILE", "/.aws/config"), in_config),
        std::pair(credentials_file(environment), name)}) {
    if (path.empty()) continue;
    const Result<std::string> text = config::read_file(path, file_bytes_max);
    if (!text) continue;
    if (auto region = ini_value(text.value(), section, "region"); region && !region->empty()) return *region;
  }
  return "us-east-1";
}

std::string find_ca_bundle(const Environment& environment) {
  for (const char* name : {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (std::string path = variable(environment, name); !path.empty()) return path;
  }
  return {};
}

}  // namespace bellhop
