#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace fovea {

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "fovea: this is a bug in fovea: %s:%d: %s does not hold\n", file, line, expression);
  std::abort();
}

}  // namespace fovea
