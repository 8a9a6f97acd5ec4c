#include "daemon/cli/tap.h"

#include <unistd.h>

#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "daemon/ops/log.h"

namespace bellhop {

namespace {

// Whole lines are written at once, so nothing is left to do.
void end_at_once(int) {
  _exit(0);
}

std::string encoded(const std::string& text) {
  static constexpr const char* digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z')) {
      out += c;
    } else {
      out += {'%', digits[byte >> 4U], digits[byte & 15U]};
    }
  }
  return out;
}

bool is_missed(const std::string& line) {
  return line.starts_with("{\"missed\":");
}

}  // namespace

std::string tap_text(const std::string& line) {
  const auto parsed = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!parsed.is_object()) return line;
  if (parsed.contains("missed")) return "\u2026 " + parsed["missed"].dump() + " lines missed";
  std::string begin;
  LogFields fields;
  for (const auto& [name, value] : parsed.items()) {
    if (name == "time" || name == "direction") {
      begin += (begin.empty() ? "" : " ") + (value.is_string() ? value.get<std::string>() : value.dump());
    } else if (value.is_string()) {
      fields.add({name, value.get<std::string>()});
    } else if (value.is_number_unsigned()) {
      fields.add({name, value.get<uint64_t>()});
    }
  }
  return begin + " " + fields_as_text(fields);
}

int tap(const AdminClient& client, const TapOptions& options, std::ostream& out, std::ostream& err) {
  std::signal(SIGINT, end_at_once);
  std::string pending;
  uint64_t lines = 0;
  bool is_done = false;
  const auto on_bytes = [&](std::string_view bytes) {
    pending += bytes;
    std::string shown;
    for (size_t end = pending.find('\n'); end != std::string::npos && !is_done; end = pending.find('\n')) {
      const std::string line = pending.substr(0, end);
      pending.erase(0, end + 1);
      if (line.empty()) continue;
      shown += (options.as_json ? line : tap_text(line)) + "\n";
      if (!is_missed(line)) is_done = ++lines == options.lines_max;
    }
    out << shown;
    out.flush();
    return !is_done && out.good();
  };
  const std::string path = "/tap" + (options.route.empty() ? "" : "?route=" + encoded(options.route));
  const auto answer = client.follow(path, on_bytes);
  if (!answer) {
    err << "bellhop: " << answer.error() << '\n';
    return 1;
  }
  if (answer.value().status != 200) {
    err << "bellhop: " << answer.value().body;
    return 1;
  }
  if (is_done) return 0;
  if (!out.good()) return 1;
  err << "bellhop: bellhop has ended\n";
  return 0;
}

}  // namespace bellhop
