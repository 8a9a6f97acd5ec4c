// What is wrong with a configuration file: collected while it is read, so that an operator sees all of it at
// once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bellhop::config {

// A place in the file, counted from 1.
struct Place {
  int line = 1, column = 1;
};

class Problems {
 public:
  void add(Place place, std::string key, std::string text);
  bool empty() const { return found_.empty(); }
  // `file:line:column: key: text`, in the file's order.
  std::vector<std::string> lines(const std::string& file) const;

 private:
  struct Problem {
    Place place;
    std::string key, text;
  };
  std::vector<Problem> found_;
};

// For a message: in single quotes, unprintable bytes escaped, long text shortened.
std::string quoted(std::string_view text);
// A key as it stands in a key path. What follows the first character that no key has is left out: in `{
// password:secret }`, a blank forgotten, the key is `password:secret`.
std::string shown_key(std::string_view key);
// "a, b, c"
std::string listed(const std::vector<std::string>& names);
// The candidate that `word` is most likely a slip of the pen for; empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace bellhop::config
