// A routing slip as somebody who looks at a message wants to see it: all stops in order, and at which the
// message is. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "proto/bytes.h"

namespace bellhop {

struct SlipView {
  bool is_itinerary = false;
  std::vector<std::string> steps;  // those that are done first
  size_t position = 0;             // of the step that the message is for; steps.size(): finished
  std::string run_id;              // of a declared route
  std::string problem;             // it cannot be read, and this is why
};

// Nothing: the message has no slip.
std::optional<SlipView> slip_of(Bytes header_fields);

// "validate -> [reserve] -> dispatch (step 2 of 3, run 8d0f...)": the current step in brackets.
std::string in_words(const SlipView& slip);

}  // namespace bellhop
