// The keys under which a store makes or removes an object right now. A process that must end while its store
// stands still names them: there an operator may find objects without a message.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace bellhop {

// Any thread.
class KeysUnderWay {
 public:
  std::vector<std::string> all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {keys_.begin(), keys_.end()};
  }

 private:
  friend class KeyUnderWay;
  mutable std::mutex mutex_;
  std::multiset<std::string> keys_;
};

// Its key is under way as long as this lives. `keys` outlives it.
class KeyUnderWay {
 public:
  KeyUnderWay(KeysUnderWay& keys, std::string key) : keys_(keys), key_(std::move(key)) {
    const std::lock_guard<std::mutex> lock(keys_.mutex_);
    keys_.keys_.insert(key_);
  }
  ~KeyUnderWay() {
    const std::lock_guard<std::mutex> lock(keys_.mutex_);
    keys_.keys_.erase(keys_.keys_.find(key_));
  }
  KeyUnderWay(const KeyUnderWay&) = delete;
  KeyUnderWay& operator=(const KeyUnderWay&) = delete;

 private:
  KeysUnderWay& keys_;
  const std::string key_;
};

}  // namespace bellhop
