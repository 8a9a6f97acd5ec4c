#include "daemon/claims/filesystem/mapped_piece.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bellhop {

namespace {

// Linux 5.14; older headers do not have its name.
constexpr int populate_read = 22;

struct Mapping {
  Mapping(void* start, size_t bytes) : at(start), size_bytes(bytes) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(at, size_bytes); }

  void* const at;
  const size_t size_bytes;
};

}  // namespace

std::optional<Piece> map_piece(int fd, uint64_t offset, size_t count) {
  if (count == 0) return {};
  static const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto lead = static_cast<size_t>(offset % page_bytes);
  const size_t size_bytes = lead + count;
  void* const at = mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset - lead));
  if (at == MAP_FAILED) return {};
  auto mapping = std::make_shared<Mapping>(at, size_bytes);
  if (madvise(at, size_bytes, populate_read) != 0) return {};
  // Behind a file's end the last page is zeros, and those are not the file's.
  struct stat status {};
  if (fstat(fd, &status) != 0 || static_cast<uint64_t>(status.st_size) < offset + count) return {};
  return Piece{{static_cast<const uint8_t*>(at) + lead, count}, std::move(mapping)};
}

}  // namespace bellhop
