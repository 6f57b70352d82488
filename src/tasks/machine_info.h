// The machine and the libraries in use, as `fovea info` prints them.
#pragma once

#include "io/json.h"

namespace fovea::tasks {

// {fovea, cpu, level, levels, threads, highway, compiler}
Json machine_info();

}  // namespace fovea::tasks
