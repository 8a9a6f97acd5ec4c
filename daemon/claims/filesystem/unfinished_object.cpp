#include "daemon/claims/filesystem/unfinished_object.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/claims/filesystem/file_names.h"
#include "daemon/ops/errno_text.h"

namespace bellhop {

namespace {

constexpr uint64_t writeback_bytes_min = 8 * 1024 * 1024;

}  // namespace

Result<UnfinishedObject> UnfinishedObject::create(const StorePlace& place, DirectoryAbilities& abilities,
                                                  const std::string& key) {
  auto directory = StoreDirectory::open(place);
  if (!directory) return Error{directory.error()};
  if (auto marker = directory.value().check_marker(place); !marker) return Error{marker.error()};
  const Abilities can = abilities.of(place, directory.value(), key);
  std::string dot_name = can.unnamed_files ? std::string() : unfinished_name(key);
  FileDescriptor file(can.unnamed_files
                          ? openat(directory.value().fd(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600)
                          : openat(directory.value().fd(), dot_name.c_str(),
                                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.is_open())
    return UnfinishedObject(place, can, key, std::move(directory.value()), std::move(file),
                            std::move(dot_name));
  return Error{
      fmt::format("store '{}': cannot create a file in {}: {}", place.name, place.path, errno_text(errno))};
}

UnfinishedObject::UnfinishedObject(const StorePlace& place, Abilities can, std::string key,
                                   StoreDirectory directory, FileDescriptor file, std::string dot_name)
    : place_(&place),
      can_(can),
      key_(std::move(key)),
      directory_(std::move(directory)),
      file_(std::move(file)),
      dot_name_(std::move(dot_name)) {}

UnfinishedObject::UnfinishedObject(UnfinishedObject&& other) noexcept
    : place_(other.place_),
      can_(other.can_),
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
    auto left = static_cast<size_t>(done);
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
  if (can_.set_mode && fchmod(file_.get(), place_->mode) != 0) return failed("set the mode of", errno);
  if (place_->fsync && fsync(file_.get()) != 0) return failed("fsync", errno);
  if (!place_->fsync) {
    // Network mounts keep what they are given and tell at a close that they could not put it anywhere. Of a
    // local file this costs nothing.
    const int copy = fcntl(file_.get(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0 || close(copy) != 0) return failed("close", errno);
  }

  // The directory of the path now must be the one that the file is in: what is linked into a mount that has
  // gone is lost.
  auto now = StoreDirectory::open(*place_);
  if (!now) return Error{now.error()};
  if (!now.value().is_same_as(directory_)) {
    return Error{fmt::format("store '{}' is unavailable: {} was mounted over, unmounted or replaced",
                             place_->name, place_->path)};
  }
  if (auto marker = now.value().check_marker(*place_); !marker) return marker;

  if (const int error = put_in_place(); error != 0)
    return failed(dot_name_.empty() ? "link" : "rename", error);
  if (!place_->fsync || !can_.sync_directory) return {};
  auto synced = directory_sync.run(directory_.identity(), [this] { return directory_.sync(); });
  if (synced) return {};
  unlinkat(directory_.fd(), key_.c_str(), 0);
  return Error{fmt::format("store '{}': {}: {}", place_->name, place_->path, synced.error())};
}

// The key is fresh, so there is nothing that a rename could replace.
int UnfinishedObject::put_in_place() {
  if (dot_name_.empty()) return link_unnamed(file_.get(), directory_.fd(), key_);
  if (renameat(directory_.fd(), dot_name_.c_str(), directory_.fd(), key_.c_str()) != 0) return errno;
  dot_name_.clear();
  return 0;
}

}  // namespace bellhop
