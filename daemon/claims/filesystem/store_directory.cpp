#include "daemon/claims/filesystem/store_directory.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <ctime>

#include "daemon/claims/filesystem/file_names.h"
#include "daemon/ops/accounts.h"
#include "daemon/ops/errno_text.h"

namespace bellhop {

namespace {

constexpr time_t unfinished_age_max_s = 24 * 60 * 60;

Error unavailable(const StorePlace& place, const std::string& why) {
  return {fmt::format("store '{}' is unavailable: {}", place.name, why)};
}

}  // namespace

std::string owner_and_mode(const struct stat& status) {
  return fmt::format("uid {} ({}), gid {} ({}), mode {:04o}", status.st_uid, user_name(status.st_uid),
                     status.st_gid, group_name(status.st_gid), status.st_mode & 07777);
}

Result<StoreDirectory> StoreDirectory::open(const StorePlace& place) {
  FileDescriptor fd(::open(place.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.is_open()) return StoreDirectory(std::move(fd));
  const int error = errno;
  struct stat status {};
  if (error == EACCES && ::stat(place.path.c_str(), &status) == 0) {
    return unavailable(place, fmt::format("{}: {}: it belongs to {}; bellhop runs as uid {}", place.path,
                                          errno_text(error), owner_and_mode(status), geteuid()));
  }
  return unavailable(place, fmt::format("{}: {}", place.path, errno_text(error)));
}

SharedSync::Place StoreDirectory::identity() const {
  struct stat status {};
  if (fstat(fd(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

bool StoreDirectory::is_same_as(const StoreDirectory& other) const {
  const SharedSync::Place mine = identity();
  return mine == other.identity() && mine != SharedSync::Place{};
}

bool StoreDirectory::has_marker() const {
  struct stat status {};
  return fstatat(fd(), marker_name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<void> StoreDirectory::check_marker(const StorePlace& place) const {
  if (!place.marker_required || has_marker()) return {};
  return unavailable(place, fmt::format("marker gone: {} has no {} (is it mounted? a bellhop that is started "
                                        "while the store is there writes it)",
                                        place.path, marker_name));
}

Result<void> StoreDirectory::write_marker(const StorePlace& place, bool sync_directory) const {
  if (has_marker()) return {};
  FileDescriptor marker(
      openat(fd(), marker_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!marker.is_open()) {
    if (errno == EEXIST) return {};
    return unavailable(place,
                       fmt::format("cannot write {}/{}: {}", place.path, marker_name, errno_text(errno)));
  }
  // Empty on purpose: that it is there says everything, also when the disk is full. Others must see that it
  // is, so it is as open as can be; a mount that sets no modes gives it its own.
  (void)fchmod(marker.get(), 0644);
  if (place.fsync && fsync(marker.get()) != 0) {
    return unavailable(place,
                       fmt::format("cannot write {}/{}: {}", place.path, marker_name, errno_text(errno)));
  }
  return sync_directory ? sync() : Result<void>{};
}

Result<void> StoreDirectory::sync() const {
  if (fsync(fd()) == 0) return {};
  return Error{fmt::format("fsync of the directory: {}", errno_text(errno))};
}

std::unique_ptr<DIR, int (*)(DIR*)> StoreDirectory::list() const {
  FileDescriptor listing(openat(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, int (*)(DIR*)> entries(listing.is_open() ? fdopendir(listing.get()) : nullptr,
                                              &closedir);
  if (entries) (void)listing.release();  // closedir closes it
  return entries;
}

// Through /proc: the other way (AT_EMPTY_PATH) needs a capability that bellhop does without.
int link_unnamed(int fd, int directory_fd, const std::string& name) {
  const std::string source = fmt::format("/proc/self/fd/{}", fd);
  return linkat(AT_FDCWD, source.c_str(), directory_fd, name.c_str(), AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

size_t sweep_unfinished(const StoreDirectory& directory) {
  const auto entries = directory.list();
  if (!entries) return 0;
  size_t removed = 0;
  const time_t now = ::time(nullptr);
  while (const dirent* entry = readdir(entries.get())) {
    if (!is_unfinished_name(entry->d_name)) continue;
    struct stat status {};
    if (fstatat(directory.fd(), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode) || now - status.st_mtime < unfinished_age_max_s) continue;
    if (unlinkat(directory.fd(), entry->d_name, 0) == 0) ++removed;
  }
  return removed;
}

}  // namespace bellhop
