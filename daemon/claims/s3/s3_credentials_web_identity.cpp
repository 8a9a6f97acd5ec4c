#include "daemon/claims/s3/s3_credentials_web_identity.h"

#include "daemon/claims/s3/iso_time.h"
#include "daemon/claims/s3/s3_address.h"
#include "daemon/claims/s3/token_file.h"
#include "proto/xml_scan.h"

namespace bellhop {

namespace {

constexpr uint32_t answer_within_ms = 10000;

class WebIdentity : public S3CredentialsSource {
 public:
  WebIdentity(const Environment& environment, const std::string& region, PlainRequests& requests)
      : token_file_(variable(environment, "AWS_WEB_IDENTITY_TOKEN_FILE")),
        role_(variable(environment, "AWS_ROLE_ARN")),
        session_(variable(environment, "AWS_ROLE_SESSION_NAME")),
        endpoint_(sts_endpoint(environment, region)),
        requests_(requests) {}

  void fetch(std::function<void(Result<S3Credentials>)> done) override {
    // Read each time: Kubernetes renews it.
    const Result<std::string> token = read_token(token_file_);
    if (!token) return done(Error{"AWS_WEB_IDENTITY_TOKEN_FILE: " + token.error()});
    PlainRequest request;
    request.method = "POST";
    request.url = endpoint_;
    request.within_ms = answer_within_ms;
    request.headers = {"content-type: application/x-www-form-urlencoded", "accept: application/xml"};
    request.body = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" + uri_encode(role_, false) +
                   "&RoleSessionName=" + uri_encode(session_.empty() ? "bellhop" : session_, false) +
                   "&WebIdentityToken=" + uri_encode(token.value(), false);
    requests_.start(std::move(request),
                    [who = "STS at " + endpoint_ + ": ", done = std::move(done)](const S3Answer& answer) {
                      if (!answer.ok() || answer.status != 200) return done(Error{who + words_of(answer)});
                      auto found = read_web_identity_answer(answer.body);
                      done(found ? std::move(found) : Error{who + found.error()});
                    });
  }

 private:
  const std::string token_file_, role_, session_, endpoint_;
  PlainRequests& requests_;
};

}  // namespace

std::unique_ptr<S3CredentialsSource> web_identity_credentials(const Environment& environment,
                                                              const std::string& region,
                                                              PlainRequests& requests) {
  if (variable(environment, "AWS_WEB_IDENTITY_TOKEN_FILE").empty() ||
      variable(environment, "AWS_ROLE_ARN").empty())
    return nullptr;
  return std::make_unique<WebIdentity>(environment, region, requests);
}

std::string sts_endpoint(const Environment& environment, const std::string& region) {
  std::string endpoint = variable(environment, "AWS_ENDPOINT_URL_STS");
  if (endpoint.empty())
    endpoint = "https://sts." + region + (region.starts_with("cn-") ? ".amazonaws.com.cn" : ".amazonaws.com");
  return endpoint.ends_with('/') ? endpoint : endpoint + "/";
}

Result<S3Credentials> read_web_identity_answer(std::string_view xml) {
  const auto results = proto::xml_elements(xml, "AssumeRoleWithWebIdentityResult");
  const auto found = results.empty() ? results : proto::xml_elements(results.front(), "Credentials");
  if (found.empty()) return Error{"the answer has no Credentials"};
  const auto text = [&](const char* name) { return proto::xml_text(found.front(), name).value_or(""); };
  S3Credentials out{text("AccessKeyId"), text("SecretAccessKey"), text("SessionToken")};
  if (out.access_key.empty() || out.secret_key.empty() || out.session_token.empty())
    return Error{"the answer has no AccessKeyId, SecretAccessKey and SessionToken"};
  if (!can_be_header(out.access_key) || !can_be_header(out.secret_key) || !can_be_header(out.session_token))
    return Error{"the answer's keys have characters that no key has"};
  out.expires_at = parse_iso_time(text("Expiration"));
  if (!out.expires_at) return Error{"the answer's Expiration is no time: " + shown(text("Expiration"))};
  return out;
}

}  // namespace bellhop
