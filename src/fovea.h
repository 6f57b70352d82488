// The whole library in one include.
#pragma once

#include "base/cpu.h"       // IWYU pragma: export
#include "base/error.h"     // IWYU pragma: export
#include "base/parallel.h"  // IWYU pragma: export
#include "base/rng.h"       // IWYU pragma: export
#include "base/shape.h"     // IWYU pragma: export
