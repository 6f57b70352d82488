// Versions of the libraries the kernels stand on.
#pragma once

namespace fovea::kernels {

// Version of Highway compiled in, "1.0.3". oneDNN's is gemm_library_version() in kernels/gemm/gemm.h.
const char* highway_version();

}  // namespace fovea::kernels
