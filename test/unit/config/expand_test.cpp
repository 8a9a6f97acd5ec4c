#include "config/expand.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <sys/stat.h>

#include "test/support/catch.h"

using namespace bellhop::config;

namespace {

// A file with this content for as long as the object lives.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    char name[] = "/tmp/bellhop-expand-XXXXXX";
    const int fd = mkstemp(name);
    REQUIRE(fd >= 0);
    REQUIRE(write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
    close(fd);
    path_ = name;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string expanded(const std::string& text) {
  const auto result = expand(text);
  REQUIRE(result.ok());
  return result.value();
}

}  // namespace

TEST_CASE("text without ${ stays as it is", "[config]") {
  for (const char* text : {"", "plain", "a$b", "$", "$$", "$NAME", "}{", "100%"})
    CHECK(expanded(text) == text);
}

TEST_CASE("variables are put in, and not expanded again", "[config]") {
  setenv("BELLHOP_TEST_A", "${HOME}: {x} #1", 1);
  setenv("BELLHOP_TEST_EMPTY", "", 1);
  unsetenv("BELLHOP_TEST_NONE");
  CHECK(expanded("${BELLHOP_TEST_A}") == "${HOME}: {x} #1");
  CHECK(expanded("<${BELLHOP_TEST_A}|${BELLHOP_TEST_EMPTY}>") == "<${HOME}: {x} #1|>");
  CHECK(expanded("$${BELLHOP_TEST_EMPTY}") == "$");
}

TEST_CASE("a default stands in for an unset and for an empty variable", "[config]") {
  setenv("BELLHOP_TEST_A", "a", 1);
  setenv("BELLHOP_TEST_EMPTY", "", 1);
  unsetenv("BELLHOP_TEST_NONE");
  CHECK(expanded("${BELLHOP_TEST_A:-x}") == "a");
  CHECK(expanded("${BELLHOP_TEST_EMPTY:-x}") == "x");
  CHECK(expanded("${BELLHOP_TEST_NONE:-x:-y $}") == "x:-y $");
  CHECK(expanded("${BELLHOP_TEST_NONE:-}") == "");
}

TEST_CASE("a file's content is put in without one newline at its end", "[config]") {
  CHECK(expanded("${file:" + TemporaryFile("secret\n").path() + "}") == "secret");
  CHECK(expanded("${file:" + TemporaryFile("secret\r\n").path() + "}") == "secret");
  CHECK(expanded("${file:" + TemporaryFile("two\nlines\n\n").path() + "}") == "two\nlines\n");
  CHECK(expanded("[${file:" + TemporaryFile("").path() + "}]") == "[]");
  CHECK(expanded("${file:" + TemporaryFile("\n").path() + "}") == "");
}

TEST_CASE("what cannot be put in is an error that names it", "[config]") {
  unsetenv("BELLHOP_TEST_NONE");
  CHECK(expand("x${BELLHOP_TEST_NONE}").error() ==
        "environment variable BELLHOP_TEST_NONE is not set, allowed: a set one, or a default as in "
        "${BELLHOP_TEST_NONE:-default}");
  CHECK(expand("${file:/nowhere/x}").error() ==
        "file '/nowhere/x' cannot be read: No such file or directory; create or mount it first");
  CHECK(expand("${file:/tmp}").error() == "file '/tmp' cannot be read: Is a directory");
  const TemporaryFile large(std::string(65537, 'x'));
  CHECK(expand("${file:" + large.path() + "}").error() ==
        "file '" + large.path() + "' is larger than 65536 bytes");
  CHECK(expand("${NAME").error() ==
        "has ${ without its }, allowed: ${NAME}, ${NAME:-default}, ${file:/path}");
  for (const char* text : {"${}", "${:-x}", "${1A}", "${A B}", "${A-x}"}) {
    INFO(text);
    CHECK(expand(text).error() ==
          "has ${...} with no variable's name in it, allowed: ${NAME}, ${NAME:-default}, ${file:/path}");
  }
  CHECK(expand("${A:-${B}}").error() == "has ${...} inside of ${A...}, allowed: a default without ${...}");
}

TEST_CASE("only regular files are read, and nothing is waited for", "[config]") {
  const TemporaryFile file("");
  const std::string fifo = file.path() + ".fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(expand("${file:" + fifo + "}").error() == "file '" + fifo + "' is no regular file");
  std::remove(fifo.c_str());
  CHECK(expand("${file:/dev/zero}").error() == "file '/dev/zero' is no regular file");
  CHECK(expand(std::string("${file:/etc/passwd\0x}", 21)).error().find("NUL byte") != std::string::npos);
}

TEST_CASE("what stands in the file itself is told from what comes from elsewhere", "[config]") {
  CHECK(written_in_file("${A}") == "");
  CHECK(written_in_file("${file:/a:-b}${A:-}") == "");
  CHECK(written_in_file("x${A}y${B:-z}") == "xyz");
  CHECK(written_in_file("$x ${") == "$x ");
}
