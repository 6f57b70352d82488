// The whole library in one include.
#pragma once

#include "attention/attend_masked.h"  // IWYU pragma: export
#include "attention/attention.h"      // IWYU pragma: export
#include "attention/pattern.h"        // IWYU pragma: export
#include "attention/spec.h"           // IWYU pragma: export
#include "autograd/ops.h"             // IWYU pragma: export
#include "autograd/var.h"             // IWYU pragma: export
#include "base/cpu.h"                 // IWYU pragma: export
#include "base/error.h"               // IWYU pragma: export
#include "base/parallel.h"            // IWYU pragma: export
#include "base/rng.h"                 // IWYU pragma: export
#include "base/shape.h"               // IWYU pragma: export
#include "io/safetensors.h"           // IWYU pragma: export
#include "nn/attention.h"             // IWYU pragma: export
#include "nn/conv.h"                  // IWYU pragma: export
#include "nn/gated_loss.h"            // IWYU pragma: export
#include "nn/gates.h"                 // IWYU pragma: export
#include "nn/init.h"                  // IWYU pragma: export
#include "nn/layers.h"                // IWYU pragma: export
#include "nn/recurrent.h"             // IWYU pragma: export
#include "nn/temporal_attention.h"    // IWYU pragma: export
#include "nn/transformer.h"           // IWYU pragma: export
#include "nn/upsample.h"              // IWYU pragma: export
#include "tensor/tensor.h"            // IWYU pragma: export
#include "train/optimizer.h"          // IWYU pragma: export
#include "train/trainer.h"            // IWYU pragma: export
