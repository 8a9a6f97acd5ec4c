#include "config/problems.h"

#include <algorithm>
#include <tuple>

#include "proto/utf8.h"

namespace bellhop::config {

namespace {

constexpr size_t quoted_bytes_max = 80;
constexpr size_t kept_max = 1000;
constexpr size_t shown_max = 100;
constexpr size_t listed_max = 30;

bool is_alnum(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

void append_printable(std::string& out, char c, bool is_ascii) {
  static constexpr char digits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (is_ascii && byte >= 0x20 && byte != 0x7f) {
    out += c;
    return;
  }
  out += "\\x";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

// The edit distance with a swap of neighbours as one edit (optimal string alignment).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

void Problems::List::add(Problem problem) {
  if (found.size() < kept_max)
    found.push_back(std::move(problem));
  else
    ++dropped;
}

std::vector<std::string> Problems::List::lines(const std::string& file, const char* what) const {
  std::vector<Problem> sorted = found;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
  });
  std::vector<std::string> out;
  for (const Problem& problem : sorted) {
    if (out.size() == shown_max) {
      out.push_back(file + ": " + std::to_string(sorted.size() + dropped - shown_max) + " more " + what +
                    " are not shown");
      break;
    }
    out.push_back(file + ":" + std::to_string(problem.place.line) + ":" +
                  std::to_string(problem.place.column) + ": " + problem.key + ": " + problem.text);
  }
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "'";
  while (!text.empty()) {
    const size_t length = proto::utf8_length(text);
    if (out.size() + length > quoted_bytes_max + 1) return out + "...'";
    if (length > 1)
      out += text.substr(0, length);
    else
      append_printable(out, text.front(), length == 1);
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out + "'";
}

std::string shown_key(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (!is_alnum(c) && c != '_' && c != '-' && c != '.' && c != '/') return out + "...";
    if (out.size() == quoted_bytes_max) return out + "...";
    out += c;
  }
  return out;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == listed_max) return out + " and " + std::to_string(names.size() - i) + " more";
    if (i > 0) out += ", ";
    out += names[i];
  }
  return out;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > quoted_bytes_max) return "";
  std::string best;
  // A third of the word may be wrong, else a suggestion only misleads.
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t edits = distance(word, candidate);
    if (edits < best_distance) {
      best_distance = edits;
      best = candidate;
    }
  }
  return best;
}

}  // namespace bellhop::config
