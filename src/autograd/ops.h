// Every op that has a gradient.
#pragma once

#include "autograd/ops_conv.h"       // IWYU pragma: export
#include "autograd/ops_linear.h"     // IWYU pragma: export
#include "autograd/ops_loss.h"       // IWYU pragma: export
#include "autograd/ops_math.h"       // IWYU pragma: export
#include "autograd/ops_norm.h"       // IWYU pragma: export
#include "autograd/ops_output.h"     // IWYU pragma: export
#include "autograd/ops_position.h"   // IWYU pragma: export
#include "autograd/ops_recurrent.h"  // IWYU pragma: export
#include "autograd/ops_reduce.h"     // IWYU pragma: export
#include "autograd/ops_rows.h"       // IWYU pragma: export
#include "autograd/ops_shape.h"      // IWYU pragma: export
#include "autograd/ops_softmax.h"    // IWYU pragma: export
