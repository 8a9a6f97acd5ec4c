// BELLHOP_ASSERT(condition, "what must hold"): on in every build. When it does not hold, bellhop has lost its
// own books and must not go on with messages: the log gets the place and the text, and the process aborts.
//
// Only for what bellhop itself must have kept. What a client, a broker, a store or a file says is never
// asserted: it is answered with an error (ARCHITECTURE.md, "What bellhop asserts").
#pragma once

#include <string>

namespace bellhop {

// Any thread. Logs `text`, waits up to a second until the log is written, and aborts.
[[noreturn]] void die(const std::string& text);
// What BELLHOP_ASSERT calls.
[[noreturn, gnu::cold]] void assertion_failed(const char* file, int line, const char* what);

}  // namespace bellhop

// `what` is a string literal: "the tag is the client's". The condition is evaluated once.
#define BELLHOP_ASSERT(condition, what)                \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::bellhop::assertion_failed(__FILE__, __LINE__, what))
