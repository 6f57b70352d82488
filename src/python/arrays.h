// Arrays of NumPy and of everything that speaks DLPack, as nanobind gives them.
#pragma once

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace fovea::python {

using AnyArray = nanobind::ndarray<nanobind::ro>;
using Counts = std::optional<std::vector<int64_t>>;  // lengths of sequences

inline std::string dtype_name(nanobind::dlpack::dtype type) {
  static const std::map<int, std::string> kinds{{0, "int"},    {1, "uint"},    {2, "float"},
                                                {4, "bfloat"}, {5, "complex"}, {6, "bool"}};
  const auto found = kinds.find(type.code);
  return (found == kinds.end() ? "type" : found->second) + (type.code == 6 ? "" : std::to_string(type.bits));
}

// Throws Error unless the array is on the CPU, has the type T and at most four dimensions.
template <class T>
void check_array(const AnyArray& array, const char* name, const char* wanted) {
  require(array.device_type() == nanobind::device::cpu::value, name,
          ": got an array on another device, wanted one on the CPU");
  require(array.dtype() == nanobind::dtype<T>(), name, ": got dtype ", dtype_name(array.dtype()), ", wanted ",
          wanted);
  require(array.ndim() <= 4, name, ": got ", array.ndim(), " dimensions, wanted at most 4");
}

}  // namespace fovea::python
