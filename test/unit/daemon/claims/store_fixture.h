// What the tests of the stores stand on: a directory of their own, and a session's loop that the test turns
// by hand.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "daemon/claims/claim_store.h"
#include "daemon/claims/filesystem/filesystem_store.h"
#include "test/support/catch.h"

namespace bellhop {

// Catch2's matcher for a part of a text, by its name in version 3.
#if __has_include(<catch2/catch_all.hpp>)
using Catch::Matchers::ContainsSubstring;
#else
inline auto ContainsSubstring(const std::string& part) {
  return Catch::Contains(part);
}
#endif

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "bellhop-claims-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    REQUIRE(chmod(path_.c_str(), 0755) == 0);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Every name in it, dot files too.
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.insert(entry.path().filename());
    return found;
  }

 private:
  std::string path_;
};

class TestExecutor : public Executor {
 public:
  void post(std::function<void()> task) override {
    {
      std::lock_guard lock(mutex_);
      if (!closed_) tasks_.push_back(std::move(task));
    }
    posted_.notify_all();
  }
  void close() {
    std::deque<std::function<void()>> dropped;
    std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(tasks_);
  }
  // Runs tasks until `done`; fails the test when that takes too long.
  void run_until(const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      std::unique_lock lock(mutex_);
      if (!posted_.wait_until(lock, deadline, [this] { return !tasks_.empty(); }))
        FAIL("nothing came in time");
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }
  // Waits for tasks without running them.
  void wait_for_tasks(size_t count) {
    std::unique_lock lock(mutex_);
    REQUIRE(
        posted_.wait_for(lock, std::chrono::seconds(60), [this, count] { return tasks_.size() >= count; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> tasks_;
  bool closed_ = false;
};

inline Buffer random_bytes(size_t count, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  Buffer bytes(count);
  for (auto& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

inline Buffer file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_file(const std::string& path, const Buffer& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(file.good());
}

inline Result<Claim> put_payload(ClaimStore& store, const Buffer& payload, size_t piece_bytes = 65536,
                                 std::optional<uint64_t> announced = {}) {
  auto executor = std::make_shared<TestExecutor>();
  auto upload = store.begin(announced.value_or(payload.size()), executor);
  size_t freed = 0;
  for (size_t at = 0; at < payload.size(); at += piece_bytes) {
    const size_t end = std::min(at + piece_bytes, payload.size());
    upload->write(Buffer(payload.begin() + static_cast<std::ptrdiff_t>(at),
                         payload.begin() + static_cast<std::ptrdiff_t>(end)),
                  [&freed](size_t bytes) { freed += bytes; });
  }
  std::optional<Result<Claim>> result;
  upload->finish([&result](Result<Claim> claim) { result = std::move(claim); });
  executor->run_until([&result] { return result.has_value(); });
  CHECK(freed == payload.size());
  return *result;
}

inline FetchResult fetch(ClaimStore& store, const std::string& key, const Expected& expected = {}) {
  auto executor = std::make_shared<TestExecutor>();
  std::optional<FetchResult> result;
  const auto waiter = std::make_shared<FetchWatch>();
  store.fetch(key, expected, waiter, executor, [&result](FetchResult found) { result = std::move(found); });
  executor->run_until([&result] { return result.has_value(); });
  return *result;
}

inline Result<Buffer> read_some(LocalObject& object, uint64_t offset, size_t count) {
  auto executor = std::make_shared<TestExecutor>();
  std::optional<Result<Buffer>> result;
  object.read(offset, count, executor, [&result](Result<Piece> piece) {
    if (piece)
      result = Buffer(piece.value().bytes.begin(), piece.value().bytes.end());
    else
      result = Result<Buffer>(Error{piece.error()});
  });
  executor->run_until([&result] { return result.has_value(); });
  return *result;
}

inline std::unique_ptr<FilesystemStore> open_store(const std::string& path,
                                                   proto::KeyRule keys = proto::KeyRule::issued) {
  config::FilesystemStore config;
  config.path = path;
  auto store = FilesystemStore::open("claims", config, keys);
  REQUIRE(store.ok());
  return std::move(store.value());
}

}  // namespace bellhop
