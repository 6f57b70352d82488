// Tensors of PyTorch as pointer, sizes and strides, without libtorch.
#pragma once

#include <nanobind/nanobind.h>

#include <array>

#include "attention/strided.h"

namespace fovea::python {

// What a call may read, in the order in which Python passes it.
inline constexpr std::array<const char*, 12> kInputNames{
    "q", "k", "v", "bias", "slopes", "relative", "position", "sink", "W", "U", "b", "score_vector"};
template <class Array, class Inputs>
std::array<Array Inputs::*, kInputNames.size()> input_members() {
  return {&Inputs::q,        &Inputs::k,    &Inputs::v, &Inputs::bias, &Inputs::slopes, &Inputs::relative,
          &Inputs::position, &Inputs::sink, &Inputs::W, &Inputs::U,    &Inputs::b,      &Inputs::score_v};
}

// None: absent. The caller vouches for float32 on the CPU, and keeps the tensor.
StridedOutput tensor_view(nanobind::handle tensor);
inline StridedInput input_view(nanobind::handle tensor) {
  const StridedOutput found = tensor_view(tensor);
  return {found.data, found.rank, found.sizes, found.strides, found.present};
}

// The classes whose objects hold their numbers themselves: Tensor and nn.Parameter. Others may wrap a tensor or have none.
void set_plain_types(const nanobind::tuple& types);

// Whether it is a tensor of float32 on the CPU, of a plain type; false too where only slow calls could tell.
bool is_ready(nanobind::handle tensor);

}  // namespace fovea::python
