#include "daemon/claims/s3/s3_transfer.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "daemon/claims/s3/s3_signature.h"

namespace bellhop {

namespace {

// Of all header fields of an answer and what comes before it (100 Continue): libcurl keeps them.
constexpr size_t header_bytes_max = size_t{128} << 10;
constexpr long piece_bytes = 128 * 1024;
constexpr long connect_timeout_max_ms = 10000;
constexpr const char* sha256_of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

bool is_header(std::string_view line, std::string_view name) {
  if (line.size() <= name.size() || line[name.size()] != ':') return false;
  return std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
    return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
  });
}

struct Field {
  std::string_view name;
  std::string S3Answer::*value;
};
constexpr Field fields[] = {{"etag", &S3Answer::etag},
                            {"content-range", &S3Answer::content_range},
                            {"content-type", &S3Answer::content_type},
                            {"content-encoding", &S3Answer::content_encoding},
                            {"x-amz-server-side-encryption", &S3Answer::encryption},
                            {"date", &S3Answer::date},
                            {"retry-after", &S3Answer::retry_after},
                            {"last-modified", &S3Answer::last_modified},
                            {"x-amz-expiration", &S3Answer::expiration}};

std::string value_of(std::string_view line) {
  line.remove_prefix(line.find(':') + 1);
  const size_t begin = line.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(line.substr(begin, line.find_last_not_of(" \t\r\n") - begin + 1));
}

}  // namespace

Result<size_t> TextBody::read(uint64_t offset, uint8_t* into, size_t count) {
  const size_t got = std::min<size_t>(count, text_.size() - offset);
  std::copy_n(text_.begin() + static_cast<std::ptrdiff_t>(offset), got, into);
  return got;
}

S3Transfer::S3Transfer(CurlLoop& loop, const S3Settings& settings, const S3Credentials* credentials,
                       const S3Request& request, std::function<void(S3Answer)> done)
    : loop_(loop),
      request_(request),
      done_(std::move(done)),
      easy_(loop.curl().easy_init()),
      moved_at_ms_(loop.now_ms()),
      began_at_ms_(moved_at_ms_),
      timeout_ms_(settings.timeout_ms) {
  set_up(settings, credentials);
  loop_.add(*this);
}

S3Transfer::~S3Transfer() {
  if (running_) loop_.remove(*this);
  loop_.curl().easy_cleanup(easy_);
  loop_.curl().slist_free_all(headers_);
}

void S3Transfer::sign(const S3Settings& settings, const S3Credentials& credentials,
                      std::vector<std::string>& headers) {
  const CurlLibrary& curl = loop_.curl();
  std::string sha256 = request_.sha256;
  if (sha256.empty())
    sha256 = request_.body && request_.url.starts_with("https://") ? "UNSIGNED-PAYLOAD" : sha256_of_nothing;
  headers.push_back("x-amz-content-sha256: " + sha256);
  if (!credentials.session_token.empty())
    headers.push_back("x-amz-security-token: " + credentials.session_token);
  if (request_.method == "PUT" || request_.method == "POST")
    headers.emplace_back("content-type: application/octet-stream");
  if (needs_own_signature(headers)) {
    for (std::string& line : sign_s3(
             credentials, {request_.method, request_.url, headers, sha256, s3_time_now(), settings.region}))
      headers.push_back(std::move(line));
    return;
  }
  curl.easy_setopt(easy_, CURLOPT_AWS_SIGV4, ("aws:amz:" + settings.region + ":s3").c_str());
  curl.easy_setopt(easy_, CURLOPT_USERNAME, credentials.access_key.c_str());
  curl.easy_setopt(easy_, CURLOPT_PASSWORD, credentials.secret_key.c_str());
}

void S3Transfer::set_up(const S3Settings& settings, const S3Credentials* credentials) {
  const CurlLibrary& curl = loop_.curl();
  const bool sends = request_.method == "PUT" || request_.method == "POST";
  std::vector<std::string> headers = request_.headers;
  if (credentials != nullptr) {
    sign(settings, *credentials, headers);
  } else {
    // What gives credentials is asked seldom and may have closed a kept connection; nothing tries it again at
    // once.
    curl.easy_setopt(easy_, CURLOPT_FRESH_CONNECT, 1L);
    curl.easy_setopt(easy_, CURLOPT_FORBID_REUSE, 1L);
  }
  for (const std::string& line : headers) headers_ = curl.slist_append(headers_, line.c_str());

  curl.easy_setopt(easy_, CURLOPT_URL, request_.url.c_str());
  curl.easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);
  curl.easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl.easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl.easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl.easy_setopt(easy_, CURLOPT_ERRORBUFFER, error_);
  curl.easy_setopt(easy_, CURLOPT_USERAGENT, "bellhop");
  curl.easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS,
                   std::min<long>(connect_timeout_max_ms, static_cast<long>(settings.timeout_ms)));
  curl.easy_setopt(easy_, CURLOPT_BUFFERSIZE, piece_bytes);
  curl.easy_setopt(easy_, CURLOPT_UPLOAD_BUFFERSIZE, piece_bytes);
  if (request_.within_ms != 0)
    curl.easy_setopt(easy_, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.within_ms));
  if (request_.is_direct) curl.easy_setopt(easy_, CURLOPT_PROXY, "");
  if (!settings.ca_bundle.empty()) curl.easy_setopt(easy_, CURLOPT_CAINFO, settings.ca_bundle.c_str());
  curl.easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &S3Transfer::on_write);
  curl.easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl.easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &S3Transfer::on_header);
  curl.easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  if (request_.method == "HEAD") {
    curl.easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  } else if (sends) {
    // As a POST of another name: libcurl then asks first (Expect) only above 1 MiB, where a refusal saves
    // more than the question's round trip costs.
    curl.easy_setopt(easy_, CURLOPT_POST, 1L);
    curl.easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
    curl.easy_setopt(easy_, CURLOPT_READFUNCTION, &S3Transfer::on_read);
    curl.easy_setopt(easy_, CURLOPT_READDATA, this);
    curl.easy_setopt(easy_, CURLOPT_SEEKFUNCTION, &S3Transfer::on_seek);
    curl.easy_setopt(easy_, CURLOPT_SEEKDATA, this);
    const uint64_t size = request_.body ? request_.body->size_bytes() : 0;
    curl.easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(size));
    answer_.sent_all = size == 0;
  } else {
    answer_.sent_all = true;
    if (request_.method != "GET") curl.easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  }
  curl.easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
}

void S3Transfer::ended(CURLcode code) {
  running_ = false;
  answer_.code = code;
  loop_.curl().easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &answer_.status);
  if (code != CURLE_OK)
    answer_.transport_error = error_[0] != '\0' ? error_ : loop_.curl().easy_strerror(code);
  const auto done = std::move(done_);
  done(std::move(answer_));
}

bool S3Transfer::is_stalled() const {
  if (!running_) return false;
  const uint64_t now = loop_.now_ms();
  if (now - moved_at_ms_ > timeout_ms_) return true;
  // To put a payload's parts together may take the service a while: a blank now and then shows that it is
  // there.
  if (answer_.sent_all && request_.method == "POST") return false;
  if (!answer_.body.empty()) return now - body_began_at_ms_ > timeout_ms_;
  if (answer_.sent_all && !request_.sink) return false;
  const uint64_t moved_kib = (sent_bytes_ + received_bytes_) / 1024;
  return now - began_at_ms_ > timeout_ms_ + moved_kib * 1000;
}

void S3Transfer::end_as_stalled() {
  loop_.remove(*this);
  answer_.stalled = true;
  ended(CURLE_OPERATION_TIMEDOUT);
}

size_t S3Transfer::on_read(char* into, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<S3Transfer*>(self);
  transfer.moved_at_ms_ = transfer.loop_.now_ms();
  if (!transfer.request_.body) return 0;
  const uint64_t whole = transfer.request_.body->size_bytes();
  if (transfer.sent_bytes_ >= whole) return 0;
  const auto got =
      transfer.request_.body->read(transfer.sent_bytes_, reinterpret_cast<uint8_t*>(into), size * count);
  if (!got || got.value() == 0) {
    const std::string why = got ? "the payload's scratch file is shorter than the payload" : got.error();
    std::strncpy(transfer.error_, why.c_str(), sizeof transfer.error_ - 1);
    return CURL_READFUNC_ABORT;
  }
  transfer.sent_bytes_ += got.value();
  transfer.answer_.sent_all = transfer.sent_bytes_ == whole;
  return got.value();
}

int S3Transfer::on_seek(void* self, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_FAIL;
  static_cast<S3Transfer*>(self)->sent_bytes_ = static_cast<uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

size_t S3Transfer::on_header(char* from, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<S3Transfer*>(self);
  const std::string_view line(from, size * count);
  S3Answer& answer = transfer.answer_;
  transfer.header_bytes_ += line.size();
  answer.endless = transfer.header_bytes_ > header_bytes_max;
  if (answer.endless) return 0;
  if (line.starts_with("HTTP/")) {  // of a 100 Continue too, before the answer itself
    // The answer's own comes once; the others, and fields, may come for ever.
    if (!line.substr(line.find(' ') + 1).starts_with('1')) transfer.moved_at_ms_ = transfer.loop_.now_ms();
    answer.content_bytes.reset();
    for (const Field& field : fields) (answer.*field.value).clear();
    return line.size();
  }
  for (const Field& field : fields) {
    if (is_header(line, field.name)) answer.*field.value = value_of(line);
  }
  if (is_header(line, "content-length")) {
    const std::string text = value_of(line);
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) answer.content_bytes = number;
  }
  return line.size();
}

size_t S3Transfer::on_write(char* from, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<S3Transfer*>(self);
  const size_t bytes = size * count;
  S3Answer& answer = transfer.answer_;
  transfer.moved_at_ms_ = transfer.loop_.now_ms();
  if (answer.status == 0)
    transfer.loop_.curl().easy_getinfo(transfer.easy_, CURLINFO_RESPONSE_CODE, &answer.status);
  if (transfer.request_.sink && answer.status >= 200 && answer.status < 300) {
    transfer.received_bytes_ += bytes;
    return transfer.request_.sink(answer, as_bytes({from, bytes})) ? bytes : 0;
  }
  if (answer.body.empty()) transfer.body_began_at_ms_ = transfer.loop_.now_ms();
  // No answer is longer: it would never end, and keep its request.
  const size_t kept = std::min(bytes, transfer.request_.answer_bytes_max - answer.body.size());
  answer.body.append(from, kept);
  answer.endless = kept < bytes;
  return kept;
}

}  // namespace bellhop
