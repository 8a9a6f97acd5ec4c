#include "daemon/claims/filesystem_object.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "daemon/claims/mapped_piece.h"
#include "daemon/claims/memory_object.h"
#include "daemon/claims/payload_hash.h"
#include "proto/claim_frame.h"

namespace bellhop {

namespace {

using Kind = FetchFailure::Kind;

constexpr size_t verify_piece_bytes = 256 * 1024;

// Reads until `count` bytes are there, the file ends (fewer are returned) or a call fails (an error).
Result<size_t> read_fully(int fd, uint64_t offset, uint8_t* into, size_t count) {
  size_t have = 0;
  while (have < count) {
    const ssize_t got = pread(fd, into + have, count - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error{errno_text(errno)};
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return have;
}

Result<Piece> read_piece(int fd, uint64_t offset, size_t count) {
  if (auto mapped = map_piece(fd, offset, count)) return std::move(*mapped);
  Buffer bytes(count);
  const auto got = read_fully(fd, offset, bytes.data(), count);
  if (!got) return Error{"read: " + got.error()};
  if (got.value() != count)
    return Error{fmt::format("the object ended at {} bytes while it was read", offset + got.value())};
  return piece_of(std::move(bytes));
}

class FileObject : public LocalObject {
 public:
  FileObject(std::shared_ptr<FilesystemCore> core, std::shared_ptr<FileDescriptor> file, std::string key,
             uint64_t size_bytes)
      : core_(std::move(core)), file_(std::move(file)), key_(std::move(key)), size_bytes_(size_bytes) {}
  // Even a close may wait, on a network filesystem.
  ~FileObject() override {
    core_->pool.run([file = std::move(file_)]() mutable { file.reset(); });
  }

  uint64_t size_bytes() const override { return size_bytes_; }

  void read(uint64_t offset, size_t count, std::shared_ptr<Executor> executor,
            std::function<void(Result<Piece>)> done) override {
    core_->pool.run([alive = std::weak_ptr<int>(alive_), file = file_, place = core_->place.name, key = key_,
                     offset, count, executor = std::move(executor), done = std::move(done)]() mutable {
      Result<Piece> result = read_piece(file->get(), offset, count);
      if (!result) result = Error{fmt::format("claim {}: store '{}': {}", key, place, result.error())};
      executor->post(
          [alive = std::move(alive), result = std::move(result), done = std::move(done)]() mutable {
            if (!alive.expired()) done(std::move(result));
          });
    });
  }

 private:
  const std::shared_ptr<FilesystemCore> core_;
  std::shared_ptr<FileDescriptor> file_;
  const std::string key_;
  const uint64_t size_bytes_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // who dropped the object wants no answer
};

FetchResult failed(Kind kind, const std::string& key, const std::string& why) {
  return {nullptr, {kind, fmt::format("claim {}: {}", key, why)}};
}

FetchResult cannot_open(const StorePlace& place, const StoreDirectory& directory, const std::string& key,
                        int error) {
  if (error == ENOENT) {
    if (auto marker = directory.check_marker(place); !marker)
      return failed(Kind::unavailable, key, marker.error());
    return failed(
        Kind::missing, key,
        fmt::format("store '{}' has no such object: removed by retention, or stored elsewhere", place.name));
  }
  if (error == ELOOP) {
    return failed(
        Kind::corrupt, key,
        fmt::format("store '{}': not a regular file but a symbolic link, which is not followed", place.name));
  }
  // ENXIO: a socket, or a device without a driver.
  if (error == ENXIO)
    return failed(Kind::corrupt, key, fmt::format("store '{}': not a regular file", place.name));
  std::string why = fmt::format("store '{}' is unavailable: open: {}", place.name, errno_text(error));
  struct stat status {};
  if (error == EACCES) {
    if (fstatat(directory.fd(), key.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      why += fmt::format(": the object belongs to {}; bellhop runs as uid {}", owner_and_mode(status),
                         geteuid());
    } else if (fstat(directory.fd(), &status) == 0) {
      why += fmt::format(": the directory {} belongs to {}; bellhop runs as uid {}", place.path,
                         owner_and_mode(status), geteuid());
    }
  }
  return failed(Kind::unavailable, key, why);
}

}  // namespace

FetchResult fetch_object(const std::shared_ptr<FilesystemCore>& core, const std::string& key,
                         const Expected& expected, const std::weak_ptr<const void>& wanted) {
  const StorePlace& place = core->place;
  if (!proto::is_redeemable_key(key)) return {nullptr, {Kind::corrupt, proto::bad_key_reason(key)}};
  const auto directory = StoreDirectory::open(place);
  if (!directory) return failed(Kind::unavailable, key, directory.error());
  // O_NONBLOCK: opening a fifo must not wait for its writer.
  auto file = std::make_shared<FileDescriptor>(
      openat(directory.value().fd(), key.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file->is_open()) return cannot_open(place, directory.value(), key, errno);
  struct stat status {};
  if (fstat(file->get(), &status) != 0) {
    return failed(Kind::unavailable, key,
                  fmt::format("store '{}': fstat: {}", place.name, errno_text(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return failed(Kind::corrupt, key,
                  fmt::format("store '{}': not a regular file{}", place.name,
                              S_ISDIR(status.st_mode) ? " but a directory" : ""));
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (expected.size_bytes && *expected.size_bytes != size) {
    return failed(Kind::corrupt, key,
                  fmt::format("store '{}': the object has {} bytes, the message says {}", place.name, size,
                              *expected.size_bytes));
  }

  // All of it is read even when there is no checksum to compare: a body whose object cannot be read must not
  // be begun.
  const bool keep = size <= in_memory_bytes_max;
  Buffer bytes(keep ? size : verify_piece_bytes);
  PayloadHash hash;
  for (uint64_t offset = 0; offset < size;) {
    if (wanted.expired()) return failed(Kind::unavailable, key, "nobody waits for it any more");
    const size_t count = static_cast<size_t>(std::min<uint64_t>(bytes.size(), size - offset));
    const auto got = read_fully(file->get(), offset, bytes.data(), count);
    if (!got) {
      return failed(Kind::unavailable, key, fmt::format("store '{}': read: {}", place.name, got.error()));
    }
    if (got.value() != count) {
      return failed(Kind::unavailable, key,
                    fmt::format("store '{}': the object shrank from {} to {} bytes while it was read",
                                place.name, size, offset + got.value()));
    }
    hash.update({bytes.data(), count});
    offset += count;
  }
  if (expected.xxh128) {
    if (const std::string found = hash.hex(); found != *expected.xxh128) {
      return failed(Kind::corrupt, key,
                    fmt::format("store '{}': the object's XXH3-128 is {}, the message says {}", place.name,
                                found, *expected.xxh128));
    }
  }
  if (keep) return {std::make_shared<MemoryObject>(std::make_shared<const Buffer>(std::move(bytes))), {}};
  return {std::make_shared<FileObject>(core, std::move(file), key, size), {}};
}

}  // namespace bellhop
