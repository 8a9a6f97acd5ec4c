#include "daemon/claims/filesystem/retention.h"

#include <fcntl.h>
#include <sys/file.h>

#include "daemon/claims/filesystem/file_names.h"
#include "test/unit/daemon/claims/store_fixture.h"

using namespace bellhop;
using namespace std::chrono_literals;

namespace {

constexpr char old_key[] = "0f8fad5b-d9cb-469f-a165-70867728950e";

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
  write_aged(directory, "33333333333343338333333333333333", 7200s, 50);  // a library's
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

TEST_CASE("files that neither bellhop nor a library named are nobody's to remove, however old") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  const std::set<std::string> foreign{
      "accounts.sqlite", "README", "data.tar.gz", "id_rsa", "backup.partial", "a.b.partial",
      // One character off a key.
      "0f8fad5b-d9cb-469f-a165-70867728950", "0f8fad5b-d9cb-469f-a165-70867728950ea",
      "0f8fad5b-d9cb-469f-a165-70867728950g", "0f8fad5b_d9cb_469f_a165_70867728950e",
      "0f8fad5b-d9cb-469f-a165-70867728950e.gz", ".0f8fad5b-d9cb-469f-a165-70867728950e",
      "0f8fad5bd9cb469fa1657086772895", "0f8fad5b-d9cb-469f-a165-70867728950ex.partial",
      // Not quite bellhop's own.
      ".bellhop-upload.notes", ".bellhop-upload.host.12.key",
      ".bellhop-upload.host.0f8fad5b-d9cb-469f-a165-70867728950e",
      ".bellhop-upload.host.x1.0f8fad5b-d9cb-469f-a165-70867728950e"};
  for (const std::string& name : foreign) write_aged(directory, name, 99999999s);
  // Under a key's name: a folder with a file, and links.
  const std::string folder = "44444444-4444-4444-8444-444444444444",
                    link = "55555555-5555-4555-8555-555555555555";
  const std::string partial_link = "66666666-6666-4666-8666-666666666666.x.partial";
  REQUIRE(mkdir(directory.file(folder).c_str(), 0755) == 0);
  write_aged(directory, folder + "/" + old_key, 99999999s);
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  for (const std::string& each : {link, partial_link}) {
    REQUIRE(symlink("README", directory.file(each).c_str()) == 0);
    REQUIRE(utimensat(AT_FDCWD, directory.file(each).c_str(), long_ago, AT_SYMLINK_NOFOLLOW) == 0);
  }
  REQUIRE(utimensat(AT_FDCWD, directory.file(folder).c_str(), long_ago, 0) == 0);

  const SweepCounts counts = sweep(place_of(directory), {.age_max = 60s});
  CHECK(counts.removed + counts.unfinished + counts.failed == 0);
  std::set<std::string> all = foreign;
  all.insert({marker_name, sweep_lock_name, folder, link, partial_link});
  CHECK(directory.names() == all);
  CHECK(file_bytes(directory.file(folder + "/" + old_key)).size() == 10);

  const auto opened = StoreDirectory::open(place_of(directory));
  CHECK(sweep_unfinished(opened.value()) == 0);
  CHECK(directory.names() == all);
}

TEST_CASE("unfinished files go after a day, of bellhop and of the libraries") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  const std::string ours = unfinished_name(old_key),
                    of_another = ".bellhop-upload.a-host_2.1." + std::string(old_key);
  const std::string library = std::string(old_key) + ".123.partial";
  const std::string library_without_dashes = "0F8FAD5BD9CB469FA16570867728950E.partial";
  write_aged(directory, ours, 23h);
  write_aged(directory, of_another, 25h);
  write_aged(directory, library, 25h);
  write_aged(directory, library_without_dashes, 23h);

  CHECK(sweep(place_of(directory), {.age_max = 60s}).unfinished == 2);
  CHECK(directory.names() ==
        std::set<std::string>{marker_name, sweep_lock_name, ours, library_without_dashes});
}

TEST_CASE("a dry run counts and removes nothing") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, old_key, 120s);
  CHECK(sweep(place_of(directory), {.age_max = 60s, .dry_run = true}).removed == 1);
  CHECK(directory.names() == std::set<std::string>{marker_name, old_key});  // and no lock file
}

TEST_CASE("without an age objects stay for ever") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, old_key, 9999999s);
  const SweepCounts counts = sweep(place_of(directory), {});
  CHECK(counts.removed == 0);
  CHECK(counts.kept == 1);
}

TEST_CASE("one sweeps at a time: who finds the lock held leaves it") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, old_key, 120s);
  const FileDescriptor other(
      open(directory.file(sweep_lock_name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  REQUIRE(flock(other.get(), LOCK_EX) == 0);
  auto swept = sweep_directory(place_of(directory), {.age_max = 60s}, go_on);
  REQUIRE(swept.ok());
  CHECK(!swept.value().has_value());
  CHECK(directory.names().count(old_key) == 1);

  REQUIRE(flock(other.get(), LOCK_UN) == 0);
  CHECK(sweep(place_of(directory), {.age_max = 60s}).removed == 1);
}

TEST_CASE("a directory that was swept a short while ago is left alone") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  CHECK(sweep(place_of(directory), {.age_max = 60s, .pause = 3600s}).removed == 0);
  write_aged(directory, old_key, 120s);
  auto again = sweep_directory(place_of(directory), {.age_max = 60s, .pause = 3600s}, go_on);
  REQUIRE(again.ok());
  CHECK(!again.value().has_value());

  write_aged(directory, sweep_lock_name, 3700s);
  CHECK(sweep(place_of(directory), {.age_max = 60s, .pause = 3600s}).removed == 1);
}

TEST_CASE("a lock file dated in the future does not stop the sweeps, and is told") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, sweep_lock_name, -48h);
  write_aged(directory, old_key, 120s);
  const SweepCounts counts = sweep(place_of(directory), {.age_max = 60s, .pause = 3600s});
  CHECK(counts.removed == 1);
  CHECK_THAT(problem_of(place_of(directory), counts),
             ContainsSubstring("/.bellhop-sweep was dated 172") && ContainsSubstring("compare the clocks"));
  // From then on it says when the last sweep was.
  auto again = sweep_directory(place_of(directory), {.age_max = 60s, .pause = 3600s}, go_on);
  REQUIRE(again.ok());
  CHECK(!again.value().has_value());

  // As `bellhop sweep` asks for it: now, whoever swept when.
  write_aged(directory, sweep_lock_name, -10s);
  CHECK(problem_of(place_of(directory), sweep(place_of(directory), {.age_max = 60s})).empty());
}

TEST_CASE("two hosts' clocks may differ a little: a lock file a bit ahead was swept a short while ago") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, sweep_lock_name, -30s);
  auto swept = sweep_directory(place_of(directory), {.age_max = 60s, .pause = 3600s}, go_on);
  REQUIRE(swept.ok());
  CHECK(!swept.value().has_value());
}

TEST_CASE("objects dated in the future stay, and are told") {
  TemporaryDirectory directory;
  write_file(directory.file(marker_name), {});
  write_aged(directory, old_key, -48h);
  const SweepCounts counts = sweep(place_of(directory), {.age_max = 60s});
  CHECK(counts.kept == 1);
  CHECK_THAT(problem_of(place_of(directory), counts), ContainsSubstring("1 objects in " + directory.path()));
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
  write_aged(directory, old_key, 120s);
  const auto swept = sweep_directory(place_of(directory), {.age_max = 60s}, go_on);
  REQUIRE(!swept.ok());
  CHECK_THAT(swept.error(), ContainsSubstring("marker gone"));
  CHECK(directory.names() == std::set<std::string>{old_key});
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

TEST_CASE("a lock file that is another file's second name is not written to, and nothing else is either") {
  TemporaryDirectory directory, elsewhere;
  write_file(directory.file(marker_name), {});
  write_aged(directory, old_key, 120s);
  SECTION("a hard link") {
    write_file(elsewhere.file("config"), Buffer(8, 7));
    REQUIRE(link(elsewhere.file("config").c_str(), directory.file(sweep_lock_name).c_str()) == 0);
  }
  SECTION("a fifo") {
    REQUIRE(mkfifo(directory.file(sweep_lock_name).c_str(), 0600) == 0);
  }
  const auto swept = sweep_directory(place_of(directory), {.age_max = 60s}, go_on);
  REQUIRE(!swept.ok());
  CHECK_THAT(swept.error(), ContainsSubstring("/.bellhop-sweep: is not bellhop's lock"));
  if (!elsewhere.names().empty()) CHECK(file_bytes(elsewhere.file("config")).size() == 8);
  CHECK(directory.names().count(old_key) == 1);
}

TEST_CASE("a store with retention sweeps by itself, and stops at once") {
  TemporaryDirectory directory;
  config::FilesystemStore config;
  config.path = directory.path();
  config.retention_ms = 60000;
  write_aged(directory, old_key, 120s);
  auto store = FilesystemStore::open("claims", config);
  REQUIRE(store.ok());
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (directory.names().count(old_key) != 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  CHECK(directory.names().count(old_key) == 0);
}
