#include "daemon/claims/s3/s3_parts.h"

#include <algorithm>

namespace bellhop {

namespace {

constexpr uint64_t mib = uint64_t{1} << 20;
constexpr uint64_t part_bytes_min = 16 * mib, parts_max = 10000;

std::string xml_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

}  // namespace

PartPlan plan_parts(uint64_t payload_bytes) {
  const uint64_t least = payload_bytes / parts_max + (payload_bytes % parts_max != 0 ? 1 : 0);
  const uint64_t part_bytes = std::max(part_bytes_min, (least + mib - 1) / mib * mib);
  const uint64_t whole = payload_bytes / part_bytes;
  const bool has_rest = payload_bytes % part_bytes != 0;
  return {payload_bytes, part_bytes, static_cast<size_t>(std::max<uint64_t>(whole + (has_rest ? 1 : 0), 1))};
}

std::string complete_multipart_body(const std::vector<std::string>& etags) {
  std::string out = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t part = 0; part < etags.size(); ++part) {
    out += "<Part><PartNumber>" + std::to_string(part + 1) + "</PartNumber><ETag>" +
           xml_escaped(etags[part]) + "</ETag></Part>";
  }
  return out + "</CompleteMultipartUpload>";
}

}  // namespace bellhop
