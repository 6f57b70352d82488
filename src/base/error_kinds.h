// Kinds of Error, for a caller that must tell them apart: a server to choose its status, a binding to choose
// its exception. The text of an error does not depend on its kind.
#pragma once

#include <exception>
#include <new>

#include "base/error.h"

namespace fovea {

// A file that was named is missing, cannot be read or written, or does not hold what it should.
class FileError : public Error {
 public:
  using Error::Error;
};

// A model folder is damaged: a file of it is missing, unreadable, or does not fit the others.
class ModelError : public Error {
 public:
  using Error::Error;
};

// The work was stopped from outside before it ended.
class Interrupted : public Error {
 public:
  using Error::Error;
};

enum class ErrorKind { bad_request, bad_file, damaged_model, out_of_memory, interrupted, internal };

// A plain Error is a bad request: an option, a name or an input that cannot be used.
inline ErrorKind kind_of(const std::exception& error) {
  if (dynamic_cast<const FileError*>(&error) != nullptr) return ErrorKind::bad_file;
  if (dynamic_cast<const ModelError*>(&error) != nullptr) return ErrorKind::damaged_model;
  if (dynamic_cast<const Interrupted*>(&error) != nullptr) return ErrorKind::interrupted;
  if (dynamic_cast<const Error*>(&error) != nullptr) return ErrorKind::bad_request;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return ErrorKind::out_of_memory;
  return ErrorKind::internal;
}

// Calls work() and gives what it returns; a plain Error that it throws becomes a Kind with the same text.
template <class Kind, class Work>
auto errors_as(Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (kind_of(error) != ErrorKind::bad_request) throw;
    throw Kind(error.what());
  }
}

}  // namespace fovea
