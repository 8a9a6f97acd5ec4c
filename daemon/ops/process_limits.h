// What the process asks of the system at its start: descriptors, and how memory is given back.
#pragma once

namespace bellhop {

// Once, before there are other threads. What cannot be had is done without.
void raise_descriptor_limit();
void give_back_large_buffers();
// Any thread. What the allocator keeps for later, from time to time.
void give_back_free_memory();

}  // namespace bellhop
