#include "python/tensors.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

// The table of functions that a type gives as __dlpack_c_exchange_api__ (DLPack 1.2 and later), up to the one used here:
// it describes a tensor in place, many times faster than calls of its methods.
struct ExchangeApi {
  uint32_t major, minor;
  const ExchangeApi* previous;
  void *allocator, *from_object, *to_object;
  int (*describe)(void* object, nb::dlpack::dltensor* out);
};

const ExchangeApi* find_api(PyObject* type) {
  PyObject* capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
  const ExchangeApi* api =
      capsule == nullptr
          ? nullptr
          : static_cast<const ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  Py_XDECREF(capsule);
  PyErr_Clear();
  while (api != nullptr && api->major != 1) api = api->previous;
  return api != nullptr && api->describe != nullptr ? api : nullptr;
}

// Kept for the two types met last: Tensor and nn.Parameter. Called with the GIL.
const ExchangeApi* api_of_type(PyObject* type) {
  static struct Known {
    PyObject* type = nullptr;
    const ExchangeApi* api = nullptr;
  } known[2];
  for (const Known& entry : known)
    if (entry.type == type) return entry.api;
  Py_XDECREF(known[1].type);
  known[1] = known[0];
  Py_INCREF(type);
  known[0] = {type, find_api(type)};
  return known[0].api;
}

// Never freed: classes live as long as Python.
std::array<PyObject*, 2>& plain_types() {
  static std::array<PyObject*, 2> types{};
  return types;
}

void check_rank(size_t rank) {
  require(rank <= 4, "attention: got an array of ", rank, " dimensions, wanted at most 4");
}

// Tensors that stand for others, or for zeros, may have none.
void check_memory(const StridedOutput& array) {
  const auto first = array.sizes.begin();
  require(array.data != nullptr || std::find(first, first + array.rank, 0) != first + array.rank,
          "attention: got a tensor without memory of its own, wanted a dense one");
}

StridedOutput described(const ExchangeApi& api, nb::handle tensor) {
  nb::dlpack::dltensor found;
  if (api.describe(tensor.ptr(), &found) != 0) throw nb::python_error();
  check_rank(static_cast<size_t>(found.ndim));
  auto* const data = static_cast<char*>(found.data);
  StridedOutput array{.data = reinterpret_cast<float*>(data == nullptr ? nullptr : data + found.byte_offset),
                      .rank = found.ndim,
                      .present = true};
  std::copy_n(found.shape, found.ndim, array.sizes.begin());
  std::copy_n(found.strides, found.ndim, array.strides.begin());
  check_memory(array);
  return array;
}

const ExchangeApi* api_of(nb::handle object) {
  return api_of_type(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
}

}  // namespace

void set_plain_types(const nb::tuple& types) {
  require(types.size() == plain_types().size(), "got ", types.size(), " types of tensors, wanted ",
          plain_types().size());
  for (size_t i = 0; i < types.size(); ++i) plain_types()[i] = nb::borrow(types[i]).release().ptr();
}

bool is_ready(nb::handle tensor) {
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(tensor.ptr()));
  if (std::ranges::find(plain_types(), type) == plain_types().end()) return false;
  const ExchangeApi* const api = api_of_type(type);
  nb::dlpack::dltensor found;
  if (api == nullptr) return false;
  if (api->describe(tensor.ptr(), &found) != 0) {
    PyErr_Clear();
    return false;
  }
  return found.device.device_type == nb::device::cpu::value && found.dtype == nb::dtype<float>() &&
         found.data != nullptr;
}

StridedOutput tensor_view(nb::handle tensor) {
  if (tensor.is_none()) return {};
  if (const ExchangeApi* api = api_of(tensor)) return described(*api, tensor);
  const auto sizes = nb::cast<std::vector<int64_t>>(tensor.attr("shape"));
  const auto strides = nb::cast<std::vector<int64_t>>(tensor.attr("stride")());
  check_rank(sizes.size());
  StridedOutput array{.data = reinterpret_cast<float*>(nb::cast<uintptr_t>(tensor.attr("data_ptr")())),
                      .rank = static_cast<int>(sizes.size()),
                      .present = true};
  std::copy(sizes.begin(), sizes.end(), array.sizes.begin());
  std::copy(strides.begin(), strides.end(), array.strides.begin());
  check_memory(array);
  return array;
}

}  // namespace fovea::python
