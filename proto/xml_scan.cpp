#include "proto/xml_scan.h"

#include <charconv>
#include <cstdint>

namespace bellhop::proto {

namespace {

constexpr std::string_view blanks = " \t\r\n";

struct Tag {
  size_t begin = 0, end = 0;  // of `<` and behind `>`
  bool closes = false, empty = false;
  std::string_view local_name;
};

// The next tag from `at` on. Comments, declarations and instructions are passed by.
std::optional<Tag> next_tag(std::string_view xml, size_t at) {
  while (true) {
    Tag tag;
    tag.begin = xml.find('<', at);
    if (tag.begin == std::string_view::npos) return {};
    if (xml.substr(tag.begin).starts_with("<!--")) {
      const size_t end = xml.find("-->", tag.begin + 4);
      if (end == std::string_view::npos) return {};
      at = end + 3;
      continue;
    }
    const size_t close = xml.find('>', tag.begin);
    if (close == std::string_view::npos) return {};
    tag.end = close + 1;
    at = tag.end;
    std::string_view inner = xml.substr(tag.begin + 1, close - tag.begin - 1);
    if (inner.starts_with('?') || inner.starts_with('!')) continue;
    tag.closes = inner.starts_with('/');
    if (tag.closes) inner.remove_prefix(1);
    tag.empty = inner.ends_with('/');
    if (tag.empty) inner.remove_suffix(1);
    tag.local_name = inner.substr(0, inner.find_first_of(blanks));
    if (const size_t colon = tag.local_name.find(':'); colon != std::string_view::npos)
      tag.local_name.remove_prefix(colon + 1);
    return tag;
  }
}

void put_utf8(std::string& out, uint32_t point) {
  if (point == 0 || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return;
  if (point < 0x80) {
    out += static_cast<char>(point);
    return;
  }
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  constexpr unsigned char heads[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(heads[more] | (point >> (6 * more)));
  for (int at = more - 1; at >= 0; --at) out += static_cast<char>(0x80 | ((point >> (6 * at)) & 0x3f));
}

// `entity` is what stands between & and ;. False: none that is known.
bool put_entity(std::string& out, std::string_view entity) {
  if (entity.starts_with('#')) {
    const bool hex = entity.starts_with("#x");
    entity.remove_prefix(hex ? 2 : 1);
    uint32_t point = 0;
    const auto [end, error] =
        std::from_chars(entity.data(), entity.data() + entity.size(), point, hex ? 16 : 10);
    if (error != std::errc{} || end != entity.data() + entity.size()) return false;
    put_utf8(out, point);
    return true;
  }
  constexpr std::pair<std::string_view, char> named[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [name, character] : named) {
    if (entity != name) continue;
    out += character;
    return true;
  }
  return false;
}

std::string decode(std::string_view text) {
  constexpr size_t entity_bytes_max = 10;
  std::string out;
  while (!text.empty()) {
    const size_t at = text.find('&');
    out += text.substr(0, at);
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
    // No farther than an entity reaches: many '&' without an end would cost the square of their number.
    const size_t end = text.substr(0, entity_bytes_max + 1).find(';');
    if (end <= entity_bytes_max && put_entity(out, text.substr(0, end))) {
      text.remove_prefix(end + 1);
    } else {
      out += '&';
    }
  }
  return out;
}

}  // namespace

std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name) {
  std::vector<std::string_view> found;
  constexpr size_t outside = std::string_view::npos;
  size_t inside = outside;
  size_t at = 0;
  while (const auto tag = next_tag(xml, at)) {
    at = tag->end;
    if (tag->local_name != name) continue;
    if (tag->closes) {
      if (inside != outside) found.push_back(xml.substr(inside, tag->begin - inside));
      inside = outside;
    } else if (tag->empty) {
      if (inside == outside) found.emplace_back();
    } else if (inside == outside) {
      inside = tag->end;
    }
  }
  return found;
}

std::optional<std::string> xml_text(std::string_view xml, std::string_view name) {
  const std::vector<std::string_view> found = xml_elements(xml, name);
  if (found.empty()) return {};
  std::string_view text = found.front();
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return std::string();
  text = text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
  return decode(text);
}

}  // namespace bellhop::proto
