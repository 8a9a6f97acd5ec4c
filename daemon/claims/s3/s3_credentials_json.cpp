#include "daemon/claims/s3/s3_credentials_json.h"

#include <fmt/format.h>

#include <map>

#include "daemon/claims/s3/iso_time.h"
#include "proto/json_members.h"

namespace bellhop {

namespace {

constexpr int depth_max = 8;

// The members that have a text, under their names in lower case (the container's and the instance's services
// write "Code" and "code").
std::map<std::string, std::string> texts(std::string_view json) {
  std::map<std::string, std::string> out;
  if (!proto::is_json(json, depth_max)) return out;
  constexpr std::string_view blanks = " \t\r\n";
  json.remove_prefix(json.find_first_not_of(blanks));
  json.remove_suffix(json.size() - json.find_last_not_of(blanks) - 1);
  if (!proto::is_json_object(json)) return out;
  for (const proto::JsonMember& member : proto::json_members(json)) {
    std::string name = proto::json_text(member.key).value_or("");
    for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (auto text = proto::json_text(member.value)) out[name] = std::move(*text);
  }
  return out;
}

std::string told(const std::map<std::string, std::string>& found) {
  std::string out;
  for (const char* name : {"code", "message"}) {
    const auto at = found.find(name);
    if (at != found.end() && !at->second.empty()) out += (out.empty() ? "" : ": ") + at->second;
  }
  return shown(out);
}

}  // namespace

Result<S3Credentials> read_json_credentials(std::string_view json) {
  auto found = texts(json);
  S3Credentials out{found["accesskeyid"], found["secretaccesskey"], found["token"]};
  if (out.access_key.empty() || out.secret_key.empty()) {
    const std::string why = told(found);
    return Error{"the answer has no AccessKeyId and SecretAccessKey" + (why.empty() ? "" : " (" + why + ")")};
  }
  if (!can_be_header(out.access_key) || !can_be_header(out.secret_key) || !can_be_header(out.session_token))
    return Error{"the answer's keys have characters that no key has"};
  if (const std::string& until = found["expiration"]; !until.empty()) {
    out.expires_at = parse_iso_time(until);
    if (!out.expires_at) return Error{"the answer's Expiration is no time: " + shown(until)};
  }
  return out;
}

std::string json_words(const S3Answer& answer) {
  if (answer.code != CURLE_OK && answer.status < 300) return words_of(answer);
  const std::string why = told(texts(answer.body));
  return fmt::format("{}{}{}", answer.status, why.empty() ? "" : " ", why);
}

}  // namespace bellhop
