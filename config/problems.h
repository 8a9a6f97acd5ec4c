// Collects what is wrong with a configuration file, and what an operator should know about it, while it is
// read. So all of it is seen at once. What is collected and shown has a bound, whatever the file. Also which
// other files it needs.
#pragma once

#include <algorithm>
#include <optional>
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
  void add(Place place, std::string key, std::string text) {
    has_wrong_text_ = true;
    errors_.add({place, std::move(key), std::move(text)});
  }
  // A file that the configuration names is not there, or cannot be read: the text may be right.
  void add_outside(Place place, std::string key, std::string text) {
    errors_.add({place, std::move(key), std::move(text)});
  }
  // What is wrong with the text itself, beside what is missing outside.
  bool has_wrong_text() const { return has_wrong_text_; }
  void warn(Place place, std::string key, std::string text) {
    warnings_.add({place, std::move(key), std::move(text)});
  }
  bool empty() const { return errors_.found.empty(); }
  // `file:line:column: key: text`, in the file's order; the first hundred, and a line that counts the others.
  std::vector<std::string> lines(const std::string& file) const { return errors_.lines(file, "errors"); }
  std::vector<std::string> warning_lines(const std::string& file) const {
    return warnings_.lines(file, "warnings");
  }

  // Notes that a secret stands in the file itself, not in a variable or another file. Keeps the first one.
  void note_secret(Place place, const std::string& key) {
    if (!secret_) secret_ = {place, key, ""};
  }
  // Warns about the noted secret, if there is one.
  void warn_of_secret(const std::string& text) {
    if (secret_) warn(secret_->place, secret_->key, text);
  }

  // Another file was read for its content, or should have been.
  void note_file(const std::string& path) {
    if (files_.size() < files_max && std::find(files_.begin(), files_.end(), path) == files_.end())
      files_.push_back(path);
  }
  const std::vector<std::string>& files() const { return files_; }

 private:
  static constexpr size_t files_max = 100;
  struct Problem {
    Place place;
    std::string key, text;
  };
  struct List {
    std::vector<Problem> found;
    size_t dropped = 0;
    void add(Problem problem);
    std::vector<std::string> lines(const std::string& file, const char* what) const;
  };
  List errors_, warnings_;
  bool has_wrong_text_ = false;
  std::optional<Problem> secret_;
  std::vector<std::string> files_;
};

// For a message: in single quotes, with unprintable bytes escaped and a long text shortened.
std::string quoted(std::string_view text);
// A key as a key path shows it. It leaves out everything from the first character that no key has: in `{
// password:secret }`, where a blank was forgotten, the key is `password:secret`.
std::string shown_key(std::string_view key);
// "a, b, c"; of many names only the first ones, and how many more there are.
std::string listed(const std::vector<std::string>& names);
// The candidate that somebody most likely meant by `word`; empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace bellhop::config
