#include "daemon/claims/retention.h"

#include <fcntl.h>
#include <sys/file.h>

#include "test/unit/daemon/claims/store_fixture.h"

using namespace bellhop;
using namespace std::chrono_literals;

namespace {

const std::atomic<bool> go_on = false;

StorePlace place_of(const TemporaryDirectory& directory) {
  StorePlace place;
  place.name = "claims";
  place.path = directory.path();
  return place;
}

// A file that was written so long ago.
void write_aged(const TemporaryDirectory& directory, const std::string& name, std::chrono::seconds age,
                size_t size = 10) {
  write_file(directory.file(name), Buffer(size, 7));
  const time_t then = ::time(nullptr) - age.count();
  const timespec times[2] = {{then, 0}, {then, 0}};
  REQUIRE(utimensat(AT_FDCWD, directory.file(name).c_str(), times, 0) == 0);
}

SweepCounts sweep(const StorePlace& place, const SweepRule& rule) {
  auto swept = sweep_directory(place, rule, go_on);
  REQUIRE(swept.ok());
  REQUIRE(swept.value().has_value());
  return *swept.value();
}

}  // namespace

TEST_CASE("objects past their age go, younger ones stay, and nothing else is touched") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, "11111111-1111-4111-8111-111111111111", 3601s, 100);
  write_aged(directory, "22222222-2222-4222-8222-222222222222", 3590s);
  write_aged(directory, "from-a-library.2", 7200s, 50);
  write_aged(directory, ".hidden", 9999999s);
  write_aged(directory, "no key at all", 9999999s);
  REQUIRE(mkdir(directory.file("a-directory").c_str(), 0755) == 0);
  REQUIRE(symlink("/etc/passwd", directory.file("a-link").c_str()) == 0);

  const SweepCounts counts = sweep(place_of(directory), {.age_max = 3600s});
  CHECK(counts.removed == 2);
  CHECK(counts.removed_bytes == 150);
  CHECK(counts.kept == 1);
  CHECK(counts.unfinished == 0);
  CHECK(counts.failed == 0);
  CHECK(directory.names() == std::set<std::string>{marker_name, sweep_lock_name, ".hidden", "no key at all",
                                                   "a-directory", "a-link",
                                                   "22222222-2222-4222-8222-222222222222"});
}

TEST_CASE("unfinished files go after a day, of bellhop and of the libraries") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  const std::string ours = std::string(unfinished_prefix) + "host.1.key";
  write_aged(directory, ours + "-old", 25h);
  write_aged(directory, ours + "-live", 23h);
  write_aged(directory, "key....partial", 25h);
  write_aged(directory, "other....partial", 23h);

  CHECK(sweep(place_of(directory), {.age_max = 60s}).unfinished == 2);
  CHECK(directory.names() ==
        std::set<std::string>{marker_name, sweep_lock_name, ours + "-live", "other....partial"});
}

TEST_CASE("a dry run counts and removes nothing") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, "old", 120s);
  CHECK(sweep(place_of(directory), {.age_max = 60s, .dry_run = true}).removed == 1);
  CHECK(directory.names() == std::set<std::string>{marker_name, "old"});  // and no lock file
}

TEST_CASE("without an age objects stay for ever") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, "old", 9999999s);
  const SweepCounts counts = sweep(place_of(directory), {});
  CHECK(counts.removed == 0);
  CHECK(counts.kept == 1);
}

TEST_CASE("one sweeps at a time: who finds the lock held leaves it") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, "old", 120s);
  const FileDescriptor other(
      open(directory.file(sweep_lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  REQUIRE(flock(other.get(), LOCK_EX) == 0);
  auto swept = sweep_directory(place_of(directory), {.age_max = 60s}, go_on);
  REQUIRE(swept.ok());
  CHECK(!swept.value().has_value());
  CHECK(directory.names().count("old") == 1);

  REQUIRE(flock(other.get(), LOCK_UN) == 0);
  CHECK(sweep(place_of(directory), {.age_max = 60s}).removed == 1);
}

TEST_CASE("a directory that was swept a short while ago is left alone") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  CHECK(sweep(place_of(directory), {.age_max = 60s, .pause = 3600s}).removed == 0);
  write_aged(directory, "old", 120s);
  auto again = sweep_directory(place_of(directory), {.age_max = 60s, .pause = 3600s}, go_on);
  REQUIRE(again.ok());
  CHECK(!again.value().has_value());

  write_aged(directory, sweep_lock_name, 3700s);
  CHECK(sweep(place_of(directory), {.age_max = 60s, .pause = 3600s}).removed == 1);
}

TEST_CASE("sidecars of other users may take their turn: the lock file is as open as the objects") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  StorePlace place = place_of(directory);
  place.mode = 0644;
  sweep(place, {});
  struct stat status {};
  REQUIRE(stat(directory.file(sweep_lock_name).c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0666);
}

TEST_CASE("a store whose marker is gone is not swept") {
  TemporaryDirectory directory;
  write_aged(directory, "old", 120s);
  const auto swept = sweep_directory(place_of(directory), {.age_max = 60s}, go_on);
  REQUIRE(!swept.ok());
  CHECK_THAT(swept.error(), ContainsSubstring("marker gone"));
  CHECK(directory.names() == std::set<std::string>{"old"});
}

TEST_CASE("a lock file that is a link is not followed") {
  TemporaryDirectory directory, elsewhere;
  write_file(directory.file(marker_name), {});
  REQUIRE(symlink(elsewhere.file("target").c_str(), directory.file(sweep_lock_name).c_str()) == 0);
  const auto swept = sweep_directory(place_of(directory), {.age_max = 60s}, go_on);
  REQUIRE(!swept.ok());
  CHECK_THAT(swept.error(), ContainsSubstring(".bellhop-sweep"));
  CHECK(elsewhere.names().empty());
}

TEST_CASE("a store with retention sweeps by itself, and stops at once") {
  TemporaryDirectory directory;
  config::FilesystemStore config;
  config.path = directory.path();
  config.retention_ms = 60000;
  write_aged(directory, "old", 120s);
  auto store = FilesystemStore::open("claims", config);
  REQUIRE(store.ok());
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (directory.names().count("old") != 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  CHECK(directory.names().count("old") == 0);
}
