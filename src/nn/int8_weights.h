// A model's matrices as integers of eight bits: rounded in place, and to and from a safetensors file.
//
// Every parameter of two dimensions counts, one scale a row. A matrix NAME is stored as NAME (int8) and
// NAME.scale (float32); all else stays float32. Integer times scale is an exact float (kernels/gemm/int8_gemm.h),
// so a model that was rounded, stored and read again is the same model to the last bit.
#pragma once

#include <filesystem>
#include <string>

#include "io/safetensors.h"
#include "nn/module.h"

namespace fovea::nn {

// Replaces every matrix by what its integers say. Throws Error, beginning with `where` and naming the
// parameter, when one is not finite.
void round_to_int8(const Module& module, const std::string& where);

// Prepares a network for use alone (Module::prepare_for_use()); with int8 its other matrices, the tables, are rounded too.
// Throws Error as round_to_int8() does.
Prepared prepare_for_use(const Module& network, Compute compute, const std::string& where);

// Replaces the file atomically.
void save_int8_weights(const Module& module, const std::filesystem::path& path, const Metadata& metadata);

// A parameter of a file that may hold integers; undefined when it has none of the name. Throws Error when a
// matrix of integers lacks its scales, or they do not fit it or are no scales.
Tensor read_weight(const SafetensorsFile& file, const std::string& name);
// Whether the tensor holds the scales of a matrix of integers.
bool is_scale(const SafetensorsView& file, std::string_view name);

}  // namespace fovea::nn
