// SessionHost: what the parts of a session ask of whoever runs them: time, and the end of the connection.
#pragma once

#include <cstdint>
#include <string>

namespace bellhop {

class SessionHost {
 public:
  // Milliseconds, of the session's loop.
  virtual uint64_t now_ms() const = 0;
  // The next tick is to come no later than this.
  virtual void wake_within(uint64_t ms) = 0;
  // Closes the connection by bellhop's own decision. Frames already relayed stay relayed. `method`: what the
  // client sent, 0 for none.
  virtual void close_connection(uint16_t code, const std::string& text, uint32_t method) = 0;
  void close_connection(uint16_t code, const std::string& text) { close_connection(code, text, 0); }

 protected:
  ~SessionHost() = default;
};

}  // namespace bellhop
