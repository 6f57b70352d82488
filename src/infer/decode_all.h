// Many sentences through one model: sorted by length, cut into batches, batches spread over threads.
//
// A batch on one thread wastes nothing on handing out small pieces of work, and a sentence's translation does
// not depend on its batch: so how many threads there are changes the speed alone. A single sentence uses all
// threads inside its steps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "infer/beam.h"
#include "infer/inference.h"
#include "infer/length_batches.h"

namespace fovea {

// lengths: of the sources, for the batches; start(members) gives a decoder of the sources with these places; limits: as in
// beam_search, one a source. Results are in the order of the sources.
std::vector<std::vector<Hypothesis>> decode_batches(
    std::span<const int64_t> lengths, std::span<const int32_t> limits, const BeamOptions& options,
    const BatchLimits& batches,
    FunctionRef<std::unique_ptr<StepDecoder>(std::span<const size_t> members)> start);

// sources: each ending with data::kEnd. limits: as in beam_search, one a sentence. Results are in the order
// of the sources.
std::vector<std::vector<Hypothesis>> decode_all(const Inference& inference,
                                                std::span<const std::vector<int32_t>> sources,
                                                std::span<const int32_t> limits, const BeamOptions& options,
                                                const BatchLimits& batches = {});

}  // namespace fovea
