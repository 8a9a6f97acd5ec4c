// Requests to the services that give credentials: small, unsigned, and over in a few seconds. They run on the
// store's own loop, so no thread waits for them.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "daemon/claims/s3/s3_transfer.h"

namespace bellhop {

struct PlainRequest {
  std::string method = "GET", url;
  std::vector<std::string> headers;  // "name: value"
  std::string body;
  uint32_t within_ms = 5000;  // all of it, connecting too
  bool is_direct = false;     // not through a proxy: what is on this host or its link
};

class PlainRequests {
 public:
  PlainRequests(CurlLoop& loop, std::string ca_bundle);
  // Ends what runs without calling `done`.
  ~PlainRequests();
  PlainRequests(const PlainRequests&) = delete;
  PlainRequests& operator=(const PlainRequests&) = delete;

  // The loop's thread. The loop calls `done` later.
  void start(PlainRequest request, std::function<void(const S3Answer& answer)> done);

 private:
  struct Running;
  CurlLoop& loop_;
  S3Settings settings_;
  std::set<std::shared_ptr<Running>> running_;
};

}  // namespace bellhop
