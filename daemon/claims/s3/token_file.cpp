#include "daemon/claims/s3/token_file.h"

#include <sys/stat.h>

#include "config/read_file.h"

namespace bellhop {

namespace {
constexpr size_t token_bytes_max = size_t{64} << 10;
}

Result<std::string> read_token(const std::string& path) {
  struct stat found {};
  // A pipe would be waited for.
  if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return Error{path + " is no file"};
  auto text = config::read_file(path, token_bytes_max);
  if (!text) return Error{path + " " + text.error()};
  constexpr const char* blanks = " \t\r\n";
  const size_t begin = text.value().find_first_not_of(blanks);
  if (begin == std::string::npos) return Error{path + " is empty"};
  return text.value().substr(begin, text.value().find_last_not_of(blanks) - begin + 1);
}

}  // namespace bellhop
