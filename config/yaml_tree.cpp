#include "config/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <sstream>

#include "proto/utf8.h"

namespace bellhop::config {

namespace {

// Aliases are copied, so a small file could otherwise grow without bound or without end.
constexpr size_t depth_max = 32;
constexpr size_t nodes_max = 100000;

constexpr const char* yaml_key = "yaml";
constexpr const char* yaml_allowed = ", allowed: YAML 1.2; text with special characters needs quotes";

// Thrown through yaml-cpp's parser when the rest of the file need not be read; the problem is added.
struct Refused {};

Place place_of(const YAML::Mark& mark) {
  if (mark.line < 0 || mark.column < 0) return {};
  return {mark.line + 1, mark.column + 1};
}

// Builds the tree while yaml-cpp parses. (Its own tree takes long and much memory, and is there as a whole
// before anything can be refused.)
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(YamlNode& root, Problems& problems) : root_(root), problems_(problems) {}

  void OnDocumentStart(const YAML::Mark&) override { ++documents_; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (awaits_key()) refuse_key(mark);
    YamlNode& node = place(mark);
    node.kind = YamlNode::Kind::null;
    keep(anchor, node);
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& text) override {
    if (awaits_key()) {
      put_key(place_of(mark), text);
      if (anchor != 0) anchored_[anchor] = scalar(place_of(mark), text);
      return;
    }
    YamlNode& node = place(mark);
    node.kind = YamlNode::Kind::scalar;
    node.text = text;
    keep(anchor, node);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    // Within what it stands for, it is not there yet, and would be endless.
    if (found == anchored_.end()) refuse(place_of(mark), too_large());
    if (awaits_key()) {
      if (found->second.kind != YamlNode::Kind::scalar) refuse_key(mark);
      return put_key(place_of(mark), found->second.text);
    }
    YamlNode& node = place(mark);
    count(found->second, open_.size());
    node = found->second;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlNode::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, anchor, YamlNode::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  // A sequence or mapping whose end has not come. Nothing is added to what holds it meanwhile, so it stays
  // where it is.
  struct Open {
    YamlNode* node;
    YAML::anchor_t anchor;
    bool awaits_key;
  };

  static YamlNode scalar(Place place, const std::string& text) {
    YamlNode node;
    node.kind = YamlNode::Kind::scalar;
    node.place = place;
    node.text = text;
    return node;
  }
  static std::string too_large() {
    return "nested too deep or too large, allowed: " + std::to_string(depth_max) + " levels and " +
           std::to_string(nodes_max) + " values, aliases counted as what they stand for";
  }
  [[noreturn]] void refuse(Place place, std::string text) {
    problems_.add(place, yaml_key, std::move(text));
    throw Refused{};
  }
  [[noreturn]] void refuse_key(const YAML::Mark& mark) {
    refuse(place_of(mark), "a key that is no text, allowed: plain or quoted text");
  }

  bool awaits_key() const { return !open_.empty() && open_.back().awaits_key; }
  void put_key(Place place, const std::string& text) {
    open_.back().node->entries.push_back({text, place, {}});
    open_.back().awaits_key = false;
  }
  // Where the next value goes.
  YamlNode& place(const YAML::Mark& mark) {
    if (documents_ > 1) refuse(place_of(mark), "a second document, allowed: one");
    if (open_.size() > depth_max || ++nodes_ > nodes_max) refuse(place_of(mark), too_large());
    YamlNode* node = &root_;
    if (!open_.empty() && open_.back().node->kind == YamlNode::Kind::sequence) {
      node = &open_.back().node->items.emplace_back();
    } else if (!open_.empty()) {
      node = &open_.back().node->entries.back().value;
      open_.back().awaits_key = true;
    }
    node->place = place_of(mark);
    return *node;
  }
  void open(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    if (awaits_key()) refuse_key(mark);
    YamlNode& node = place(mark);
    node.kind = kind;
    open_.push_back({&node, anchor, kind == YamlNode::Kind::mapping});
  }
  void close() {
    const Open done = open_.back();
    open_.pop_back();
    keep(done.anchor, *done.node);
  }
  // What has an anchor is copied, which counts as well.
  void keep(YAML::anchor_t anchor, const YamlNode& node) {
    if (anchor == 0) return;
    count(node, 0);
    anchored_[anchor] = node;
  }
  void count(const YamlNode& node, size_t depth) {
    if (depth > depth_max || ++nodes_ > nodes_max) refuse(node.place, too_large());
    for (const YamlNode& item : node.items) count(item, depth + 1);
    for (const YamlEntry& entry : node.entries) count(entry.value, depth + 1);
  }

  YamlNode& root_;
  Problems& problems_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchored_;
  size_t nodes_ = 0;
  size_t documents_ = 0;
};

// False, and the problem added: a byte that no YAML file has.
bool is_text(std::string_view text, Problems& problems) {
  Place place;
  for (size_t at = 0; at < text.size();) {
    const size_t length = proto::utf8_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool is_control = byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
    if (length == 0 || is_control) {
      static constexpr char digits[] = "0123456789abcdef";
      problems.add(place, yaml_key,
                   std::string("the byte 0x") + digits[byte >> 4] + digits[byte & 15] +
                       (is_control ? ", a control character" : ", which is no UTF-8") +
                       ", allowed: text in UTF-8");
      return false;
    }
    place.column++;
    if (byte == '\n') place = {place.line + 1, 1};
    at += length;
  }
  return true;
}

// The line with that number, counted from 0.
std::string_view line_of(std::string_view text, int number) {
  for (; number > 0; --number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

bool is_indented_by_tab(std::string_view line) {
  return line.substr(0, line.find_first_not_of(" \t")).find('\t') != std::string_view::npos;
}

// Whether what stopped the parser is the brace of a `${`. yaml-cpp counts columns in bytes, from 0.
bool is_expansion(std::string_view line, int column) {
  return column > 0 && static_cast<size_t>(column) < line.size() &&
         line.substr(static_cast<size_t>(column) - 1).starts_with("${");
}

// What follows a colon in yaml-cpp's words is text of the file (`password: *secret` is an alias to it), so it
// is left out.
std::string explained(const YAML::Exception& exception, std::string_view text) {
  const YAML::Mark& mark = exception.mark;
  if (is_indented_by_tab(line_of(text, mark.line)) ||
      (mark.line > 0 && is_indented_by_tab(line_of(text, mark.line - 1))))
    return "not valid YAML (a line begins with a tab), allowed: blanks in front of a key, as many as before "
           "its neighbours";
  if (is_expansion(line_of(text, mark.line), mark.column))
    return "not valid YAML (${ inside of braces or brackets, without quotes), allowed: \"${NAME}\" with "
           "double "
           "quotes around the whole value";
  std::string reason = exception.msg.substr(0, exception.msg.find(':'));
  if (reason == "illegal document indicator in scalar") reason = "a quote is not closed";
  if (reason == "bad file") reason = "it is nested too deep, or its end is missing";
  return "not valid YAML (" + reason + ")" + yaml_allowed;
}

}  // namespace

bool parse_yaml(std::string_view text, YamlNode& root, Problems& problems) {
  if (!is_text(text, problems)) return false;
  root = YamlNode{};
  try {
    // A document's end marker: without it yaml-cpp takes a quote that is never closed for one that ends with
    // the file, and everything in between for text.
    std::istringstream terminated(std::string(text) + (text.ends_with('\n') ? "...\n" : "\n...\n"));
    YAML::Parser parser(terminated);
    Builder builder(root, problems);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused&) {
    return false;
  } catch (const YAML::Exception& exception) {
    problems.add(place_of(exception.mark), yaml_key, explained(exception, text));
    return false;
  } catch (const std::exception&) {
    problems.add({}, yaml_key, "not valid YAML, allowed: YAML 1.2");
    return false;
  }
  if (root.kind == YamlNode::Kind::null) root.kind = YamlNode::Kind::mapping;
  return true;
}

}  // namespace bellhop::config
