// What is noticed of a change to the configuration's files, on a real filesystem.
#include "daemon/cli/config_watch.h"

#include <filesystem>
#include <fstream>

#include "test/support/catch.h"
#include "test/support/test_loop.h"
#include "test/unit/daemon/claims/store_fixture.h"

using namespace bellhop;
namespace fs = std::filesystem;

namespace {

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

struct Watched {
  void begin(const fs::path& file) {
    watch.emplace(loop.get(), [this] { ++looks; });
    watch->watch({file.string()});
  }
  bool is_noticed() {
    return loop.run_until([this] { return looks != 0; });
  }
  test::TestLoop loop;
  std::optional<ConfigWatch> watch;
  int looks = 0;
};

}  // namespace

TEST_CASE("a file that is written, replaced or that appears is noticed, once", "[reload]") {
  const TemporaryDirectory directory;
  const fs::path file = fs::path(directory.path()) / "bellhop.yaml";
  Watched rig;
  SECTION("written in place, in two steps") {
    write(file, "a");
    rig.begin(file);
    write(file, "ab");
    write(file, "abc");
  }
  SECTION("replaced, as an editor does") {
    write(file, "a");
    rig.begin(file);
    write(file.string() + "~", "b");
    fs::rename(file.string() + "~", file);
  }
  SECTION("that was not there") {
    rig.begin(file);
    write(file, "a");
  }
  CHECK(rig.is_noticed());
  CHECK(rig.looks == 1);
}

TEST_CASE("a swap of the directory behind a symbolic link is noticed", "[reload]") {
  // As Kubernetes mounts a ConfigMap: file -> ..data/file, and ..data -> ..2026.
  const TemporaryDirectory directory;
  const fs::path top = directory.path();
  fs::create_directory(top / "..one");
  fs::create_directory(top / "..two");
  write(top / "..one" / "bellhop.yaml", "a");
  write(top / "..two" / "bellhop.yaml", "b");
  fs::create_symlink("..one", top / "..data");
  fs::create_symlink("..data/bellhop.yaml", top / "bellhop.yaml");
  Watched rig;
  rig.begin(top / "bellhop.yaml");
  fs::create_symlink("..two", top / "..data_tmp");
  fs::rename(top / "..data_tmp", top / "..data");
  CHECK(rig.is_noticed());
}

TEST_CASE("a link's own directory is watched, and those that it leads to", "[reload]") {
  const TemporaryDirectory directory;
  const fs::path top = fs::canonical(directory.path());
  fs::create_directories(top / "etc");
  fs::create_directories(top / "real" / "deep");
  write(top / "real" / "deep" / "f", "a");
  fs::create_directory_symlink(top / "real", top / "linked");
  fs::create_symlink("../linked/deep/f", top / "etc" / "f");
  const std::set<std::string> found = directories_of(top / "etc" / "f");
  CHECK(found.count(top / "etc") == 1);
  CHECK(found.count(top) == 1);                    // where `linked` can be made to lead elsewhere
  CHECK(found.count(top / "real" / "deep") == 1);  // where the file is
  CHECK(directories_of("/nowhere/at/all").count("/nowhere/at") == 1);
}
