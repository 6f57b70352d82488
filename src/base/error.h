// The two families of errors: the user's fault (exception) and our bug (assertion).
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace fovea {

// The user's fault. The message says what was got, what was wanted, and a hint: one line, no full stop.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Joins its arguments into one string: message("rank is ", 3, ", wanted 2").
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Throws Error with the joined parts.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(message(parts...));
}

// Checks what a user may get wrong; the parts are only joined when the check fails.
template <class... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(parts...);
}

// Prints file, line and expression, and aborts: our bug, never the user's fault.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace fovea

#define FOVEA_ASSERT(expression) \
  ((expression) ? (void)0 : ::fovea::assertion_failed(#expression, __FILE__, __LINE__))
