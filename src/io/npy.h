// NumPy's .npy format, to write.
#pragma once

#include <cstdint>
#include <string>

namespace fovea {

// What comes before rows * columns float32 numbers, row after row.
std::string npy_header(int64_t rows, int64_t columns);

}  // namespace fovea
