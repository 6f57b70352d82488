#include "kernels/versions.h"

#include <hwy/highway.h>

// Two steps, so that the numbers are put in before they become text.
#define FOVEA_TEXT(number) #number
#define FOVEA_TEXT_OF(number) FOVEA_TEXT(number)

namespace fovea::kernels {

const char* highway_version() {
  return FOVEA_TEXT_OF(HWY_MAJOR) "." FOVEA_TEXT_OF(HWY_MINOR) "." FOVEA_TEXT_OF(HWY_PATCH);
}

}  // namespace fovea::kernels
