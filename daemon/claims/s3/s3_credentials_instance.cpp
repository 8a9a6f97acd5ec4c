#include "daemon/claims/s3/s3_credentials_instance.h"

#include <strings.h>

#include "daemon/claims/s3/s3_address.h"
#include "daemon/claims/s3/s3_credentials_json.h"

namespace bellhop {

namespace {

// It is on the host's own link: where it does not answer at once, there is none.
constexpr uint32_t answer_within_ms = 2000;
constexpr const char* roles_path = "/latest/meta-data/iam/security-credentials/";

std::string endpoint_of(const Environment& environment) {
  std::string endpoint = variable(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
  const std::string mode = variable(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
  if (endpoint.empty())
    endpoint = strcasecmp(mode.c_str(), "ipv6") == 0 ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint;
}

std::string first_line(const std::string& text) {
  const std::string line = text.substr(0, text.find_first_of("\r\n"));
  return line.substr(0, line.find_last_not_of(" \t") + 1);
}

class Instance : public S3CredentialsSource {
 public:
  Instance(const Environment& environment, PlainRequests& requests)
      : endpoint_(endpoint_of(environment)), requests_(requests) {}

  void fetch(std::function<void(Result<S3Credentials>)> done) override {
    done_ = std::move(done);
    ask("PUT", "/latest/api/token", "x-aws-ec2-metadata-token-ttl-seconds: 21600", &Instance::got_token);
  }

 private:
  void ask(const char* method, const std::string& path, const std::string& header,
           void (Instance::*next)(const S3Answer&)) {
    PlainRequest request;
    request.method = method;
    request.url = endpoint_ + path;
    request.headers = {header};
    request.within_ms = answer_within_ms;
    request.is_direct = true;
    requests_.start(std::move(request), [this, path, next](const S3Answer& answer) {
      if (answer.ok() && answer.status == 200) return (this->*next)(answer);
      failed("answers " + path + " with " + json_words(answer));
    });
  }

  void got_token(const S3Answer& answer) {
    token_ = first_line(answer.body);
    if (token_.empty() || !can_be_header(token_)) return failed("gave no session token");
    ask("GET", roles_path, "x-aws-ec2-metadata-token: " + token_, &Instance::got_role);
  }

  void got_role(const S3Answer& answer) {
    const std::string role = first_line(answer.body);
    if (role.empty()) return failed("names no role: none is attached to the instance");
    ask("GET", roles_path + uri_encode(role, false), "x-aws-ec2-metadata-token: " + token_,
        &Instance::got_credentials);
  }

  void got_credentials(const S3Answer& answer) {
    auto found = read_json_credentials(answer.body);
    if (!found) return failed(found.error());
    std::exchange(done_, nullptr)(std::move(found));
  }

  void failed(const std::string& why) {
    std::exchange(done_, nullptr)(Error{"the instance's metadata service " + endpoint_ + ": " + why});
  }

  const std::string endpoint_;
  PlainRequests& requests_;
  std::string token_;
  std::function<void(Result<S3Credentials>)> done_;
};

}  // namespace

std::unique_ptr<S3CredentialsSource> instance_credentials(const Environment& environment,
                                                          PlainRequests& requests) {
  if (strcasecmp(variable(environment, "AWS_EC2_METADATA_DISABLED").c_str(), "true") == 0) return nullptr;
  return std::make_unique<Instance>(environment, requests);
}

}  // namespace bellhop
