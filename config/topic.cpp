#include "config/topic.h"

namespace bellhop::config {

namespace {

// A key's words from the front, without splitting it beforehand.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text), more_(!text.empty()) {}
  bool more() const { return more_; }
  std::string_view front() const { return rest_.substr(0, rest_.find('.')); }
  void drop_front() {
    const size_t dot = rest_.find('.');
    more_ = dot != std::string_view::npos;
    rest_.remove_prefix(more_ ? dot + 1 : rest_.size());
  }

 private:
  std::string_view rest_;
  bool more_;
};

}  // namespace

std::vector<std::string> topic_words(std::string_view pattern) {
  std::vector<std::string> out;
  for (Words words(pattern); words.more(); words.drop_front()) out.emplace_back(words.front());
  return out;
}

bool topic_matches(const std::vector<std::string>& pattern_words, std::string_view routing_key) {
  // Each `#` first stands for no word. On a mismatch the last one takes a word more, and matching goes on
  // behind it; an earlier one never has to, because whatever it could take the last one can take too.
  Words key(routing_key);
  size_t at = 0;
  Words key_behind_hash("");
  size_t at_behind_hash = 0;  // 0: no `#` seen yet
  while (true) {
    if (at < pattern_words.size() && pattern_words[at] == "#") {
      at_behind_hash = ++at;
      key_behind_hash = key;
      continue;
    }
    if (!key.more()) return at == pattern_words.size();
    if (at < pattern_words.size() && (pattern_words[at] == "*" || pattern_words[at] == key.front())) {
      ++at;
      key.drop_front();
      continue;
    }
    if (at_behind_hash == 0) return false;
    key_behind_hash.drop_front();
    key = key_behind_hash;
    at = at_behind_hash;
  }
}

}  // namespace bellhop::config
