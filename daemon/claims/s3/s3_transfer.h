// One attempt at one S3 request: an easy handle with everything set, the signature included (libcurl's own
// Signature Version 4), and the answer as it comes. Only the store's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/claims/s3/curl_loop.h"
#include "daemon/claims/s3/s3_answer.h"
#include "daemon/claims/s3/s3_credentials.h"
#include "proto/bytes.h"

namespace bellhop {

// What a request sends. It must be able to give any piece again, because an attempt may fail at any byte.
class S3Body {
 public:
  virtual ~S3Body() = default;
  virtual uint64_t size_bytes() const = 0;
  // Copies at most `count` bytes from `offset` on, and at least one. Precondition: offset < size_bytes(). An
  // error ends the attempt for good.
  virtual Result<size_t> read(uint64_t offset, uint8_t* into, size_t count) = 0;
};

// A body in memory.
class TextBody : public S3Body {
 public:
  explicit TextBody(std::string text) : text_(std::move(text)) {}
  uint64_t size_bytes() const override { return text_.size(); }
  Result<size_t> read(uint64_t offset, uint8_t* into, size_t count) override;

 private:
  const std::string text_;
};

struct S3Request {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers;  // "name: value", signed as well
  std::shared_ptr<S3Body> body;      // null: none
  std::string sha256;                // of the body; empty: UNSIGNED-PAYLOAD over https
  // Takes a 2xx answer's bytes as they come; false ends the attempt. Without it the bytes are collected.
  std::function<bool(const S3Answer& head, Bytes piece)> sink;
  size_t answer_bytes_max = size_t{64} << 10;  // of what is collected: a longer answer is ended
  uint32_t within_ms = 0;                      // for all of it; 0: as long as something moves
  bool is_direct = false;                      // through no proxy
};

// What all requests of a store have in common.
struct S3Settings {
  std::string region;
  std::string ca_bundle;  // empty: libcurl's own
  uint32_t timeout_ms = 30000;
};

class S3Transfer : public CurlTransfer {
 public:
  // Begins. The loop calls `done` once; what it is called on may be destroyed in it. With null `credentials`
  // the request is not signed.
  S3Transfer(CurlLoop& loop, const S3Settings& settings, const S3Credentials* credentials,
             const S3Request& request, std::function<void(S3Answer)> done);
  // Ends the attempt if it still runs.
  ~S3Transfer() override;
  S3Transfer(const S3Transfer&) = delete;
  S3Transfer& operator=(const S3Transfer&) = delete;

  CURL* easy() const override { return easy_; }
  void ended(CURLcode code) override;

  bool has_sent_all() const { return answer_.sent_all; }
  // Whether it stands still: nothing moved for the store's timeout although the other side could have; or the
  // answer's body takes longer than that; or a payload moves too slowly. An attempt may take the timeout and
  // one second for each KiB moved.
  bool is_stalled() const;
  void end_as_stalled();

 private:
  static size_t on_read(char* into, size_t size, size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);
  static size_t on_write(char* from, size_t size, size_t count, void* self);
  static size_t on_header(char* from, size_t size, size_t count, void* self);
  void set_up(const S3Settings& settings, const S3Credentials* credentials);
  void sign(const S3Settings& settings, const S3Credentials& credentials, std::vector<std::string>& headers);

  CurlLoop& loop_;
  const S3Request& request_;  // the call's, which outlives its attempts
  std::function<void(S3Answer)> done_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  char error_[CURL_ERROR_SIZE] = {};
  S3Answer answer_;
  uint64_t sent_bytes_ = 0, received_bytes_ = 0;
  uint64_t moved_at_ms_;
  const uint64_t began_at_ms_;
  uint64_t body_began_at_ms_ = 0;  // answer_.body
  size_t header_bytes_ = 0;
  const uint32_t timeout_ms_;
  bool running_ = true;
};

}  // namespace bellhop
