// What a filesystem store keeps, gives back and leaves behind. What it says when something is wrong:
// filesystem_faults_test.cpp.
#include "daemon/claims/filesystem/filesystem_store.h"

#include <fcntl.h>
#include <sys/wait.h>

#include <csignal>

#include "proto/claim_frame.h"
#include "test/unit/daemon/claims/store_fixture.h"

namespace bellhop {
namespace {

const std::set<std::string> only_marker = {marker_name};

StorePlace place_in(const TemporaryDirectory& directory, bool unnamed_files) {
  return {.name = "claims",
          .path = directory.path(),
          .mode = 0640,
          .group = {},
          .fsync = true,
          .marker_required = true,
          .unnamed_files = unnamed_files};
}

std::unique_ptr<FilesystemStore> open_place(StorePlace place) {
  auto store = FilesystemStore::open(std::move(place));
  REQUIRE(store.ok());
  return std::move(store.value());
}

bool is_uuid_v4(const std::string& text) {
  const std::string shape = "xxxxxxxx-xxxx-4xxx-Vxxx-xxxxxxxxxxxx";
  if (text.size() != shape.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::string allowed = shape[i] == 'x'   ? "0123456789abcdef"
                                : shape[i] == 'V' ? "89ab"
                                                  : std::string(1, shape[i]);
    if (allowed.find(text[i]) == std::string::npos) return false;
  }
  return true;
}

TEST_CASE("a payload comes back as it went in", "[filesystem_store]") {
  const bool unnamed_files = GENERATE(true, false);
  const size_t size =
      GENERATE(size_t{0}, size_t{1}, size_t{1} << 20, (size_t{1} << 20) + 1, size_t{20} << 20);
  TemporaryDirectory directory;
  const auto store = open_place(place_in(directory, unnamed_files));
  const Buffer payload = random_bytes(size);

  const auto claim = put_payload(*store, payload, 131'064);
  REQUIRE(claim.ok());
  CHECK(claim.value().store == "claims");
  CHECK(claim.value().size_bytes == size);
  CHECK(is_uuid_v4(claim.value().key));
  CHECK(directory.names() == std::set<std::string>{marker_name, claim.value().key});
  CHECK(file_bytes(directory.file(claim.value().key)) == payload);

  const auto found = fetch(*store, claim.value().key, {size, claim.value().xxh128});
  REQUIRE(found.object != nullptr);
  CHECK(found.object->size_bytes() == size);
  CHECK((found.object->in_memory() != nullptr) == (size <= (size_t{1} << 20)));
  if (found.object->in_memory() != nullptr) CHECK(*found.object->in_memory() == payload);
  const size_t middle = size / 3, count = size / 2;
  const auto bytes = read_some(*found.object, middle, count);
  REQUIRE(bytes.ok());
  CHECK(bytes.value() == Buffer(payload.begin() + static_cast<std::ptrdiff_t>(middle),
                                payload.begin() + static_cast<std::ptrdiff_t>(middle + count)));
  CHECK(read_some(*found.object, size, 0).ok());
}

TEST_CASE("many pieces of odd sizes keep their order", "[filesystem_store]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const Buffer payload = random_bytes(100'003);
  const auto claim = put_payload(*store, payload, 97);
  REQUIRE(claim.ok());
  CHECK(file_bytes(directory.file(claim.value().key)) == payload);
}

TEST_CASE("uploads under way together do not disturb each other", "[filesystem_store]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  auto executor = std::make_shared<TestExecutor>();
  constexpr size_t count = 40;
  std::vector<Buffer> payloads;
  std::vector<std::unique_ptr<Upload>> uploads;
  std::vector<Claim> claims(count);
  size_t done = 0;
  for (size_t i = 0; i < count; ++i) {
    payloads.push_back(random_bytes(50'000 + i * 777, i));
    uploads.push_back(store->begin(payloads[i].size(), executor));
  }
  for (size_t part = 0; part < 10; ++part) {
    for (size_t i = 0; i < count; ++i) {
      const auto at = [&payload = payloads[i]](size_t tenth) {
        return payload.begin() + static_cast<std::ptrdiff_t>(payload.size() * tenth / 10);
      };
      uploads[i]->write(Buffer(at(part), at(part + 1)), [](size_t) {});
    }
  }
  for (size_t i = 0; i < count; ++i) {
    uploads[i]->finish([&done, &claim = claims[i]](Result<Claim> result) {
      REQUIRE(result.ok());
      claim = result.value();
      ++done;
    });
  }
  executor->run_until([&done] { return done == count; });
  uploads.clear();
  for (size_t i = 0; i < count; ++i) CHECK(file_bytes(directory.file(claims[i].key)) == payloads[i]);
  CHECK(directory.names().size() == count + 1);
}

TEST_CASE("an object has the configured mode and group from its first moment", "[filesystem_store]") {
  TemporaryDirectory directory;
  config::FilesystemStore config;
  config.path = directory.path();
  config.mode = 0604;
  config.group = geteuid() == 0 ? "65534" : std::to_string(getegid());
  const auto store = FilesystemStore::open("claims", config);
  REQUIRE(store.ok());
  const auto claim = put_payload(*store.value(), random_bytes(10));
  REQUIRE(claim.ok());
  struct stat status {};
  REQUIRE(stat(directory.file(claim.value().key).c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0604);
  CHECK(std::to_string(status.st_gid) == config.group);
}

TEST_CASE("a payload that is not as long as announced is not kept", "[filesystem_store]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const uint64_t announced = GENERATE(0, 99, 101);
  const auto claim = put_payload(*store, random_bytes(100), 30, announced);
  REQUIRE_FALSE(claim.ok());
  CHECK_THAT(claim.error(), ContainsSubstring(std::to_string(announced) + " bytes was announced"));
  CHECK(directory.names() == only_marker);
}

TEST_CASE("a dropped upload leaves nothing", "[filesystem_store]") {
  TemporaryDirectory directory;
  const bool unnamed_files = GENERATE(true, false);
  auto store = open_place(place_in(directory, unnamed_files));
  auto executor = std::make_shared<TestExecutor>();
  bool called = false;

  SECTION("before a piece") {
    store->begin(10, executor).reset();
  }
  SECTION("in the middle") {
    auto upload = store->begin(100, executor);
    upload->write(random_bytes(50), [&called](size_t) { called = true; });
    executor->wait_for_tasks(1);
    CHECK(directory.names().size() == (unnamed_files ? 1 : 2));
  }
  SECTION("with pieces queued") {
    auto upload = store->begin(100'000, executor);
    for (int i = 0; i < 100; ++i) upload->write(random_bytes(1000), [&called](size_t) { called = true; });
  }
  SECTION("finished, before it was told so") {
    auto upload = store->begin(100, executor);
    upload->write(random_bytes(100), [&called](size_t) { called = true; });
    upload->finish([&called](Result<Claim>) { called = true; });
    executor->wait_for_tasks(2);
    CHECK(directory.names().size() == 2);
  }
  SECTION("while it is being finished") {
    for (int i = 0; i < 50; ++i) {
      auto upload = store->begin(100, executor);
      upload->write(random_bytes(100), [&called](size_t) { called = true; });
      upload->finish([&called](Result<Claim>) { called = true; });
    }
  }
  bool later = false;
  executor->post([&later] { later = true; });
  executor->run_until([&later] { return later; });
  store.reset();
  executor->close();
  CHECK_FALSE(called);
  CHECK(directory.names() == only_marker);
}

TEST_CASE("a claim that nobody could be told of is taken back", "[filesystem_store]") {
  TemporaryDirectory directory;
  auto store = open_store(directory.path());
  auto executor = std::make_shared<TestExecutor>();
  auto upload = store->begin(100, executor);
  upload->write(random_bytes(100), [](size_t) {});
  bool called = false;
  SECTION("the loop was closed before") {
    executor->close();
  }
  SECTION("the loop is closed with the task in its queue") {}
  upload->finish([&called](Result<Claim>) { called = true; });
  SECTION("the loop is closed when the object is there") {
    executor->wait_for_tasks(2);
  }
  executor->close();
  SECTION("the store goes first") {}
  store.reset();
  executor->close();
  CHECK(directory.names() == only_marker);
  upload.reset();
  CHECK_FALSE(called);
}

TEST_CASE("uploads and objects may outlive their store", "[filesystem_store]") {
  TemporaryDirectory directory;
  auto store = open_store(directory.path());
  const Buffer payload = random_bytes(size_t{2} << 20);
  const auto claim = put_payload(*store, payload);
  REQUIRE(claim.ok());
  auto object = fetch(*store, claim.value().key).object;
  REQUIRE(object != nullptr);
  auto executor = std::make_shared<TestExecutor>();
  auto unfinished = store->begin(100, executor);
  unfinished->write(random_bytes(50), [](size_t) {});
  auto finished = store->begin(3, executor);
  finished->write({1, 2, 3}, [](size_t) {});
  store.reset();
  CHECK(read_some(*object, 100, 1000).ok());
  object.reset();
  unfinished.reset();
  std::optional<Result<Claim>> late;
  finished->finish([&late](Result<Claim> result) { late = std::move(result); });
  executor->run_until([&late] { return late.has_value(); });
  REQUIRE(late->ok());
  CHECK(directory.names() == std::set<std::string>{marker_name, claim.value().key, late->value().key});
}

TEST_CASE("remove takes the object away, and only objects", "[filesystem_store]") {
  TemporaryDirectory directory;
  auto store = open_store(directory.path());
  const auto claim = put_payload(*store, random_bytes(10));
  REQUIRE(claim.ok());
  store->remove(claim.value().key);
  store->remove(claim.value().key);
  store->remove(marker_name);
  store->remove("../" + std::filesystem::path(directory.path()).filename().string());
  store.reset();
  CHECK(directory.names() == only_marker);
}

TEST_CASE("an object that was opened is read on after its name is gone", "[filesystem_store]") {
  TemporaryDirectory directory;
  const auto store = open_store(directory.path());
  const Buffer payload = random_bytes(size_t{2} << 20);
  const auto claim = put_payload(*store, payload);
  REQUIRE(claim.ok());
  const auto found = fetch(*store, claim.value().key);
  REQUIRE(found.object != nullptr);
  std::filesystem::remove(directory.file(claim.value().key));
  const auto bytes = read_some(*found.object, 0, payload.size());
  REQUIRE(bytes.ok());
  CHECK(bytes.value() == payload);
}

TEST_CASE("hostile keys reach no path", "[filesystem_store]") {
  TemporaryDirectory outside;
  write_file(outside.file("secret"), {1, 2, 3});
  const std::string store_path = outside.file("store");
  std::filesystem::create_directory(store_path);
  std::filesystem::create_directory(store_path + "/nested");
  write_file(store_path + "/nested/key", {1});
  write_file(store_path + "/.hidden", {1});
  write_file(store_path + "/half.partial", {1});
  const auto store = open_store(store_path), liberal = open_store(store_path, proto::KeyRule::any);
  for (const std::string& key :
       {std::string("../secret"), outside.file("secret"), std::string("../../etc/passwd"),
        std::string("/etc/passwd"), std::string(), std::string(".hidden"), std::string(".bellhop-store"),
        std::string("."), std::string(".."), std::string(200, 'a'), std::string("nested/key"),
        std::string("half.partial"), std::string("key\n"), std::string("key\0", 4)}) {
    const auto found = fetch(*store, key);
    CHECK(found.object == nullptr);
    CHECK(found.failure.kind == FetchFailure::Kind::not_issued);
    CHECK_THAT(found.failure.reason, ContainsSubstring("is not a key this store issued"));
    CHECK(fetch(*liberal, key).failure.kind == FetchFailure::Kind::not_issued);
  }
}

TEST_CASE("a file that no store issued is read only where any key is", "[filesystem_store]") {
  TemporaryDirectory directory;
  const std::string library_key = "0f8fad5bd9cb469fa16570867728950e";
  for (const std::string& name : {std::string("id_rsa"), std::string("accounts.sqlite"), library_key})
    write_file(directory.file(name), {1, 2, 3});
  const auto store = open_store(directory.path());
  CHECK(fetch(*store, library_key).object != nullptr);
  for (const char* key : {"id_rsa", "accounts.sqlite"}) {
    const auto found = fetch(*store, key);
    CHECK(found.object == nullptr);
    CHECK(found.failure.kind == FetchFailure::Kind::not_issued);
    CHECK_THAT(found.failure.reason,
               ContainsSubstring(key) && ContainsSubstring("is not a key this store issued"));
  }
  const auto liberal = open_store(directory.path(), proto::KeyRule::any);
  CHECK(fetch(*liberal, "id_rsa").object != nullptr);
}

TEST_CASE("a file with a second name is no object", "[filesystem_store]") {
  TemporaryDirectory directory, elsewhere;
  const auto store = open_store(directory.path(), GENERATE(proto::KeyRule::issued, proto::KeyRule::any));
  const std::string key = "0f8fad5b-d9cb-469f-a165-70867728950e";
  write_file(elsewhere.file("secret"), {1, 2, 3});
  REQUIRE(link(elsewhere.file("secret").c_str(), directory.file(key).c_str()) == 0);
  const auto found = fetch(*store, key);
  CHECK(found.object == nullptr);
  CHECK(found.failure.kind == FetchFailure::Kind::corrupt);
  CHECK_THAT(found.failure.reason, ContainsSubstring(key) && ContainsSubstring("2 names (hard links)"));
  // One name, or none any more: an object.
  REQUIRE(unlink(elsewhere.file("secret").c_str()) == 0);
  CHECK(fetch(*store, key).object != nullptr);
}

TEST_CASE("two stores on one directory: what one writes the other reads", "[filesystem_store]") {
  TemporaryDirectory directory;
  const auto first = open_store(directory.path());
  auto second = open_store(directory.path());
  auto executor = std::make_shared<TestExecutor>();
  const Buffer payload = random_bytes(300'000);
  auto upload = first->begin(payload.size(), executor);
  upload->write(Buffer(payload.begin(), payload.begin() + 100'000), [](size_t) {});
  // The other restarts while this one uploads.
  second.reset();
  second = open_store(directory.path());
  upload->write(Buffer(payload.begin() + 100'000, payload.end()), [](size_t) {});
  std::optional<Claim> claim;
  upload->finish([&claim](Result<Claim> result) {
    REQUIRE(result.ok());
    claim = result.value();
  });
  executor->run_until([&claim] { return claim.has_value(); });
  const auto found = fetch(*second, claim->key, {claim->size_bytes, claim->xxh128});
  REQUIRE(found.object != nullptr);
  CHECK(*found.object->in_memory() == payload);
}

TEST_CASE("a start sweeps old unfinished objects and nothing else", "[filesystem_store]") {
  TemporaryDirectory directory;
  const std::string key = "0f8fad5b-d9cb-469f-a165-70867728950e";
  const std::string old_upload = ".bellhop-upload.host.1." + key,
                    live_upload = ".bellhop-upload.host.2." + key;
  const std::set<std::string> kept = {live_upload, ".bellhop-other", key, key + ".partial"};
  for (const std::string& name :
       {old_upload, live_upload, std::string(".bellhop-other"), key, key + ".partial"}) {
    write_file(directory.file(name), {1});
    if (name == live_upload) continue;
    const auto age = std::chrono::hours(25);
    std::filesystem::last_write_time(directory.file(name),
                                     std::filesystem::file_time_type::clock::now() - age);
  }
  open_store(directory.path()).reset();
  std::set<std::string> expected = kept;
  expected.insert(marker_name);
  CHECK(directory.names() == expected);
}

TEST_CASE("killed in the middle of an upload, nothing can be addressed", "[filesystem_store]") {
  const bool unnamed_files = GENERATE(true, false);
  TemporaryDirectory directory;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto store = FilesystemStore::open(place_in(directory, unnamed_files));
    auto executor = std::make_shared<TestExecutor>();
    auto upload = store.value()->begin(200'000, executor);
    bool written = false;
    upload->write(Buffer(100'000), [&written](size_t) { written = true; });
    executor->run_until([&written] { return written; });
    const char byte = 1;
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  REQUIRE(kill(child, SIGKILL) == 0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  close(ready[0]);
  close(ready[1]);
  for (const std::string& name : directory.names())
    CHECK_FALSE(proto::is_redeemable_key(name, proto::KeyRule::any));
  if (unnamed_files) CHECK(directory.names() == only_marker);
}

}  // namespace
}  // namespace bellhop
