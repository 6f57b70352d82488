// Versions of the libraries that the kernels use.
#pragma once

namespace fovea::kernels {

// Version of Highway compiled in, "1.0.3".
const char* highway_version();

}  // namespace fovea::kernels
