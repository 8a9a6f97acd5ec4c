// What a look at an object tells of it, without reading its payload: for whoever asks where a payload is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace bellhop {

struct ObjectLook {
  // no_object: something else stands under its name. unavailable: the store could not say.
  enum class Kind { present, missing, no_object, unavailable };
  Kind kind = Kind::unavailable;
  std::string reason;  // of all but present
  uint64_t size_bytes = 0;
  std::optional<int64_t> written_at_s;  // epoch; by the clock of whoever keeps it
  std::string expires;                  // in the service's own words, when it says when it removes the object
};

}  // namespace bellhop
