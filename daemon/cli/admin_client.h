// AdminClient: how the command line asks the bellhop that runs: one HTTP request over its admin socket, by
// libcurl, with a deadline of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "proto/result.h"

namespace bellhop {

class AdminClient {
 public:
  struct Answer {
    long status = 0;
    std::string body;
  };

  explicit AdminClient(std::string socket) : socket_(std::move(socket)) {}

  // An error says what is in the way and what to do: nobody is there, no permission, no answer in time.
  Result<Answer> get(const std::string& path, uint64_t within_ms) const {
    return ask(path, nullptr, within_ms);
  }
  // A GET whose answer goes on: `on_bytes` gets it as it comes, and ends it by returning false. Of any other
  // status than 200 the answer has the body. An error: as above, or that the answer broke off.
  using OnBytes = std::function<bool(std::string_view bytes)>;
  Result<Answer> follow(const std::string& path, const OnBytes& on_bytes) const;
  Result<Answer> post(const std::string& path, const std::string& body, uint64_t within_ms) const {
    return ask(path, &body, within_ms);
  }

 private:
  Result<Answer> ask(const std::string& path, const std::string* body, uint64_t within_ms) const;
  std::string what_is_in_the_way(int error) const;

  const std::string socket_;
};

}  // namespace bellhop
