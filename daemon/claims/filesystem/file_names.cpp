#include "daemon/claims/filesystem/file_names.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "proto/claim_frame.h"

namespace bellhop {

namespace {

constexpr std::string_view unfinished_prefix = ".bellhop-upload.", partial_suffix = ".partial";
constexpr size_t key_sizes[] = {36, 32};  // with dashes and without

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_host_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

bool is_partial_name(std::string_view name) {
  if (!name.ends_with(partial_suffix)) return false;
  return std::any_of(std::begin(key_sizes), std::end(key_sizes), [name](size_t size) {
    return name.size() > size && name[size] == '.' && proto::is_issued_key(name.substr(0, size));
  });
}

}  // namespace

bool is_unfinished_name(std::string_view name) {
  if (!name.starts_with(unfinished_prefix)) return false;
  name.remove_prefix(unfinished_prefix.size());
  const size_t host_end = name.find('.');
  if (host_end == std::string_view::npos) return false;
  const std::string_view host = name.substr(0, host_end);
  name.remove_prefix(host_end + 1);
  const size_t process_end = name.find('.');
  if (process_end == std::string_view::npos) return false;
  const std::string_view process = name.substr(0, process_end);
  return std::all_of(host.begin(), host.end(), is_host_character) && !process.empty() &&
         std::all_of(process.begin(), process.end(), is_digit) &&
         proto::is_issued_key(name.substr(process_end + 1));
}

FileKind kind_of_file(std::string_view name) {
  if (proto::is_issued_key(name)) return FileKind::object;
  return is_unfinished_name(name) || is_partial_name(name) ? FileKind::unfinished : FileKind::foreign;
}

std::string unfinished_name(const std::string& key) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  std::string shown(host.data());
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return !is_host_character(c); }, '_');
  return fmt::format("{}{}.{}.{}", unfinished_prefix, shown, getpid(), key);
}

}  // namespace bellhop
