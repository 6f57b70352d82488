// How a kernel family is dispatched: one table of functions per instruction-set level, chosen at run time.
//
// A family X has four files:
//   X.h            struct XKernels of function pointers; `const XKernels& x_kernels(Level = current_level())`
//   X.simd.cc      the fast bodies, compiled once per level; everything in an unnamed namespace except
//                  `namespace FOVEA_LEVEL { extern const XKernels x_table; const XKernels x_table{...}; }`
//   X_reference.cc the plain scalar bodies, written to be read: `namespace scalar { ... x_table }`
//   X.cc           FOVEA_LEVEL_TABLES(XKernels, x_table, x_kernels)
// Per-level objects must export nothing weak (a test reads nm): a std:: template instantiated there could be
// linked into the baseline path and crash an older CPU. So X.simd.cc uses no std:: containers or algorithms.
#pragma once

#include "base/cpu.h"
#include "base/error.h"

#if defined(__x86_64__)
#define FOVEA_LEVEL_TABLES(Table, table, getter) \
  namespace fovea::kernels {                     \
  namespace scalar {                             \
  extern const Table table;                      \
  }                                              \
  namespace sse4 {                               \
  extern const Table table;                      \
  }                                              \
  namespace avx2 {                               \
  extern const Table table;                      \
  }                                              \
  namespace avx512 {                             \
  extern const Table table;                      \
  }                                              \
  const Table& getter(Level level) {             \
    switch (level) {                             \
      case Level::sse4:                          \
        return sse4::table;                      \
      case Level::avx2:                          \
        return avx2::table;                      \
      case Level::avx512:                        \
        return avx512::table;                    \
      case Level::scalar:                        \
      case Level::neon:                          \
        break;                                   \
    }                                            \
    return scalar::table;                        \
  }                                              \
  }
#else
#define FOVEA_LEVEL_TABLES(Table, table, getter)               \
  namespace fovea::kernels {                                   \
  namespace scalar {                                           \
  extern const Table table;                                    \
  }                                                            \
  namespace neon {                                             \
  extern const Table table;                                    \
  }                                                            \
  const Table& getter(Level level) {                           \
    return level == Level::neon ? neon::table : scalar::table; \
  }                                                            \
  }
#endif
