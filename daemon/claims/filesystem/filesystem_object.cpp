#include "daemon/claims/filesystem/filesystem_object.h"

#include <fmt/format.h>

#include <cerrno>

#include "daemon/claims/filesystem/file_identity.h"
#include "daemon/claims/filesystem/mapped_piece.h"
#include "daemon/ops/errno_text.h"
#include "daemon/ops/read_fully.h"

namespace bellhop {

namespace {

Result<Piece> copy_piece(int fd, uint64_t offset, size_t count) {
  Buffer bytes(count);
  const auto got = read_fully(fd, offset, bytes.data(), count);
  if (!got) return Error{"read: " + got.error()};
  if (got.value() != count)
    return Error{fmt::format("the object ended at {} bytes while it was read", offset + got.value())};
  return piece_of(std::move(bytes));
}

Result<Piece> read_piece(int fd, uint64_t offset, size_t count) {
  if (auto mapped = map_piece(fd, offset, count)) return std::move(*mapped);
  return copy_piece(fd, offset, count);
}

// A mapping would show what is written after the look at the file.
Result<Piece> read_last_piece(int fd, uint64_t offset, size_t count, const struct stat& verified) {
  auto piece = copy_piece(fd, offset, count);
  struct stat now {};
  if (!piece) return piece;
  if (fstat(fd, &now) != 0) return Error{"fstat: " + errno_text(errno)};
  if (!is_same_file(verified, now)) return Error{"somebody wrote to the object after it was verified"};
  return piece;
}

}  // namespace

// Even a close may wait, on a network filesystem.
FileObject::~FileObject() {
  core_->pool.run(nullptr, Work::upkeep, [file = std::move(file_)]() mutable { file.reset(); });
}

void FileObject::read(uint64_t offset, size_t count, std::shared_ptr<Executor> executor,
                      std::function<void(Result<Piece>)> done) {
  const void* const owner = executor.get();
  core_->pool.run(owner, Work::read,
                  [alive = std::weak_ptr<int>(alive_), file = file_, place = core_->place.name, key = key_,
                   verified = verified_, offset, count, executor = std::move(executor),
                   done = std::move(done)]() mutable {
                    const bool is_last = offset + count == static_cast<uint64_t>(verified.st_size);
                    Result<Piece> result = is_last ? read_last_piece(file->get(), offset, count, verified)
                                                   : read_piece(file->get(), offset, count);
                    if (!result)
                      result = Error{fmt::format("claim {}: store '{}': {}", key, place, result.error())};
                    executor->post([alive = std::move(alive), result = std::move(result),
                                    done = std::move(done)]() mutable {
                      if (!alive.expired()) done(std::move(result));
                    });
                  });
}

}  // namespace bellhop
