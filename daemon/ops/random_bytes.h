// Random bytes that nobody can foresee, whatever they saw of earlier ones.
#pragma once

#include <cstdint>
#include <span>

namespace bellhop {

// Fills the whole span from OpenSSL's generator, which the kernel seeds. Any thread. Ends the process when
// there are none: a key that can be guessed gives a payload away.
void random_bytes(std::span<uint8_t> into);

}  // namespace bellhop
