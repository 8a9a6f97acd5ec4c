#include "daemon/claims/s3/s3_credentials_provider.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/claims/s3/s3_credentials_container.h"
#include "daemon/claims/s3/s3_credentials_instance.h"
#include "daemon/claims/s3/s3_credentials_web_identity.h"
#include "daemon/ops/log_line.h"

namespace bellhop {

namespace {

constexpr Backoff refresh_backoff{1000, 30000};
constexpr Backoff renewal_backoff{1000, 60000};
// So long before they expire others are asked for, or a quarter of their time, if that is less.
constexpr std::time_t renewed_before_end_s = 300;

}  // namespace

Result<std::shared_ptr<S3CredentialsProvider>> S3CredentialsProvider::open(const std::string& store,
                                                                           const config::S3Store& config,
                                                                           const Environment& environment,
                                                                           CurlLoop& loop) {
  std::shared_ptr<S3CredentialsProvider> self(
      new S3CredentialsProvider(store, loop, find_ca_bundle(environment)));
  S3Credentials fixed{config.access_key, config.secret_key, config.session_token};
  if (fixed.access_key.empty())
    fixed = {variable(environment, "AWS_ACCESS_KEY_ID"), variable(environment, "AWS_SECRET_ACCESS_KEY"),
             variable(environment, "AWS_SESSION_TOKEN")};
  if (!fixed.access_key.empty() && !fixed.secret_key.empty()) {
    self->is_fixed_ = true;
    self->current_ = std::make_shared<const S3Credentials>(std::move(fixed));
    return self;
  }
  self->web_identity_ =
      web_identity_credentials(environment, find_s3_region(config, environment), self->requests_);
  if (self->web_identity_) return self;
  self->file_ = std::make_unique<S3CredentialsFile>(environment);
  const auto url = container_credentials_url(environment);
  const auto in_file = self->file_->read();
  if (!url && !in_file) return Error{url.error()};
  self->endpoint_ = url && !url.value().empty()
                        ? container_credentials(url.value(), environment, self->requests_)
                        : instance_credentials(environment, self->requests_);
  if (!self->endpoint_ && !in_file)
    return Error{
        "no credentials: access_key and secret_key are empty, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
        "are "
        "not set, nor are AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or a container's endpoint; "
        "AWS_EC2_METADATA_DISABLED is true; and " +
        in_file.error()};
  return self;
}

bool S3CredentialsProvider::has_expired() const {
  return current_->expires_at && *current_->expires_at <= std::time(nullptr);
}

bool S3CredentialsProvider::should_refresh() const {
  if (refreshing_ || loop_.now_ms() < next_refresh_at_ms_) return false;
  return !current_ || (current_->expires_at && renew_at_ <= std::time(nullptr));
}

std::shared_ptr<const S3Credentials> S3CredentialsProvider::now() {
  if (is_fixed_) return current_;
  // Also if it gave none the last time: it may have been half written.
  const bool is_new_file = file_ && !refreshing_ && file_->has_changed(loop_.now_ms());
  if (is_new_file || should_refresh()) refresh();
  return current_ && !has_expired() ? current_ : nullptr;
}

bool S3CredentialsProvider::renew(const S3Credentials& refused) {
  if (is_fixed_) return false;
  if (current_ && *current_ != refused) return true;  // others are here already
  if (refreshing_) return true;
  // To look at a file costs nothing. A service is not asked with each request that has no right to something.
  if (!are_from_file_ && loop_.now_ms() < next_renewal_at_ms_) return false;
  refused_ = std::exchange(current_, nullptr);
  refresh();
  if (refreshing_) return true;
  return current_ && *current_ != refused;
}

void S3CredentialsProvider::refresh() {
  refreshing_ = true;
  const auto done = [this](const Result<S3Credentials>& found) {
    if (found)
      came(found.value());
    else
      did_not_come(found.error());
    if (changed_) changed_();
  };
  if (web_identity_) return web_identity_->fetch(done);
  const auto in_file = file_->read();
  are_from_file_ = static_cast<bool>(in_file);
  if (in_file) return came(in_file.value());
  if (!endpoint_) return did_not_come(in_file.error());
  endpoint_->fetch([done, why_not_file = in_file.error()](const Result<S3Credentials>& found) {
    done(found ? found : Error{why_not_file + ", and " + found.error()});
  });
}

void S3CredentialsProvider::came(const S3Credentials& credentials) {
  refreshing_ = false;
  const std::time_t now = std::time(nullptr);
  if (credentials.expires_at && *credentials.expires_at <= now)
    return did_not_come("the ones that came have already expired");
  if (const auto refused = std::exchange(refused_, nullptr)) {
    useless_renewals_ = *refused == credentials ? useless_renewals_ + 1 : 0;
    next_renewal_at_ms_ = loop_.now_ms() + renewal_backoff.wait_ms(useless_renewals_ + 1, random_);
  }
  if (failures_ != 0) log_info("credentials came", {{"store", store_}, {"failed_attempts", failures_}});
  failures_ = 0;
  next_refresh_at_ms_ = 0;
  if (credentials.expires_at)
    renew_at_ = *credentials.expires_at - std::min((*credentials.expires_at - now) / 4, renewed_before_end_s);
  current_ = std::make_shared<const S3Credentials>(credentials);
}

void S3CredentialsProvider::did_not_come(const std::string& why) {
  refreshing_ = false;
  problem_ = "no credentials: " + why;
  next_refresh_at_ms_ = loop_.now_ms() + refresh_backoff.wait_ms(++failures_, random_);
  // Those that were refused may be good for other requests.
  if (const auto refused = std::exchange(refused_, nullptr)) {
    current_ = refused;
    next_renewal_at_ms_ = loop_.now_ms() + renewal_backoff.wait_ms(++useless_renewals_, random_);
  }
  // Told once; how often it was tried is told when it is over.
  if (failures_ == 1)
    log_warn(current_ && !has_expired()
                 ? "no new credentials came: the ones in use are valid for some time"
                 : "no credentials came: until they come, bellhop nacks publishes and holds deliveries",
             {{"store", store_}, {"reason", problem_}});
}

}  // namespace bellhop
