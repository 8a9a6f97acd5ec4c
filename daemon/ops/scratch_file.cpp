#include "daemon/ops/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/ops/errno_text.h"
#include "daemon/ops/read_fully.h"

namespace bellhop {

namespace {

std::string folder() {
  const char* const chosen = getenv("TMPDIR");
  return chosen == nullptr || *chosen == '\0' ? "/tmp" : chosen;
}

FileDescriptor open_in(const std::string& path) {
  FileDescriptor file(open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.is_open()) return file;
  // Filesystems without O_TMPFILE.
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOSYS) return file;
  std::string name = path + "/bellhop-XXXXXX";
  FileDescriptor named(mkostemp(name.data(), O_CLOEXEC));
  if (named.is_open()) unlink(name.c_str());
  return named;
}

Error cannot_create(const std::string& path) {
  return {fmt::format("cannot create a scratch file in {} (TMPDIR): {}", path, errno_text(errno))};
}

}  // namespace

Result<void> ScratchFile::try_folder() {
  const std::string path = folder();
  if (!open_in(path).is_open()) return cannot_create(path);
  return {};
}

Result<std::unique_ptr<ScratchFile>> ScratchFile::create(std::shared_ptr<Quota> quota,
                                                         uint64_t size_bytes_max) {
  QuotaShare share(*quota, size_bytes_max);
  if (!share)
    return Error{fmt::format("the scratch files have {} of {} bytes; there is no room for {} more",
                             quota->used_bytes(), quota->bytes_max(), size_bytes_max)};
  const std::string path = folder();
  FileDescriptor file = open_in(path);
  if (!file.is_open()) return cannot_create(path);
  return std::unique_ptr<ScratchFile>(new ScratchFile(std::move(quota), std::move(share), std::move(file)));
}

Result<void> ScratchFile::write(uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0)
      return Error{fmt::format("cannot write to a scratch file in {}: {}", folder(), errno_text(errno))};
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

Result<size_t> ScratchFile::read(uint64_t offset, uint8_t* into, size_t count) const {
  auto got = read_fully(file_.get(), offset, into, count);
  if (!got) return Error{"cannot read a scratch file: " + got.error()};
  return got;
}

void ScratchFile::drop(uint64_t offset, uint64_t bytes) {
  (void)fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                  static_cast<off_t>(bytes));
}

}  // namespace bellhop
