// Chooses where a store's credentials come from, keeps them, and gets new ones in time. The order is that of
// AWS's SDKs:
//
//   the configuration ─► the environment ─► web identity ─► the shared file ─► the container's endpoint
//     ─► the instance's metadata
//
// The first two never change. The provider asks the others again some time before their credentials expire,
// when the file has changed, and once when the service refuses what was signed with them. Requests wait
// meanwhile, and one refresh serves all of them:
//
//                  ┌──────────── good ◄──────────────┐
//   asked, refused │                                 │ came
//   or expired     ▼                                 │
//               coming ─── failed ──► none ─ pause ─► coming
//
// Only the store's thread, apart from open().
#pragma once

#include <functional>
#include <memory>
#include <random>
#include <string>

#include "config/config.h"
#include "daemon/claims/s3/plain_request.h"
#include "daemon/claims/s3/s3_credentials.h"
#include "daemon/claims/s3/s3_credentials_file.h"
#include "daemon/claims/s3/s3_environment.h"
#include "daemon/ops/backoff.h"

namespace bellhop {

class S3CredentialsProvider {
 public:
  // Sends nothing yet. Errors: a container's endpoint that must not be asked; no place that credentials could
  // come from.
  static Result<std::shared_ptr<S3CredentialsProvider>> open(const std::string& store,
                                                             const config::S3Store& config,
                                                             const Environment& environment, CurlLoop& loop);
  S3CredentialsProvider(const S3CredentialsProvider&) = delete;
  S3CredentialsProvider& operator=(const S3CredentialsProvider&) = delete;

  // `changed` is called when credentials came, or did not come; never inside a call of this class.
  void watch(std::function<void()> changed) { changed_ = std::move(changed); }
  // What to sign a request with now. Null: nothing; is_coming() says whether that changes by itself.
  std::shared_ptr<const S3Credentials> now();
  bool is_coming() const { return refreshing_; }
  // Why there are none. Precondition: now() gave null, and none are coming.
  const std::string& problem() const { return problem_; }
  // The service refused a request that was signed with `refused`. True: others may come, so make the request
  // again.
  bool renew(const S3Credentials& refused);
  // A request signed with what is in use went well.
  void accepted() { useless_renewals_ = 0; }

 private:
  S3CredentialsProvider(std::string store, CurlLoop& loop, const std::string& ca_bundle)
      : store_(std::move(store)), loop_(loop), requests_(loop, ca_bundle), random_(std::random_device{}()) {}
  bool has_expired() const;
  bool should_refresh() const;
  void refresh();
  void came(const S3Credentials& credentials);
  void did_not_come(const std::string& why);

  const std::string store_;
  CurlLoop& loop_;
  PlainRequests requests_;
  std::minstd_rand random_;
  bool is_fixed_ = false;
  std::unique_ptr<S3CredentialsSource> web_identity_;
  std::unique_ptr<S3CredentialsFile> file_;        // null: a web identity goes before it
  std::unique_ptr<S3CredentialsSource> endpoint_;  // the container's, else the instance's
  bool are_from_file_ = false;

  std::shared_ptr<const S3Credentials> current_;
  std::shared_ptr<const S3Credentials> refused_;  // what the refresh that runs is to replace
  std::time_t renew_at_ = 0;                      // seconds since 1970, when current_ expires
  bool refreshing_ = false;
  uint64_t next_refresh_at_ms_ = 0;  // after a failure
  uint64_t next_renewal_at_ms_ = 0;  // after a refusal
  uint32_t failures_ = 0, useless_renewals_ = 0;
  std::string problem_;
  std::function<void()> changed_;
};

}  // namespace bellhop
