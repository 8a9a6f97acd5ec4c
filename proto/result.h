// Result<T>: what a fallible function returns. An Error is a sentence for a person: what happened, where,
// what is allowed.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace bellhop {

struct Error {
  std::string text;
};

// Holds a T or an Error. Precondition of value(): ok(); of error(): !ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const std::string& error() const {
    assert(!ok());
    return std::get_if<1>(&state_)->text;
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error.text)), ok_(false) {}

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const std::string& error() const { return error_; }

 private:
  std::string error_;
  bool ok_ = true;
};

}  // namespace bellhop
