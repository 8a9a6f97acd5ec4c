// What a message says of its payload in a store: the key in its body, and bellhop's own headers
// (proto/README.md, "Claim headers"). Pure.
#pragma once

#include <optional>
#include <string>

#include "daemon/claims/claim_store.h"

namespace bellhop {

struct ClaimHeaders {
  bool are_there = false;  // of this key: all below is empty otherwise
  std::string store;       // the name that the writer's configuration has for it
  Expected expected;
};

// They count only if their key is the body's: consumers copy headers onto other messages.
ClaimHeaders claim_headers_of(Bytes header_fields, std::string_view key);

// The key of a body that is a claim. Nothing: it is no claim, or too long to be one.
std::optional<std::string> claim_key_of(Bytes body);

}  // namespace bellhop
