#include "daemon/cli/inspect/store_probe.h"

#include <algorithm>
#include <cstdlib>

#include "daemon/claims/filesystem/filesystem_fetch.h"
#include "daemon/claims/filesystem/filesystem_look.h"
#include "daemon/claims/filesystem/filesystem_store.h"
#include "daemon/claims/payload_hash.h"
#include "daemon/claims/s3/s3_fetch.h"
#include "daemon/claims/s3/s3_look.h"
#include "daemon/cli/inspect/waiting_executor.h"

namespace bellhop {

namespace {

constexpr size_t piece_bytes = size_t{1} << 20;
// Somebody waits at a terminal: a service that is down is told of soon.
constexpr uint32_t retries_max = 2;
constexpr ThreadShares few_threads{.threads_max = 2, .one_kind_max = 2, .one_line_max = 2};

class FilesystemProbe : public StoreProbe {
 public:
  FilesystemProbe(const config::Store& config, StorePlace place)
      : StoreProbe(config),
        core_(std::make_shared<FilesystemCore>(std::move(place), few_threads, few_threads)) {}
  ~FilesystemProbe() override {
    core_->verifying.stop();
    core_->pool.stop();
  }

  std::string place_of(const std::string& key) const override { return core_->place.path + "/" + key; }
  void look(const std::string& key, std::function<void(ObjectLook)> done) override {
    done(look_at_object(core_->place, key));
  }
  Result<std::string> hash(const std::string& key) override { return hash_object(core_->place, key); }
  void fetch(const std::string& key, const Expected& expected, std::weak_ptr<FetchWatch> wanted,
             std::shared_ptr<Executor> executor, std::function<void(FetchResult)> done) override {
    fetch_object(core_, {key, expected, std::move(wanted), std::move(executor), std::move(done)});
  }

 private:
  const std::shared_ptr<FilesystemCore> core_;
};

class S3Probe : public StoreProbe {
 public:
  S3Probe(const config::Store& config, std::shared_ptr<S3Core> core)
      : StoreProbe(config), core_(std::move(core)) {}
  ~S3Probe() override { S3Core::close(core_, 0); }

  std::string place_of(const std::string& key) const override { return core_->address.object_url(key); }
  void look(const std::string& key, std::function<void(ObjectLook)> done) override {
    look_at_object(core_, key, std::move(done));
  }
  Result<std::string> hash(const std::string& key) override;
  void fetch(const std::string& key, const Expected& expected, std::weak_ptr<FetchWatch> wanted,
             std::shared_ptr<Executor> executor, std::function<void(FetchResult)> done) override {
    fetch_object(core_, {key, expected, std::move(wanted), std::move(executor), std::move(done)});
  }

 private:
  const std::shared_ptr<S3Core> core_;
};

Result<std::string> S3Probe::hash(const std::string& key) {
  const auto executor = std::make_shared<WaitingExecutor>();
  const auto watch = std::make_shared<FetchWatch>();
  FetchResult fetched;
  bool is_done = false;
  fetch(key, {}, watch, executor, [&](FetchResult result) {
    fetched = std::move(result);
    is_done = true;
  });
  executor->run_until(is_done);
  if (fetched.object == nullptr) return Error{fetched.failure.reason};
  PayloadHash hash;
  for (uint64_t offset = 0; offset < fetched.object->size_bytes();) {
    const auto count =
        static_cast<size_t>(std::min<uint64_t>(piece_bytes, fetched.object->size_bytes() - offset));
    std::string problem;
    is_done = false;
    fetched.object->read(offset, count, executor, [&](Result<Piece> piece) {
      if (piece)
        hash.update(piece.value().bytes);
      else
        problem = piece.error();
      is_done = true;
    });
    executor->run_until(is_done);
    if (!problem.empty()) return Error{problem};
    offset += count;
  }
  return hash.hex();
}

// Its payloads are in the memory of the process that serves, where nobody else can look.
class MemoryProbe : public StoreProbe {
 public:
  explicit MemoryProbe(const config::Store& config) : StoreProbe(config) {}
  std::string place_of(const std::string&) const override { return "memory of the bellhop that runs"; }
  void look(const std::string&, std::function<void(ObjectLook)> done) override {
    done({ObjectLook::Kind::unavailable, reason(), 0, {}, {}});
  }
  Result<std::string> hash(const std::string&) override { return Error{reason()}; }
  void fetch(const std::string&, const Expected&, std::weak_ptr<FetchWatch>,
             std::shared_ptr<Executor> executor, std::function<void(FetchResult)> done) override {
    executor->post([why = reason(), done = std::move(done)] {
      done({nullptr, {FetchFailure::Kind::unavailable, why}});
    });
  }

 private:
  std::string reason() const {
    return "store '" + config().name +
           "' is in the memory of the bellhop that runs, nobody else can look there";
  }
};

}  // namespace

Result<std::unique_ptr<StoreProbe>> StoreProbe::open(const config::Store& config) {
  if (const auto* filesystem = std::get_if<config::FilesystemStore>(&config.kind)) {
    auto place = FilesystemStore::place_of(config.name, *filesystem);
    if (!place) return Error{place.error()};
    return std::unique_ptr<StoreProbe>(std::make_unique<FilesystemProbe>(config, std::move(place.value())));
  }
  if (const auto* s3 = std::get_if<config::S3Store>(&config.kind)) {
    config::S3Store patient = *s3;
    patient.retries = std::min(patient.retries, retries_max);
    auto core =
        S3Core::open(config.name, patient, [](const char* variable) { return std::getenv(variable); });
    if (!core) return Error{core.error()};
    return std::unique_ptr<StoreProbe>(std::make_unique<S3Probe>(config, std::move(core.value())));
  }
  return std::unique_ptr<StoreProbe>(std::make_unique<MemoryProbe>(config));
}

}  // namespace bellhop
