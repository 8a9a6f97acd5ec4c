#include "config/load_s3_store.h"

#include <arpa/inet.h>

#include <algorithm>

#include "config/host_port.h"

namespace bellhop::config {

namespace {

constexpr const char* endpoint_form = "allowed: http://host[:port] or https://host[:port]";
constexpr size_t prefix_bytes_max = 512;  // a whole object name has at most 1024
constexpr std::string_view kms = "aws:kms";

bool is_plain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

std::string_view host_of(std::string_view endpoint) {
  endpoint.remove_prefix(endpoint.starts_with("https://") ? 8 : 7);
  return endpoint;
}

bool is_address(std::string_view endpoint) {
  const Result<HostPort> parsed = parse_host_port(host_of(endpoint));
  in_addr v4;
  return parsed && (parsed.value().host.find(':') != std::string::npos ||
                    inet_pton(AF_INET, parsed.value().host.c_str(), &v4) == 1);
}

void read_bucket(Section& section, S3Store& out) {
  const auto value = section.find("bucket");
  if (!value) return section.missing("bucket", "is missing, allowed: a bucket's name");
  auto text = value->text();
  if (!text) return;
  bool good = text->size() >= 3 && text->size() <= 255 && text->front() != '.' && text->back() != '.' &&
              text->find("..") == std::string::npos;
  for (const char c : *text) good = good && is_plain(c) && c != '~';
  if (!good)
    return value->error_with_value(
        "is no bucket's name, allowed: 3 to 255 letters, digits, '.', '_', '-', no '.' at either end, no "
        "'..'");
  out.bucket = std::move(*text);
}

// Signatures are made over the URL as it is written, so nothing in it may need an escape; and no segment may
// be one that clients and proxies resolve.
const char* problem_of_prefix(std::string_view prefix) {
  if (prefix.size() > prefix_bytes_max) return "is too long, allowed: at most 512 bytes";
  for (const char c : prefix) {
    if (!is_plain(c) && c != '/')
      return "has a character that is not allowed, allowed: letters, digits, '.', '_', '~', '-', '/'";
  }
  while (!prefix.empty()) {
    const size_t end = prefix.find('/');
    const std::string_view segment = prefix.substr(0, end);
    if (end == 0) return "has an empty segment, allowed: one '/' between names, and none in front";
    // A last segment without a '/' has the key behind it and is none of these then.
    if (end != std::string_view::npos && (segment == "." || segment == ".."))
      return "has a segment '.' or '..', allowed: names";
    prefix = end == std::string_view::npos ? std::string_view{} : prefix.substr(end + 1);
  }
  return nullptr;
}

void read_sse(Section& section, S3Store& out) {
  const auto value = section.find("sse");
  if (!value) return;
  const auto text = value->text();
  if (!text) return;
  if (*text == "none") return;
  if (*text == "AES256") {
    out.sse = S3Store::Encryption::aes256;
    return;
  }
  if (text->starts_with(kms)) {
    std::string_view rest = std::string_view(*text).substr(kms.size());
    bool good = rest.empty() || (rest.front() == ':' && rest.size() > 1 && rest.size() <= 2048);
    for (const char c : rest) good = good && (is_plain(c) || c == ':' || c == '/');
    if (good) {
      out.sse = S3Store::Encryption::kms;
      if (!rest.empty()) out.kms_key_id = rest.substr(1);
      return;
    }
  }
  value->error_with_value("is not known, allowed: none, AES256, aws:kms, aws:kms:KEY_ID");
}

void read_credentials(Section& section, S3Store& out) {
  bool are_read = true;
  const auto read = [&](const char* key, std::string& into) {
    const auto value = section.find(key);
    if (!value) return;
    auto text = &into == &out.access_key ? value->text() : value->secret();
    if (text)
      into = std::move(*text);
    else
      are_read = false;
  };
  read("access_key", out.access_key);
  read("secret_key", out.secret_key);
  read("session_token", out.session_token);
  if (!are_read) return;  // that was told, and an empty one says nothing
  for (const auto& [key, text] :
       {std::pair("access_key", &out.access_key), std::pair("secret_key", &out.secret_key),
        std::pair("session_token", &out.session_token)}) {
    const auto is_odd = [](char c) { return c <= ' ' || c >= 0x7f; };
    if (std::any_of(text->begin(), text->end(), is_odd))
      section.find(key)->error("has a character that no key has, allowed: printable ASCII without blanks");
  }
  if (out.access_key.empty() != out.secret_key.empty()) {
    const char* const empty = out.access_key.empty() ? "access_key" : "secret_key";
    const std::string text =
        "is empty while the other of access_key and secret_key is not, allowed: both or "
        "none (then the environment's, or the shared credentials file's)";
    if (const auto value = section.find(empty)) {
      value->error(text);
    } else {
      section.missing(empty, text);
    }
  } else if (out.access_key.empty() && !out.session_token.empty()) {
    section.find("session_token")->error("stands without access_key and secret_key, allowed: all three");
  }
}

}  // namespace

Result<void> check_s3_endpoint(std::string_view endpoint) {
  if (!endpoint.starts_with("http://") && !endpoint.starts_with("https://"))
    return Error{std::string("is not an HTTP address, ") + endpoint_form};
  const std::string_view rest = host_of(endpoint);
  if (rest.find('@') != std::string_view::npos)
    return Error{std::string("has a user in it, ") + endpoint_form +
                 ", with access_key and secret_key beside"};
  if (rest.find_first_of("/?#") != std::string_view::npos)
    return Error{std::string("has a path or a query, ") + endpoint_form + ", with bucket and prefix beside"};
  const Result<HostPort> parsed = parse_host_port(rest);
  if (!parsed) return Error{parsed.error() + ", " + endpoint_form};
  return {};
}

S3Store read_s3(Section& section) {
  S3Store out;
  if (const auto endpoint = section.find("endpoint")) {
    if (auto text = endpoint->text()) {
      if (text->ends_with('/')) text->pop_back();
      const Result<void> checked = check_s3_endpoint(*text);
      if (checked) {
        out.endpoint = std::move(*text);
      } else {
        endpoint->error(checked.error());
      }
    }
  }
  if (const auto region = section.find("region")) {
    if (auto text = region->text()) {
      bool good = text->size() <= 64;
      for (const char c : *text) good = good && is_plain(c);
      if (good)
        out.region = std::move(*text);
      else
        region->error_with_value("is no region's name, allowed: letters, digits, '-', as in eu-west-1");
    }
  }
  read_bucket(section, out);
  if (const auto prefix = section.find("prefix")) {
    if (auto text = prefix->text()) {
      const char* const problem = problem_of_prefix(*text);
      if (problem == nullptr)
        out.prefix = std::move(*text);
      else
        prefix->error_with_value(problem);
    }
  }
  section.read("path_style", out.path_style);
  if (!out.path_style && !out.endpoint.empty() && is_address(out.endpoint))
    section.find("path_style")
        ->error("is false while endpoint is an IP address, which has no names below it, allowed: true");
  read_credentials(section, out);
  read_sse(section, out);
  section.read_time_ms("timeout", out.timeout_ms, 1000);
  section.read_integer("retries", out.retries, 0, 100);
  section.read("probe", out.probe);
  return out;
}

}  // namespace bellhop::config
