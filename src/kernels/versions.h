// Versions of the libraries the kernels stand on.
#pragma once

namespace fovea::kernels {

// Version of Highway compiled in, "1.0.3".
const char* highway_version();

}  // namespace fovea::kernels
