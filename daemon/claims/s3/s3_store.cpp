#include "daemon/claims/s3/s3_store.h"

#include <cstdlib>

#include "daemon/claims/s3/s3_fetch.h"
#include "daemon/claims/s3/s3_probe.h"
#include "daemon/claims/s3/s3_upload.h"

namespace bellhop {

namespace {
constexpr uint64_t last_patience_ms = 1000;
// Each undo ends by itself after its attempts: this is for good measure.
constexpr uint64_t undo_patience_ms = 3600 * 1000;
}  // namespace

Result<std::unique_ptr<S3Store>> S3Store::open(const std::string& name, const config::S3Store& config,
                                               proto::KeyRule keys) {
  auto core = S3Core::open(name, config, [](const char* variable) { return std::getenv(variable); });
  if (!core) return Error{core.error()};
  if (config.probe) probe_until_it_works(core.value());
  return std::unique_ptr<S3Store>(new S3Store(std::move(core.value()), keys));
}

S3Store::~S3Store() {
  if (!is_closed_) S3Core::close(core_, last_patience_ms);
}

void S3Store::close() {
  is_closed_ = true;
  S3Core::close(core_, undo_patience_ms);
}

std::unique_ptr<Upload> S3Store::begin(uint64_t size_bytes, std::shared_ptr<Executor> executor) {
  return std::make_unique<S3UploadHandle>(std::make_shared<S3Upload>(core_, size_bytes, std::move(executor)));
}

void S3Store::fetch_redeemable(FetchRequest request) {
  fetch_object(core_, std::move(request));
}

void S3Store::remove(const std::string& key) {
  remove_object(core_, key);
}

}  // namespace bellhop
