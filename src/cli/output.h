// Standard output: what was printed must have arrived.
#pragma once

#include <string>

namespace fovea::cli {

// Sends what was printed so far. False when it cannot arrive: the reader is gone, or the disk is full.
bool flush_output();

// Why output could not be written, as the system said at the first failure; empty: all arrived, or the reader
// went away, which is not worth a word.
std::string output_fault();

}  // namespace fovea::cli
