// How `bellhop check` lays out what it says.
#pragma once

#include <ostream>
#include <string>

namespace bellhop {

// Puts a section's name in front of its first line and indents the others to it.
class Report {
 public:
  explicit Report(std::ostream& out) : out_(out) {}
  void section(const std::string& name) { name_ = name; }
  void line(const std::string& text) {
    constexpr size_t indent = 14;
    out_ << name_ << std::string(indent > name_.size() ? indent - name_.size() : 1, ' ') << text << '\n';
    name_.clear();
  }

 private:
  std::ostream& out_;
  std::string name_;
};

}  // namespace bellhop
