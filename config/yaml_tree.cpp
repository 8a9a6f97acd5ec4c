#include "config/yaml_tree.h"

#include <yaml-cpp/yaml.h>

namespace bellhop::config {

namespace {

// Aliases are copied, so a small file could otherwise grow without bound or without end.
constexpr int depth_max = 32;
constexpr size_t nodes_max = 100000;

constexpr const char* yaml_key = "yaml";

Place place_of(const YAML::Mark& mark) {
  if (mark.line < 0 || mark.column < 0) return {};
  return {mark.line + 1, mark.column + 1};
}

class Copier {
 public:
  explicit Copier(Problems& problems) : problems_(problems) {}

  bool copy(const YAML::Node& from, YamlNode& to, int depth) {
    to.place = place_of(from.Mark());
    if (depth > depth_max || ++nodes_ > nodes_max) {
      return refuse(to.place, "nested too deep or too large, allowed: " + std::to_string(depth_max) +
                                  " levels and " + std::to_string(nodes_max) +
                                  " values, aliases counted as what they stand for");
    }
    switch (from.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        to.kind = YamlNode::Kind::null;
        return true;
      case YAML::NodeType::Scalar:
        to.kind = YamlNode::Kind::scalar;
        to.text = from.Scalar();
        return true;
      case YAML::NodeType::Sequence:
        to.kind = YamlNode::Kind::sequence;
        for (const auto& item : from) {
          to.items.emplace_back();
          if (!copy(item, to.items.back(), depth + 1)) return false;
        }
        return true;
      case YAML::NodeType::Map:
        to.kind = YamlNode::Kind::mapping;
        for (const auto& entry : from) {
          const Place place = place_of(entry.first.Mark());
          if (!entry.first.IsScalar())
            return refuse(place, "a key that is no text, allowed: plain or quoted text");
          to.entries.push_back({entry.first.Scalar(), place, {}});
          if (!copy(entry.second, to.entries.back().value, depth + 1)) return false;
        }
        return true;
    }
    return true;
  }

 private:
  bool refuse(Place place, std::string text) {
    problems_.add(place, yaml_key, std::move(text));
    return false;
  }

  Problems& problems_;
  size_t nodes_ = 0;
};

}  // namespace

bool parse_yaml(std::string_view text, YamlNode& root, Problems& problems) {
  try {
    // A document's end marker: without it yaml-cpp takes a quote that is never closed for one that ends with
    // the file, and everything in between for text.
    const std::string terminated = std::string(text) + (text.ends_with('\n') ? "...\n" : "\n...\n");
    const std::vector<YAML::Node> documents = YAML::LoadAll(terminated);
    if (documents.size() > 1) {
      problems.add(place_of(documents[1].Mark()), yaml_key, "a second document, allowed: one");
      return false;
    }
    if (documents.empty() || documents.front().IsNull()) {
      root = YamlNode{};
      root.kind = YamlNode::Kind::mapping;
      return true;
    }
    return Copier(problems).copy(documents.front(), root, 0);
  } catch (const YAML::Exception& exception) {
    // What follows a colon is text of the file (`password: *secret` is an alias to yaml-cpp), so it is left
    // out.
    std::string reason = exception.msg.substr(0, exception.msg.find(':'));
    if (reason == "illegal document indicator in scalar") reason = "a quote is not closed";
    problems.add(
        place_of(exception.mark), yaml_key,
        "not valid YAML (" + reason + "), allowed: YAML 1.2; text with special characters needs quotes");
    return false;
  } catch (const std::exception&) {
    problems.add({}, yaml_key, "not valid YAML, allowed: YAML 1.2");
    return false;
  }
}

}  // namespace bellhop::config
