#include "daemon/claims/s3/s3_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <optional>
#include <string_view>

#include "proto/xml_scan.h"

namespace bellhop {

namespace {

constexpr size_t message_bytes_max = 300;
// A service may ask for more; a publisher would wait for it.
constexpr uint64_t retry_after_max_ms = 60000;

// What libcurl cannot do now it cannot do a second later either.
bool is_lasting(CURLcode code) {
  constexpr std::array lasting = {CURLE_UNSUPPORTED_PROTOCOL,
                                  CURLE_URL_MALFORMAT,
                                  CURLE_NOT_BUILT_IN,
                                  CURLE_PEER_FAILED_VERIFICATION,
                                  CURLE_SSL_CACERT_BADFILE,
                                  CURLE_SSL_CERTPROBLEM,
                                  CURLE_BAD_FUNCTION_ARGUMENT,
                                  CURLE_ABORTED_BY_CALLBACK,
                                  CURLE_SSL_PINNEDPUBKEYNOTMATCH,
                                  CURLE_WRITE_ERROR};
  return std::find(lasting.begin(), lasting.end(), code) != lasting.end();
}

const char* hint(const std::string& code) {
  if (code == "RequestTimeTooSkewed") return " (this host's clock and the service's do not agree)";
  if (code == "SignatureDoesNotMatch") return " (the secret key or the region is not the service's)";
  if (code == "NoSuchBucket") return " (the bucket does not exist there)";
  return "";
}

}  // namespace

std::optional<std::time_t> http_date(const std::string& text) {
  std::tm parts{};
  if (strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S", &parts) == nullptr) return {};
  return timegm(&parts);
}

std::string shown(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (text.size() > message_bytes_max) text = text.substr(0, message_bytes_max) + "...";
  return text;
}

bool can_be_header(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

std::string s3_code(const S3Answer& answer) {
  return answer.ok() ? std::string() : shown(proto::xml_text(answer.body, "Code").value_or(""));
}

uint64_t retry_after_ms(const S3Answer& answer) {
  const std::string& text = answer.retry_after;
  uint64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (end != text.data() && end == text.data() + text.size())
    return error == std::errc{} && seconds < retry_after_max_ms / 1000 ? seconds * 1000 : retry_after_max_ms;
  const auto until = http_date(text);
  if (!until) return 0;
  const std::time_t now = http_date(answer.date).value_or(std::time(nullptr));
  if (*until <= now) return 0;
  return std::min<uint64_t>(static_cast<uint64_t>(*until - now), retry_after_max_ms / 1000) * 1000;
}

S3Outcome outcome_of(const S3Answer& answer) {
  if (answer.ok()) return S3Outcome::ok;
  if (answer.stalled || answer.unsent || !answer.doubt.empty() || (answer.endless && answer.status < 300))
    return S3Outcome::transient;
  if (answer.code != CURLE_OK && answer.status < 300)
    return is_lasting(answer.code) ? S3Outcome::denied : S3Outcome::transient;
  const std::string code = s3_code(answer);
  if (answer.status == 404 && code == "NoSuchKey") return S3Outcome::missing;
  constexpr std::array<std::string_view, 8> transient = {
      "SlowDown",      "RequestTimeout",     "Throttling",       "ThrottlingException",
      "InternalError", "ServiceUnavailable", "OperationAborted", "RequestLimitExceeded"};
  if (answer.status >= 500 || answer.status == 429 || answer.status == 408 ||
      std::find(transient.begin(), transient.end(), code) != transient.end())
    return S3Outcome::transient;
  return S3Outcome::denied;
}

std::string words_of(const S3Answer& answer) {
  std::string why;
  const std::string code = s3_code(answer);
  if (answer.stalled) {
    why = "nothing, or next to nothing, moved for the store's timeout";
  } else if (answer.unsent) {
    why = answer.transport_error;
  } else if (!answer.doubt.empty()) {
    why = fmt::format("{} {}", answer.status, shown(answer.doubt));
  } else if (answer.endless && answer.status < 300) {
    why = fmt::format("{} with an answer that does not end", answer.status);
  } else if (answer.status >= 300) {
    why = fmt::format("{}{}{}", answer.status, code.empty() ? "" : " ", code);
    if (const auto message = proto::xml_text(answer.body, "Message"); message && !message->empty())
      why += ": " + shown(*message);
    why += hint(code);
    // 301, 307 and AuthorizationHeaderMalformed name what would be right.
    for (const char* name : {"Region", "Endpoint"}) {
      if (const auto right = proto::xml_text(answer.body, name);
          right && !right->empty() && answer.status < 500)
        why += fmt::format(" (its {} is {})", name[0] == 'R' ? "region" : "endpoint", shown(*right));
    }
  } else {
    why = shown(answer.transport_error);
  }
  return why;
}

std::string describe(const S3Answer& answer, const std::string& bucket, const std::string& endpoint,
                     const std::string& method) {
  return fmt::format("bucket '{}' at {}: {}: {}", bucket, endpoint, method, words_of(answer));
}

}  // namespace bellhop
