// Which instruction set the kernels run on: the best one of the CPU, or the one that FOVEA_ISA names.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fovea {

// Ranked: a later level is faster. `scalar` is the plain reference.
enum class Level { scalar, sse4, avx2, avx512, neon };

std::string_view level_name(Level level);

// The levels compiled in that this CPU can run, slowest first; always begins with scalar.
std::span<const Level> available_levels();

// The level in use: the best available, or the one named by the environment variable FOVEA_ISA.
// Throws Error when FOVEA_ISA names no level or one this CPU lacks; settled by the first call that succeeds.
Level current_level();

// Whether the CPU sums products of bytes in one instruction of this level: VNNI, with AVX-512 or without.
bool has_dot_products(Level level);

// "AMD EPYC 7B13" and the like; "unknown CPU" where the system does not tell.
std::string cpu_name();

}  // namespace fovea
