// Makes the keys that a store issues: lower-case dashed UUIDs v4 (proto/README.md, "Keys").
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
