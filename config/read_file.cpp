#include "config/read_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace bellhop::config {

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (!file) return Error{std::string("cannot be read: ") + std::strerror(errno)};
  std::string content;
  char chunk[4096];
  while (true) {
    errno = 0;
    const size_t got = std::fread(chunk, 1, sizeof chunk, file.get());
    content.append(chunk, got);
    if (content.size() > bytes_max) return Error{"is larger than " + std::to_string(bytes_max) + " bytes"};
    if (got < sizeof chunk) break;
  }
  if (std::ferror(file.get()) != 0) return Error{std::string("cannot be read: ") + std::strerror(errno)};
  return content;
}

}  // namespace bellhop::config
