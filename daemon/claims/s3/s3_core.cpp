#include "daemon/claims/s3/s3_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "daemon/claims/left_behind.h"
#include "daemon/claims/s3/digest.h"
#include "daemon/claims/s3/s3_doubt.h"
#include "daemon/ops/log_line.h"
#include "proto/claim_frame.h"

namespace bellhop {

Result<std::shared_ptr<S3Core>> S3Core::open(const std::string& name, const config::S3Store& config,
                                             const Environment& environment) {
  auto loop = CurlLoop::open();
  if (!loop) return Error{fmt::format("store '{}': {}", name, loop.error())};
  const auto credentials = S3CredentialsProvider::open(name, config, environment, *loop.value());
  if (!credentials) return Error{fmt::format("store '{}': {}", name, credentials.error())};
  const std::string region = find_s3_region(config, environment);
  auto core = std::make_shared<S3Core>(name, config, S3Address(config, region));
  core->loop = std::move(loop.value());
  core->loop->post([raw = core.get(), credentials = credentials.value(),
                    settings = S3Settings{region, find_ca_bundle(environment), config.timeout_ms}] {
    raw->client = std::make_unique<S3Client>(*raw->loop, settings, raw->config.retries, credentials);
  });
  return core;
}

void S3Core::close(const std::shared_ptr<S3Core>& core, uint64_t patience_ms) {
  std::promise<void> quiet;
  core->loop->post([raw = core.get(), patience_ms, &quiet] {
    raw->client->finish(patience_ms, [&quiet] { quiet.set_value(); });
  });
  quiet.get_future().wait();
  for (const std::string& key : core->keys_under_way.all())
    log_warn("claim is left behind, whole or in part: no message names it",
             {{"key", key}, {"store", core->name}});
  core->loop->stop([raw = core.get()] { raw->client.reset(); });
}

std::shared_ptr<S3Call> S3Core::call(std::string method, std::string url) const {
  auto out = std::make_shared<S3Call>();
  out->request.method = std::move(method);
  out->request.url = std::move(url);
  return out;
}

void S3Core::set_body(S3Call& call, std::string body) const {
  if (signs_payloads()) call.request.sha256 = sha256_hex(as_bytes(body));
  call.request.body = std::make_shared<TextBody>(std::move(body));
}

void S3Core::add_checksum(S3Request& request, Bytes md5) const {
  request.headers.push_back("content-md5: " + to_base64(md5));
}

void S3Core::add_encryption(S3Request& request) const {
  using Encryption = config::S3Store::Encryption;
  if (config.sse == Encryption::none) return;
  request.headers.push_back(std::string("x-amz-server-side-encryption: ") +
                            (config.sse == Encryption::kms ? "aws:kms" : "AES256"));
  if (!config.kms_key_id.empty())
    request.headers.push_back("x-amz-server-side-encryption-aws-kms-key-id: " + config.kms_key_id);
}

std::string S3Core::problem(const S3Answer& answer, const std::string& method) const {
  return describe(answer, address.bucket(), address.endpoint(), method);
}

std::shared_ptr<KeyUnderWay> key_under_way(const std::shared_ptr<S3Core>& core, std::string key) {
  // The list that it takes itself off is the core's.
  return {new KeyUnderWay(core->keys_under_way, std::move(key)), [core](KeyUnderWay* each) { delete each; }};
}

void remove_object(const std::shared_ptr<S3Core>& core, const std::string& key) {
  core->loop->post([core, key, under_way = key_under_way(core, key)] {
    if (!core->client || !proto::is_issued_key(key)) return;
    const auto call = core->call("DELETE", core->address.object_url(key));
    call->is_undo = true;
    call->doubt = doubt_of_delete;
    call->done = [core, key, under_way](const S3Answer& answer) {
      if (!answer.ok() && outcome_of(answer) != S3Outcome::missing)
        tell_left_behind(core->name, key, core->problem(answer, "DELETE"));
    };
    core->client->start(call);
  });
}

}  // namespace bellhop
