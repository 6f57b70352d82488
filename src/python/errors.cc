#include "python/errors.h"

#include <nanobind/nanobind.h>

#include <string_view>

#include "base/error_kinds.h"

namespace fovea::python {
namespace {

PyObject* class_of(const std::exception& error) {
  switch (kind_of(error)) {
    case ErrorKind::bad_request:
      return PyExc_ValueError;
    case ErrorKind::bad_file:
      return std::string_view(error.what()).find("No such file") != std::string_view::npos
                 ? PyExc_FileNotFoundError
                 : PyExc_OSError;
    case ErrorKind::damaged_model:
      return PyExc_OSError;
    case ErrorKind::out_of_memory:
      return PyExc_MemoryError;
    case ErrorKind::interrupted:
      return PyExc_KeyboardInterrupt;
    case ErrorKind::internal:
      return PyExc_RuntimeError;
  }
  return PyExc_RuntimeError;
}

}  // namespace

void translate_errors() {
  nanobind::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      PyErr_SetString(class_of(error), error.what());
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError, "fovea: out of memory");
    } catch (const std::length_error&) {
      PyErr_SetString(PyExc_MemoryError, "fovea: a size is larger than memory can be");
    }
  });
}

}  // namespace fovea::python
