#include "daemon/claims/unfinished_object.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <stdio.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <utility>

namespace bellhop {

namespace {

constexpr uint64_t writeback_bytes_min = 8 * 1024 * 1024;

// A file without a name gets one through /proc: the other way (AT_EMPTY_PATH) needs a capability that bellhop
// does without.
bool has_proc_fd() {
  static const bool has = ::access("/proc/self/fd", X_OK) == 0;
  return has;
}

std::string dot_name_for(const std::string& key) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  gethostname(host.data(), host.size() - 1);
  std::string shown(host.data());
  for (char& c : shown) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  }
  return fmt::format("{}{}.{}.{}", unfinished_prefix, shown, getpid(), key);
}

}  // namespace

Result<UnfinishedObject> UnfinishedObject::create(const StorePlace& place, const std::string& key) {
  auto directory = StoreDirectory::open(place);
  if (!directory) return Error{directory.error()};
  if (auto marker = directory.value().check_marker(place); !marker) return Error{marker.error()};
  int error = EOPNOTSUPP;
  if (place.unnamed_files && has_proc_fd()) {
    FileDescriptor file(openat(directory.value().fd(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    error = errno;
    if (file.is_open()) {
      return UnfinishedObject(place, key, std::move(directory.value()), std::move(file), {});
    }
  }
  // EISDIR and EINVAL are what kernels and filesystems without O_TMPFILE may say.
  if (error == EOPNOTSUPP || error == EISDIR || error == EINVAL || error == ENOSYS) {
    std::string name = dot_name_for(key);
    FileDescriptor file(openat(directory.value().fd(), name.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    error = errno;
    if (file.is_open()) {
      return UnfinishedObject(place, key, std::move(directory.value()), std::move(file), std::move(name));
    }
  }
  return Error{
      fmt::format("store '{}': cannot create a file in {}: {}", place.name, place.path, errno_text(error))};
}

UnfinishedObject::UnfinishedObject(const StorePlace& place, std::string key, StoreDirectory directory,
                                   FileDescriptor file, std::string dot_name)
    : place_(&place),
      key_(std::move(key)),
      directory_(std::move(directory)),
      file_(std::move(file)),
      dot_name_(std::move(dot_name)) {}

UnfinishedObject::UnfinishedObject(UnfinishedObject&& other) noexcept
    : place_(other.place_),
      key_(std::move(other.key_)),
      directory_(std::move(other.directory_)),
      file_(std::move(other.file_)),
      dot_name_(std::exchange(other.dot_name_, {})),
      written_bytes_(other.written_bytes_),
      started_bytes_(other.started_bytes_) {}

UnfinishedObject::~UnfinishedObject() {
  if (!dot_name_.empty()) unlinkat(directory_.fd(), dot_name_.c_str(), 0);
}

Error UnfinishedObject::failed(const char* what, int error) const {
  return {fmt::format("store '{}': cannot {} {} in {}: {}", place_->name, what, key_, place_->path,
                      errno_text(error))};
}

Result<void> UnfinishedObject::append(std::span<iovec> pieces) {
  while (!pieces.empty()) {
    if (pieces.front().iov_len == 0) {
      pieces = pieces.subspan(1);
      continue;
    }
    const ssize_t done =
        writev(file_.get(), pieces.data(), static_cast<int>(std::min<size_t>(pieces.size(), IOV_MAX)));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return failed("write", done < 0 ? errno : EIO);
    written_bytes_ += static_cast<uint64_t>(done);
    size_t left = static_cast<size_t>(done);
    while (left != 0) {
      iovec& piece = pieces.front();
      const size_t taken = std::min(left, piece.iov_len);
      piece.iov_base = static_cast<char*>(piece.iov_base) + taken;
      piece.iov_len -= taken;
      left -= taken;
      if (piece.iov_len == 0) pieces = pieces.subspan(1);
    }
  }
  start_writeback();
  return {};
}

// A large file goes to the disk while it arrives, not all at once when the last byte has come. What fails
// here is told by the fsync.
void UnfinishedObject::start_writeback() {
  if (!place_->fsync || written_bytes_ - started_bytes_ < writeback_bytes_min) return;
  sync_file_range(file_.get(), static_cast<off_t>(started_bytes_),
                  static_cast<off_t>(written_bytes_ - started_bytes_), SYNC_FILE_RANGE_WRITE);
  started_bytes_ = written_bytes_;
}

Result<void> UnfinishedObject::publish(SharedSync& directory_sync) {
  // Before it gets its name, so that no reader ever meets a file that it may not read.
  if (place_->group && fchown(file_.get(), static_cast<uid_t>(-1), *place_->group) != 0) {
    return failed("set the group of", errno);
  }
  if (fchmod(file_.get(), place_->mode) != 0) return failed("set the mode of", errno);
  if (place_->fsync && fsync(file_.get()) != 0) return failed("fsync", errno);

  // The directory of the path now must be the one that the file is in: what is linked into a mount that has
  // gone is lost.
  auto now = StoreDirectory::open(*place_);
  if (!now) return Error{now.error()};
  if (!now.value().is_same_as(directory_)) {
    return Error{fmt::format("store '{}' is unavailable: {} was mounted over, unmounted or replaced",
                             place_->name, place_->path)};
  }
  if (auto marker = now.value().check_marker(*place_); !marker) return marker;

  if (const int error = put_in_place(); error != 0) return failed("link", error);
  if (!place_->fsync) return {};
  auto synced = directory_sync.run(directory_.identity(), [this] { return directory_.sync(); });
  if (synced) return {};
  unlinkat(directory_.fd(), key_.c_str(), 0);
  return Error{fmt::format("store '{}': {}: {}", place_->name, place_->path, synced.error())};
}

int UnfinishedObject::put_in_place() {
  if (dot_name_.empty()) {
    const std::string source = fmt::format("/proc/self/fd/{}", file_.get());
    const bool linked =
        linkat(AT_FDCWD, source.c_str(), directory_.fd(), key_.c_str(), AT_SYMLINK_FOLLOW) == 0;
    return linked ? 0 : errno;
  }
  if (renameat2(directory_.fd(), dot_name_.c_str(), directory_.fd(), key_.c_str(), RENAME_NOREPLACE) == 0) {
    dot_name_.clear();
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A filesystem without RENAME_NOREPLACE (NFS): a link does not replace either. The destructor takes the
  // dot-name away.
  return linkat(directory_.fd(), dot_name_.c_str(), directory_.fd(), key_.c_str(), 0) == 0 ? 0 : errno;
}

}  // namespace bellhop
