// What a filesystem store says when something is wrong, and how it is classed (daemon/claims/README.md,
// "Errors").
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "daemon/cli/open_stores.h"
#include "test/unit/daemon/claims/store_fixture.h"

namespace bellhop {
namespace {

using Kind = FetchFailure::Kind;

constexpr auto issued = proto::KeyRule::issued;
constexpr char some_key[] = "0b6c1f7e-6a51-4d0f-9a53-3b1f6a1c2d3e";

TEST_CASE("an absent object is missing, in words", "[filesystem_faults]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const auto found = fetch(*store, some_key);
  CHECK(found.object == nullptr);
  CHECK(found.failure.kind == Kind::missing);
  CHECK_THAT(found.failure.reason,
             ContainsSubstring(some_key) && ContainsSubstring("retention") && ContainsSubstring("'claims'"));
}

TEST_CASE("with its marker gone the store is unavailable", "[filesystem_faults]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const auto before = put_payload(*store, random_bytes(10));
  REQUIRE(before.ok());
  auto executor = std::make_shared<TestExecutor>();
  auto under_way = store->begin(10, executor);
  bool written = false;
  under_way->write(random_bytes(10), [&written](size_t) { written = true; });
  executor->run_until([&written] { return written; });

  std::filesystem::remove(directory.file(marker_name));
  const auto found = fetch(*store, some_key);
  CHECK(found.failure.kind == Kind::unavailable);
  CHECK_THAT(found.failure.reason, ContainsSubstring(some_key) && ContainsSubstring("marker gone"));
  const auto put = put_payload(*store, random_bytes(10));
  REQUIRE_FALSE(put.ok());
  CHECK_THAT(put.error(), ContainsSubstring("store 'claims' is unavailable: marker gone"));
  std::optional<Result<Claim>> late;
  under_way->finish([&late](Result<Claim> result) { late = std::move(result); });
  executor->run_until([&late] { return late.has_value(); });
  REQUIRE_FALSE(late->ok());
  CHECK_THAT(late->error(), ContainsSubstring("marker gone"));
  // Not written again by anything but a start; what is there is still read.
  CHECK(fetch(*store, before.value().key).object != nullptr);
  CHECK(directory.names() == std::set<std::string>{before.value().key});
}

TEST_CASE("without need of a marker an absent object is missing", "[filesystem_faults]") {
  TemporaryDirectory directory;
  config::FilesystemStore config;
  config.path = directory.path();
  config.marker_required = false;
  const auto store = FilesystemStore::open("claims", config);
  REQUIRE(store.ok());
  CHECK(directory.names().empty());
  CHECK(fetch(*store.value(), some_key).failure.kind == Kind::missing);
  CHECK(put_payload(*store.value(), random_bytes(10)).ok());
}

TEST_CASE("a directory that is mounted later", "[filesystem_faults]") {
  TemporaryDirectory directory;
  const std::string path = directory.file("later");
  const auto store = open_store(path);
  CHECK(fetch(*store, some_key).failure.kind == Kind::unavailable);
  const auto put = put_payload(*store, random_bytes(10));
  REQUIRE_FALSE(put.ok());
  CHECK_THAT(put.error(), ContainsSubstring("No such file or directory") && ContainsSubstring(path));
  // A bare mount point gets no marker.
  std::filesystem::create_directory(path);
  CHECK_FALSE(put_payload(*store, random_bytes(10)).ok());
  CHECK(std::filesystem::is_empty(path));
  write_file(path + "/" + marker_name, {});
  const auto claim = put_payload(*store, random_bytes(10));
  REQUIRE(claim.ok());
  CHECK(fetch(*store, claim.value().key).object != nullptr);
}

TEST_CASE("a directory that is replaced during an upload", "[filesystem_faults]") {
  TemporaryDirectory directory;
  const std::string path = directory.file("store");
  std::filesystem::create_directory(path);
  const auto store = open_store(path);
  auto executor = std::make_shared<TestExecutor>();
  auto upload = store->begin(10, executor);
  bool written = false;
  upload->write(random_bytes(10), [&written](size_t) { written = true; });
  executor->run_until([&written] { return written; });
  std::filesystem::rename(path, directory.file("old"));
  std::filesystem::create_directory(path);
  write_file(path + "/" + marker_name, {});
  std::optional<Result<Claim>> result;
  upload->finish([&result](Result<Claim> claim) { result = std::move(claim); });
  executor->run_until([&result] { return result.has_value(); });
  REQUIRE_FALSE(result->ok());
  CHECK_THAT(result->error(), ContainsSubstring("replaced"));
}

TEST_CASE("what is no regular file is not an object", "[filesystem_faults]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  SECTION("a symbolic link") {
    write_file(directory.file("target"), {1, 2, 3});
    std::filesystem::create_symlink(directory.file("target"), directory.file(some_key));
    const auto found = fetch(*store, some_key);
    CHECK(found.failure.kind == Kind::corrupt);
    CHECK_THAT(found.failure.reason, ContainsSubstring(some_key) && ContainsSubstring("symbolic link"));
  }
  SECTION("a fifo, without waiting for its writer") {
    REQUIRE(mkfifo(directory.file(some_key).c_str(), 0600) == 0);
    const auto found = fetch(*store, some_key);
    CHECK(found.failure.kind == Kind::corrupt);
    CHECK_THAT(found.failure.reason, ContainsSubstring("not a regular file"));
  }
  SECTION("a directory") {
    std::filesystem::create_directory(directory.file(some_key));
    const auto found = fetch(*store, some_key);
    CHECK(found.failure.kind == Kind::corrupt);
    CHECK_THAT(found.failure.reason, ContainsSubstring("not a regular file but a directory"));
  }
}

TEST_CASE("an object of another size is corrupt", "[filesystem_faults]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const size_t size = GENERATE(size_t{1000}, size_t{3} << 20);
  const auto claim = put_payload(*store, random_bytes(size));
  REQUIRE(claim.ok());
  std::filesystem::resize_file(directory.file(claim.value().key), size - 1);
  const auto found = fetch(*store, claim.value().key, {claim.value().size_bytes, claim.value().xxh128});
  CHECK(found.object == nullptr);
  CHECK(found.failure.kind == Kind::corrupt);
  CHECK_THAT(found.failure.reason, ContainsSubstring(claim.value().key) &&
                                       ContainsSubstring(std::to_string(size - 1) + " bytes") &&
                                       ContainsSubstring("says " + std::to_string(size)));
}

TEST_CASE("an object with a flipped byte is corrupt", "[filesystem_faults]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const size_t size = GENERATE(size_t{1000}, size_t{3} << 20);
  Buffer payload = random_bytes(size);
  const auto claim = put_payload(*store, payload);
  REQUIRE(claim.ok());
  payload[size / 2] ^= 1;
  write_file(directory.file("flipped"), payload);
  std::filesystem::rename(directory.file("flipped"), directory.file(claim.value().key));
  const auto found = fetch(*store, claim.value().key, {size, claim.value().xxh128});
  CHECK(found.object == nullptr);
  CHECK(found.failure.kind == Kind::corrupt);
  const auto other = put_payload(*store, payload);
  REQUIRE(other.ok());
  CHECK_THAT(found.failure.reason,
             ContainsSubstring(claim.value().xxh128) && ContainsSubstring(other.value().xxh128));
  // Without the headers (a shovel may have stripped them) there is nothing to compare.
  CHECK(fetch(*store, claim.value().key).object != nullptr);
}

TEST_CASE("an object that is cut after it was verified is an error, not a short read",
          "[filesystem_faults]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const auto claim = put_payload(*store, random_bytes(size_t{2} << 20));
  REQUIRE(claim.ok());
  const auto found = fetch(*store, claim.value().key);
  REQUIRE(found.object != nullptr);
  std::filesystem::resize_file(directory.file(claim.value().key), 1000);
  const auto bytes = read_some(*found.object, 500, 1000);
  REQUIRE_FALSE(bytes.ok());
  CHECK_THAT(bytes.error(), ContainsSubstring(claim.value().key) && ContainsSubstring("ended at 1000 bytes"));
}

TEST_CASE("of an object that somebody wrote to after it was verified there is no last piece",
          "[filesystem_faults]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  constexpr size_t size = size_t{2} << 20;
  const size_t where = GENERATE(size_t{0}, size_t{1} << 20, size - 1);
  // As soon as it is stored, and as soon as it is verified: the times of files move in ticks of some
  // milliseconds.
  for (int round = 0; round < 20; ++round) {
    const auto claim = put_payload(*store, random_bytes(size));
    REQUIRE(claim.ok());
    const auto found = fetch(*store, claim.value().key);
    REQUIRE(found.object != nullptr);
    {
      std::fstream file(directory.file(claim.value().key), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(where));
      file.put('!');
      file.flush();
      REQUIRE(file.good());
    }
    CHECK(read_some(*found.object, 0, 1000).ok());
    const auto last = read_some(*found.object, size - 1000, 1000);
    REQUIRE_FALSE(last.ok());
    CHECK_THAT(last.error(),
               ContainsSubstring(claim.value().key) && ContainsSubstring("somebody wrote to the object"));
    // Asked again, it is another object, and verified as such.
    CHECK(fetch(*store, claim.value().key).object != nullptr);
    std::filesystem::remove(directory.file(claim.value().key));
  }
}

TEST_CASE("who dropped an object gets no answer", "[filesystem_faults]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const auto claim = put_payload(*store, random_bytes(GENERATE(size_t{10}, size_t{2} << 20)));
  REQUIRE(claim.ok());
  auto found = fetch(*store, claim.value().key);
  REQUIRE(found.object != nullptr);
  auto executor = std::make_shared<TestExecutor>();
  bool called = false, later = false;
  found.object->read(0, 10, executor, [&called](Result<Piece>) { called = true; });
  executor->wait_for_tasks(1);
  found.object.reset();
  executor->post([&later] { later = true; });
  executor->run_until([&later] { return later; });
  CHECK_FALSE(called);
}

// Runs `body` in a process without rights; its exit code is the answer.
int as_nobody(const std::function<int()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
    _exit(body());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("permission denied names the owner and the mode", "[filesystem_faults]") {
  TemporaryDirectory directory;
  open_store(directory.path()).reset();
  write_file(directory.file(some_key), {1, 2, 3});
  REQUIRE(chmod(directory.file(some_key).c_str(), 0000) == 0);
  const std::string owner = "uid " + std::to_string(geteuid());
  CHECK(as_nobody([&directory, &owner] {
          config::FilesystemStore config;
          config.path = directory.path();
          const auto store = FilesystemStore::open("claims", config);
          if (!store.ok()) return 1;
          const auto found = fetch(*store.value(), some_key);
          if (found.object || found.failure.kind != Kind::unavailable) return 2;
          const std::string& reason = found.failure.reason;
          if (reason.find(owner) == std::string::npos || reason.find("mode 0000") == std::string::npos)
            return 3;
          if (reason.find("Permission denied") == std::string::npos) return 4;
          return 0;
        }) == 0);
  // A directory that may be read but not written to: open, with a warning; an upload says why.
  REQUIRE(chmod(directory.path().c_str(), 0555) == 0);
  CHECK(as_nobody([&directory] {
          config::FilesystemStore config;
          config.path = directory.path();
          const auto store = FilesystemStore::open("claims", config);
          if (!store.ok()) return 1;
          const auto put = put_payload(*store.value(), {1, 2, 3});
          return !put.ok() && put.error().find("Permission denied") != std::string::npos ? 0 : 2;
        }) == 0);
  // A directory that may not be looked into at all.
  REQUIRE(chmod(directory.path().c_str(), 0000) == 0);
  CHECK(as_nobody([&directory, &owner] {
          config::FilesystemStore config;
          config.path = directory.path();
          const auto store = FilesystemStore::open("claims", config);
          if (!store.ok()) return 1;
          const auto found = fetch(*store.value(), some_key);
          if (found.failure.kind != Kind::unavailable) return 2;
          return found.failure.reason.find(owner) != std::string::npos ? 0 : 3;
        }) == 0);
  REQUIRE(chmod(directory.path().c_str(), 0755) == 0);
}

TEST_CASE("a full disk fails the upload and gives its space back", "[filesystem_faults]") {
  TemporaryDirectory directory;
  if (mount("bellhop", directory.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    WARN("no right to mount a small tmpfs: not tested here");
    return;
  }
  {
    const auto store = open_store(directory.path());
    for (int round = 0; round < 3; ++round) {
      const auto put = put_payload(*store, random_bytes(size_t{2} << 20));
      REQUIRE_FALSE(put.ok());
      CHECK_THAT(put.error(), ContainsSubstring("No space left on device"));
      CHECK(put_payload(*store, random_bytes(size_t{200} << 10)).ok());
    }
    CHECK(directory.names().size() == 4);
  }
  CHECK(umount(directory.path().c_str()) == 0);
}

TEST_CASE("a store whose filesystem goes away", "[filesystem_faults]") {
  TemporaryDirectory directory;
  if (mount("bellhop", directory.path().c_str(), "tmpfs", 0, "size=4m") != 0) {
    WARN("no right to mount a small tmpfs: not tested here");
    return;
  }
  const auto store = open_store(directory.path());
  const auto claim = put_payload(*store, random_bytes(1000));
  CHECK(claim.ok());
  // Nothing is kept open between transfers, so the mount is not busy.
  CHECK(umount(directory.path().c_str()) == 0);
  CHECK(fetch(*store, claim.value().key).failure.kind == Kind::unavailable);
  CHECK_FALSE(put_payload(*store, random_bytes(10)).ok());
  CHECK(directory.names().empty());
}

TEST_CASE("all stores of a configuration, by name", "[stores]") {
  TemporaryDirectory directory;
  config::Config config;
  config::FilesystemStore filesystem;
  filesystem.path = directory.path();
  config.stores = {{"claims", filesystem, issued}, {"scratch", config::MemoryStore{}, issued}};
  config.claim_check.store = "scratch";
  auto stores = open_stores(config);
  REQUIRE(stores.ok());
  CHECK(stores.value()->all().size() == 2);
  REQUIRE(stores.value()->find("claims") != nullptr);
  CHECK(stores.value()->find("claims")->name() == "claims");
  CHECK(stores.value()->find("other") == nullptr);
  CHECK(stores.value()->fallback() == stores.value()->find("scratch"));

  config.claim_check.store.clear();
  stores = open_stores(config);
  REQUIRE(stores.ok());
  CHECK(stores.value()->fallback() == nullptr);
}

TEST_CASE("a store that can never work is an error at start", "[stores]") {
  TemporaryDirectory directory;
  config::Config config;
  config::FilesystemStore filesystem;
  filesystem.path = directory.path();
  SECTION("the path is a file") {
    filesystem.path = directory.file("file");
    write_file(filesystem.path, {});
    config.stores = {{"claims", filesystem, issued}};
    const auto stores = open_stores(config);
    REQUIRE_FALSE(stores.ok());
    CHECK_THAT(stores.error(), ContainsSubstring("'claims'") && ContainsSubstring("is not a directory"));
  }
  SECTION("the group does not exist") {
    filesystem.group = "no-such-group-here";
    config.stores = {{"claims", filesystem, issued}};
    const auto stores = open_stores(config);
    REQUIRE_FALSE(stores.ok());
    CHECK_THAT(stores.error(), ContainsSubstring("'claims'") && ContainsSubstring("'no-such-group-here'"));
  }
}

}  // namespace
}  // namespace bellhop
