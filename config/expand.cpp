#include "config/expand.h"

#include <cstdlib>

#include "config/problems.h"
#include "config/read_file.h"

namespace bellhop::config {

namespace {

constexpr size_t file_bytes_max = 65536;

bool is_variable_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (const char c : name) {
    if (!allowed(c)) return false;
  }
  return true;
}

Result<std::string> content_of(const std::string& path) {
  Result<std::string> content = read_file(path, file_bytes_max);
  if (!content) return Error{"file " + quoted(path) + " " + content.error()};
  std::string& text = content.value();
  const size_t newline = text.ends_with("\r\n") ? 2 : text.ends_with('\n') ? 1 : 0;
  text.resize(text.size() - newline);
  return content;
}

// `inner` is what stands between the braces.
Result<std::string> value_of(std::string_view inner) {
  constexpr const char* forms = "allowed: ${NAME}, ${NAME:-default}, ${file:/path}";
  if (inner.starts_with("file:")) return content_of(std::string(inner.substr(5)));
  const size_t separator = inner.find(":-");
  const std::string name(inner.substr(0, separator));
  if (!is_variable_name(name))
    return Error{std::string("has ${...} with no variable's name in it, ") + forms};
  const char* const value = std::getenv(name.c_str());
  if (separator == std::string_view::npos) {
    if (value == nullptr)
      return Error{"environment variable " + name + " is not set, allowed: a set one, or a default as in ${" +
                   name + ":-default}"};
    return std::string(value);
  }
  const std::string_view fallback = inner.substr(separator + 2);
  if (fallback.find("${") != std::string_view::npos)
    return Error{"has ${...} inside of ${" + name + "...}, allowed: a default without ${...}"};
  return value == nullptr || *value == '\0' ? std::string(fallback) : std::string(value);
}

}  // namespace

Result<std::string> expand(std::string_view text, bool* lacks_file) {
  std::string out;
  while (true) {
    const size_t begin = text.find("${");
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    const size_t end = text.find('}', begin);
    if (end == std::string_view::npos)
      return Error{"has ${ without its }, allowed: ${NAME}, ${NAME:-default}, ${file:/path}"};
    const std::string_view inner = text.substr(begin + 2, end - begin - 2);
    Result<std::string> value = value_of(inner);
    if (!value && lacks_file != nullptr) *lacks_file = inner.starts_with("file:");
    if (!value) return value;
    out += value.value();
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string> files_in(std::string_view text) {
  constexpr std::string_view begins = "${file:";
  std::vector<std::string> paths;
  for (size_t at = text.find(begins); at != std::string_view::npos; at = text.find(begins, at + 1)) {
    const size_t path = at + begins.size(), end = text.find('}', at);
    if (end == std::string_view::npos) break;
    paths.emplace_back(text.substr(path, end - path));
  }
  return paths;
}

std::string written_in_file(std::string_view text) {
  std::string out;
  while (true) {
    const size_t begin = text.find("${");
    out += text.substr(0, begin);
    if (begin == std::string_view::npos) return out;
    const size_t end = text.find('}', begin);
    if (end == std::string_view::npos) return out;
    const std::string_view inner = text.substr(begin + 2, end - begin - 2);
    const size_t separator = inner.find(":-");
    if (!inner.starts_with("file:") && separator != std::string_view::npos)
      out += inner.substr(separator + 2);
    text.remove_prefix(end + 1);
  }
}

}  // namespace bellhop::config
