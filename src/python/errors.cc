#include "python/errors.h"

#include <nanobind/nanobind.h>

#include <string_view>

#include "base/error_kinds.h"

namespace fovea::python {
namespace {

bool says(const std::exception& error, std::string_view part) {
  return std::string_view(error.what()).find(part) != std::string_view::npos;
}

PyObject* class_of(const std::exception& error) {
  // Whoever read it: a file of training data is named like an option.
  if (says(error, "No such file or directory") || says(error, " does not exist"))
    return PyExc_FileNotFoundError;
  switch (kind_of(error)) {
    case ErrorKind::bad_request:
      return PyExc_ValueError;
    case ErrorKind::bad_file:
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
    } catch (const nanobind::cast_error&) {
      PyErr_SetString(PyExc_TypeError, "fovea: an argument has the wrong type");
    } catch (const std::length_error&) {
      PyErr_SetString(PyExc_MemoryError, "fovea: a size is larger than memory can be");
    }
  });
}

}  // namespace fovea::python
