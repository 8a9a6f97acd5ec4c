#include "daemon/claims/filesystem/filesystem_fetch.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>

#include "daemon/claims/filesystem/file_identity.h"
#include "daemon/claims/filesystem/filesystem_object.h"
#include "daemon/claims/memory_object.h"
#include "daemon/claims/payload_hash.h"
#include "daemon/ops/errno_text.h"
#include "daemon/ops/read_fully.h"

namespace bellhop {

namespace {

using Kind = FetchFailure::Kind;
using Clock = std::chrono::steady_clock;

constexpr size_t piece_bytes = 256 * 1024;
constexpr std::chrono::milliseconds part_max{5};

//   start ─► open ─┬─ small: read whole ─────────────────────────────────┬─► done
//                  └─ large: verify a part ─► ... ─► verify a part ─► ───┘
class FilesystemFetch : public std::enable_shared_from_this<FilesystemFetch> {
 public:
  FilesystemFetch(std::shared_ptr<FilesystemCore> core, FetchRequest request)
      : core_(std::move(core)), request_(std::move(request)) {}

  void start() {
    core_->pool.run(request_.executor.get(), Work::fetch, [self = shared_from_this()] { self->run(); });
  }

 private:
  // A pool thread, one at a time.
  void run() {
    std::optional<FetchFailure> failure;
    if (file_ == nullptr) {
      failure = open();
      if (!failure && !is_kept()) {
        core_->verifying.run(request_.executor.get(), Work::verify,
                             [self = shared_from_this()] { self->run(); });
        return;
      }
    }
    if (!failure) failure = verify_part();
    const bool has_more = !failure && offset_ < size_bytes_;
    if (has_more && core_->verifying.go_on(request_.executor.get(), Work::verify,
                                           [self = shared_from_this()] { self->run(); }))
      return;
    // Without a thread for the rest it is done here.
    while (!failure && offset_ < size_bytes_) failure = verify_part();
    if (!failure) failure = verify_end();
    FetchResult result;
    if (failure) {
      result.failure = std::move(*failure);
    } else if (is_kept()) {
      result.object = std::make_shared<MemoryObject>(std::make_shared<const Buffer>(std::move(kept_)));
    } else {
      result.object = std::make_shared<FileObject>(core_, std::move(file_), request_.key, before_);
    }
    request_.answer(std::move(result));
  }

  // Opens the object O_NOFOLLOW, demands a regular file with one name, of the size that the message says.
  std::optional<FetchFailure> open() {
    const auto directory = StoreDirectory::open(core_->place);
    if (!directory)
      return FetchFailure{Kind::unavailable, fmt::format("claim {}: {}", request_.key, directory.error())};
    // O_NONBLOCK: opening a fifo must not wait for its writer.
    file_ = std::make_shared<FileDescriptor>(
        openat(directory.value().fd(), request_.key.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file_->is_open()) return cannot_open(directory.value(), errno);
    core_->is_there();
    if (fstat(file_->get(), &before_) != 0) return failed(Kind::unavailable, "fstat: " + errno_text(errno));
    if (!S_ISREG(before_.st_mode))
      return failed(Kind::corrupt,
                    std::string("not a regular file") + (S_ISDIR(before_.st_mode) ? " but a directory" : ""));
    // Whoever may link a file into the directory would have any file of this filesystem read out by its other
    // name.
    if (before_.st_nlink > 1)
      return failed(
          Kind::corrupt,
          fmt::format("the object's file has {} names (hard links), an object has one", before_.st_nlink));
    // What is not kept in memory will be read again.
    if (before_.st_size > static_cast<off_t>(in_memory_bytes_max)) {
      if (const int error = identify(file_->get(), before_); error != 0)
        return failed(Kind::unavailable, "fstat: " + errno_text(error));
    }
    size_bytes_ = static_cast<uint64_t>(before_.st_size);
    if (request_.expected.size_bytes && *request_.expected.size_bytes != size_bytes_)
      return failed(Kind::corrupt, fmt::format("the object has {} bytes, the message says {}", size_bytes_,
                                               *request_.expected.size_bytes));
    if (is_kept()) kept_.resize(size_bytes_);
    return {};
  }

  // All of it is read even when there is no checksum to compare: a body whose object cannot be read must not
  // be begun.
  std::optional<FetchFailure> verify_part() {
    const auto until = Clock::now() + part_max;
    Buffer piece(is_kept() ? 0 : piece_bytes);
    while (offset_ < size_bytes_) {
      const auto waiter = request_.wanted.lock();
      if (waiter == nullptr)
        return FetchFailure{Kind::unavailable,
                            fmt::format("claim {}: nobody waits for it any more", request_.key)};
      const size_t count = is_kept()
                               ? kept_.size()
                               : static_cast<size_t>(std::min<uint64_t>(piece.size(), size_bytes_ - offset_));
      uint8_t* const into = is_kept() ? kept_.data() : piece.data();
      const auto got = read_fully(file_->get(), offset_, into, count);
      if (!got) return failed(Kind::unavailable, "read: " + got.error());
      if (got.value() != count)
        return failed(Kind::unavailable,
                      fmt::format("the object shrank from {} to {} bytes while it was read", size_bytes_,
                                  offset_ + got.value()));
      hash_.update({into, count});
      offset_ += count;
      waiter->pieces++;
      if (Clock::now() >= until) break;
    }
    return {};
  }

  std::optional<FetchFailure> verify_end() {
    struct stat after {};
    if (fstat(file_->get(), &after) != 0) return failed(Kind::unavailable, "fstat: " + errno_text(errno));
    if (!is_same_file(before_, after))
      return failed(Kind::unavailable, "somebody wrote to the object while it was read");
    if (const std::string found = hash_.hex(); request_.expected.xxh128 && found != *request_.expected.xxh128)
      return failed(Kind::corrupt, fmt::format("the object's XXH3-128 is {}, the message says {}", found,
                                               *request_.expected.xxh128));
    return {};
  }

  FetchFailure cannot_open(const StoreDirectory& directory, int error) const {
    const StorePlace& place = core_->place;
    if (error == ENOENT) {
      if (auto marker = directory.check_marker(place); !marker)
        return {Kind::unavailable, fmt::format("claim {}: {}", request_.key, marker.error())};
      return {
          Kind::missing,
          fmt::format("claim {}: store '{}' has no such object: removed by retention, or stored elsewhere",
                      request_.key, place.name)};
    }
    if (error == ELOOP)
      return failed(Kind::corrupt, "not a regular file but a symbolic link, which is not followed");
    // ENXIO: a socket, or a device without a driver.
    if (error == ENXIO) return failed(Kind::corrupt, "not a regular file");
    std::string why = fmt::format("claim {}: store '{}' is unavailable: open: {}", request_.key, place.name,
                                  errno_text(error));
    struct stat status {};
    if (error == EACCES) {
      if (fstatat(directory.fd(), request_.key.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
        why += fmt::format(": the object belongs to {}; bellhop runs as uid {}", owner_and_mode(status),
                           geteuid());
      } else if (fstat(directory.fd(), &status) == 0) {
        why += fmt::format(": the directory {} belongs to {}; bellhop runs as uid {}", place.path,
                           owner_and_mode(status), geteuid());
      }
    }
    return {Kind::unavailable, std::move(why)};
  }

  FetchFailure failed(Kind kind, const std::string& why) const {
    return {kind, fmt::format("claim {}: store '{}': {}", request_.key, core_->place.name, why)};
  }

  bool is_kept() const { return size_bytes_ <= in_memory_bytes_max; }

  const std::shared_ptr<FilesystemCore> core_;
  FetchRequest request_;

  std::shared_ptr<FileDescriptor> file_;
  struct stat before_ {};  // before its first byte was read
  uint64_t size_bytes_ = 0, offset_ = 0;
  PayloadHash hash_;
  Buffer kept_;  // a small payload
};

}  // namespace

void fetch_object(const std::shared_ptr<FilesystemCore>& core, FetchRequest request) {
  std::make_shared<FilesystemFetch>(core, std::move(request))->start();
}

}  // namespace bellhop
