// Cuts a large object into the parts of a multipart upload: 16 MiB each, or more where a service's limit of
// 10,000 parts asks for it. The last part may be smaller.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bellhop {

// Larger payloads go in parts.
inline constexpr uint64_t single_put_bytes_max = uint64_t{64} << 20;
// So many parts of one upload are sent at one time.
inline constexpr size_t parallel_parts_max = 4;

struct PartPlan {
  uint64_t payload_bytes = 0;
  uint64_t part_bytes = 0;
  size_t count = 0;

  uint64_t offset_of(size_t part) const { return part * part_bytes; }
  uint64_t end_of(size_t part) const {
    return part + 1 == count ? payload_bytes : offset_of(part) + part_bytes;
  }
};

PartPlan plan_parts(uint64_t payload_bytes);

// The body of CompleteMultipartUpload. `etags`: the parts' ETags as the service gave them, from part 1 on.
std::string complete_multipart_body(const std::vector<std::string>& etags);

}  // namespace bellhop
