// The keys that a store issues: lower-case dashed UUID v4 (wire-contract section 2).
#pragma once

#include <mutex>
#include <string>

#include "proto/uuid.h"

namespace bellhop {

class KeySource {
 public:
  KeySource();
  std::string next();  // any thread

 private:
  std::mutex mutex_;
  proto::UuidGenerator generator_;
};

}  // namespace bellhop
