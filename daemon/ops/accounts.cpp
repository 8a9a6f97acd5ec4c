#include "daemon/ops/accounts.h"

#include <fmt/format.h>
#include <pwd.h>

#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>
#include <vector>

#include "daemon/ops/errno_text.h"

namespace bellhop {

namespace {

constexpr size_t space_bytes_min = 1024, space_bytes_max = 1 << 20;  // a large group has many members

// Calls a reentrant lookup with as much space as the answer needs. True: there is an entry, and `use` had it.
// Else `error` is 0, or why the host cannot say.
template <typename Entry, typename Lookup, typename Use>
bool look_up(int& error, Lookup lookup, Use use) {
  for (size_t bytes = space_bytes_min; bytes <= space_bytes_max; bytes *= 2) {
    std::vector<char> space(bytes);
    Entry entry{}, *found = nullptr;
    error = lookup(&entry, space.data(), space.size(), &found);
    if (error == ERANGE || error == EINTR) continue;
    if (error != 0 || found == nullptr) return false;
    use(*found);
    return true;
  }
  return false;
}

// All digits. The largest value is no id: to the system it means "leave it as it is".
std::optional<gid_t> number_of(const std::string& text) {
  gid_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number == std::numeric_limits<gid_t>::max()) return {};
  return number;
}

}  // namespace

Result<gid_t> group_id(const std::string& text, GroupByName by_name) {
  int error = 0;
  gid_t id = 0;
  const auto lookup = [&](auto... rest) { return by_name(text.c_str(), rest...); };
  if (look_up<group>(error, lookup, [&](const group& entry) { id = entry.gr_gid; })) return id;
  if (const auto number = number_of(text)) return *number;
  // POSIX leaves to each host which of these say that there is no such name.
  if (error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM)
    return Error{fmt::format("this host has no group '{}'", text)};
  return Error{fmt::format("cannot look up group '{}': {}", text, errno_text(error))};
}

std::string user_name(uid_t uid) {
  int error = 0;
  std::string name = "unknown";
  look_up<passwd>(
      error, [&](auto... rest) { return getpwuid_r(uid, rest...); },
      [&](const passwd& entry) { name = entry.pw_name; });
  return name;
}

std::string group_name(gid_t gid) {
  int error = 0;
  std::string name = "unknown";
  look_up<group>(
      error, [&](auto... rest) { return getgrgid_r(gid, rest...); },
      [&](const group& entry) { name = entry.gr_name; });
  return name;
}

}  // namespace bellhop
