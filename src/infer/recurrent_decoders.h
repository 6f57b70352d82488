// The recurrent models made ready for translating: weights packed once, keys and values projected once for a
// sentence, beams moved by number. Later changes to a model's weights are not seen.
#pragma once

#include <memory>

#include "infer/inference.h"
#include "models/bahdanau.h"
#include "models/luong.h"

namespace fovea {

// With attention or without.
std::unique_ptr<Inference> bahdanau_inference(const models::Bahdanau& model, Compute compute);
std::unique_ptr<Inference> luong_inference(const models::Luong& model, Compute compute);

}  // namespace fovea
