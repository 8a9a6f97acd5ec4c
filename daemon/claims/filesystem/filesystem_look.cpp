#include "daemon/claims/filesystem/filesystem_look.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "daemon/claims/payload_hash.h"
#include "daemon/ops/errno_text.h"
#include "daemon/ops/read_fully.h"

namespace bellhop {

namespace {

constexpr size_t piece_bytes = 256 * 1024;

}  // namespace

ObjectLook look_at_object(const StorePlace& place, const std::string& key) {
  using Kind = ObjectLook::Kind;
  const auto directory = StoreDirectory::open(place);
  if (!directory) return {Kind::unavailable, directory.error(), 0, {}, {}};
  struct stat status {};
  if (fstatat(directory.value().fd(), key.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    const int error = errno;
    if (error != ENOENT)
      return {Kind::unavailable,
              fmt::format("store '{}' is unavailable: {}", place.name, errno_text(error)),
              0,
              {},
              {}};
    if (const auto marker = directory.value().check_marker(place); !marker)
      return {Kind::unavailable, marker.error(), 0, {}, {}};
    return {Kind::missing, "removed by retention, or stored elsewhere", 0, {}, {}};
  }
  if (!S_ISREG(status.st_mode)) return {Kind::no_object, "is there, but no regular file", 0, {}, {}};
  if (status.st_nlink > 1)
    return {Kind::no_object,
            fmt::format("its file has {} names (hard links), an object has one", status.st_nlink),
            0,
            {},
            {}};
  return {Kind::present, {}, static_cast<uint64_t>(status.st_size), int64_t{status.st_mtime}, {}};
}

Result<std::string> hash_object(const StorePlace& place, const std::string& key) {
  const auto directory = StoreDirectory::open(place);
  if (!directory) return Error{directory.error()};
  const FileDescriptor file(
      openat(directory.value().fd(), key.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) return Error{"open: " + errno_text(errno)};
  PayloadHash hash;
  Buffer piece(piece_bytes);
  for (uint64_t offset = 0;;) {
    const auto got = read_fully(file.get(), offset, piece.data(), piece.size());
    if (!got) return Error{"read: " + got.error()};
    hash.update(Bytes(piece).first(got.value()));
    if (got.value() < piece.size()) return hash.hex();
    offset += got.value();
  }
}

}  // namespace bellhop
