// Every op that has a gradient.
#pragma once

#include "autograd/ops_linear.h"    // IWYU pragma: export
#include "autograd/ops_norm.h"      // IWYU pragma: export
#include "autograd/ops_position.h"  // IWYU pragma: export
#include "autograd/ops_shape.h"     // IWYU pragma: export
