#include "io/npy.h"

#include <bit>

#include "base/error.h"

namespace fovea {

std::string npy_header(int64_t rows, int64_t columns) {
  static_assert(std::endian::native == std::endian::little, "'<f4' are little-endian numbers");
  std::string text =
      message("{'descr': '<f4', 'fortran_order': False, 'shape': (", rows, ", ", columns, "), }");
  // Magic, version and length are 10 bytes; all together ends with a newline at a multiple of 64.
  constexpr size_t kBefore = 10, kUnit = 64;
  text.append(kUnit - 1 - (kBefore + text.size()) % kUnit, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xFF);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace fovea
