// Random bytes that nobody can predict, even from earlier ones.
#pragma once

#include <cstdint>
#include <span>

namespace bellhop {

// Any thread. Fills the whole span from OpenSSL's generator, which the kernel seeds. Ends the process when
// OpenSSL has none: a key that can be guessed gives a payload away.
void random_bytes(std::span<uint8_t> into);

}  // namespace bellhop
