// A message's payload for `peek --body` and `peek --save`: the message's own, or the object of its claim.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/cli/inspect/message_view.h"

namespace bellhop {

// A payload's first 4 KiB.
struct PayloadStart {
  Buffer bytes;
  uint64_t size_bytes = 0;  // of the whole payload

  bool is_cut() const { return bytes.size() < size_bytes; }
};

// For a claim the object is fetched and verified; an error says why it cannot be.
Result<PayloadStart> payload_start(const MessageView& message, const FoundObject* object,
                                   ObjectSearch& search);
// As lines of text, or in hexadecimal where it is none.
std::string in_words(const PayloadStart& start);
nlohmann::ordered_json json_of(const PayloadStart& start);

// Writes the payload to a new file. An error: it cannot be had whole, or the file is there already.
Result<void> save_payload(const MessageView& message, const FoundObject* object, ObjectSearch& search,
                          const std::string& path);
// Writes a text to a new file.
Result<void> save_text(const std::string& text, const std::string& path);

}  // namespace bellhop
