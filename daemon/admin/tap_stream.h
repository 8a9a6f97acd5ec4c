// TapStream: a tap's lines as the body of an answer, a JSON object a line: {"time":…, "direction":…, …}, and
// {"missed":12} where lines were missed. An empty line now and then shows that somebody is there.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "daemon/admin/http_streams.h"
#include "daemon/ops/taps.h"

namespace bellhop {

class TapStream final : public HttpStream {
 public:
  explicit TapStream(std::unique_ptr<Taps::Tap> tap) : tap_(std::move(tap)) {}
  ~TapStream() override;
  TapStream(const TapStream&) = delete;
  TapStream& operator=(const TapStream&) = delete;
  size_t read(char* out, size_t bytes_max) override;

 private:
  using Clock = std::chrono::steady_clock;
  bool next_line();

  const std::unique_ptr<Taps::Tap> tap_;
  std::string rest_;          // of the line that is on its way
  uint64_t missed_ = 0;       // not told yet
  size_t before_missed_ = 0;  // so many lines at most stood before those
  Clock::time_point last_ = Clock::now();
};

}  // namespace bellhop
