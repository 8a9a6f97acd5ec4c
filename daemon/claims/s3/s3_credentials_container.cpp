#include "daemon/claims/s3/s3_credentials_container.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "daemon/claims/s3/s3_credentials_json.h"
#include "daemon/claims/s3/token_file.h"

namespace bellhop {

namespace {

constexpr const char* ecs_host = "http://169.254.170.2";
constexpr uint32_t answer_within_ms = 5000;

// What stands between "http://" and the path.
std::string_view authority_of(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  return url.substr(0, url.find_first_of("/?#"));
}

bool is_near(std::string_view authority) {
  if (authority.find('@') != std::string_view::npos) return false;
  const auto colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos && !authority.ends_with(']');
  std::string host(authority.substr(0, has_port ? colon : authority.size()));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host == "localhost") return true;
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1)
    return ntohl(v4.s_addr) >> 24 == 127 || host == "169.254.170.2" || host == "169.254.170.23";
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  in6_addr eks{};
  inet_pton(AF_INET6, "fd00:ec2::23", &eks);
  return IN6_IS_ADDR_LOOPBACK(&v6) || IN6_ARE_ADDR_EQUAL(&v6, &eks);
}

class Container : public S3CredentialsSource {
 public:
  Container(std::string url, const Environment& environment, PlainRequests& requests)
      : url_(std::move(url)),
        token_file_(variable(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")),
        token_(variable(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN")),
        requests_(requests) {}

  void fetch(std::function<void(Result<S3Credentials>)> done) override {
    PlainRequest request;
    request.url = url_;
    request.within_ms = answer_within_ms;
    request.is_direct = url_.starts_with("http://");
    request.headers = {"accept: application/json"};
    // Read each time: whoever gave it may renew it.
    const Result<std::string> token =
        token_file_.empty() ? Result<std::string>(token_) : read_token(token_file_);
    if (!token) return done(Error{"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: " + token.error()});
    if (!can_be_header(token.value()))
      return done(Error{"AWS_CONTAINER_AUTHORIZATION_TOKEN has characters that no header has"});
    if (!token.value().empty()) request.headers.push_back("authorization: " + token.value());
    requests_.start(std::move(request), [url = url_, done = std::move(done)](const S3Answer& answer) {
      const std::string who = "the container's endpoint " + url + ": ";
      if (!answer.ok() || answer.status != 200) return done(Error{who + json_words(answer)});
      auto found = read_json_credentials(answer.body);
      done(found ? std::move(found) : Error{who + found.error()});
    });
  }

 private:
  const std::string url_, token_file_, token_;
  PlainRequests& requests_;
};

}  // namespace

Result<std::string> container_credentials_url(const Environment& environment) {
  const std::string relative = variable(environment, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string full = variable(environment, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!relative.empty()) {
    if (relative.front() != '/' || !can_be_header(relative))
      return Error{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is no path: it begins with '/'"};
    return ecs_host + relative;
  }
  if (full.empty()) return std::string();
  if (!can_be_header(full)) return Error{"AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL"};
  if (full.starts_with("https://") || (full.starts_with("http://") && is_near(authority_of(full))))
    return full;
  return Error{fmt::format(
      "AWS_CONTAINER_CREDENTIALS_FULL_URI is {}: over http only this host (127.0.0.1, [::1], localhost), "
      "169.254.170.2, 169.254.170.23 and [fd00:ec2::23] are asked; use https for any other",
      full)};
}

std::unique_ptr<S3CredentialsSource> container_credentials(std::string url, const Environment& environment,
                                                           PlainRequests& requests) {
  return std::make_unique<Container>(std::move(url), environment, requests);
}

}  // namespace bellhop
