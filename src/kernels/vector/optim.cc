// Divides the tensors of an optimiser step into chunks and calls the update of each rule on them.
#include "kernels/vector/optim.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(OptimKernels, optim_table, optim_kernels)

namespace fovea::kernels {
namespace {

constexpr int64_t kChunk = 16384;  // elements: small enough to balance, large enough to hide the hand-out

// The chunks of a list of pieces: piece i has chunks [starts[i], starts[i + 1]).
class ChunkList {
 public:
  template <class Pieces, class ChunksOf>
  ChunkList(const Pieces& pieces, ChunksOf chunks_of) : starts_(pieces.size() + 1) {
    for (size_t i = 0; i < pieces.size(); ++i) starts_[i + 1] = starts_[i] + chunks_of(pieces[i]);
  }
  int64_t total() const { return starts_.back(); }
  int64_t start(size_t piece) const { return starts_[piece]; }
  size_t piece_of(int64_t chunk) const {
    return std::upper_bound(starts_.begin(), starts_.end(), chunk) - starts_.begin() - 1;
  }

 private:
  std::vector<int64_t> starts_;
};

int64_t chunks_in(int64_t count, int64_t chunk) {
  return (count + chunk - 1) / chunk;
}

// Elements of a chunk: whole rows where the gradient is row-sparse.
int64_t chunk_elements(const OptimTensor& t) {
  return t.row_ids ? std::max<int64_t>(1, kChunk / t.row_size) * t.row_size : kChunk;
}

OptimRange range_of(const OptimTensor& t, int64_t begin, int64_t end, const float* gradient) {
  OptimRange range{t.weight + begin, gradient, {}, end - begin};
  for (int s = 0; s < 3; ++s) range.state[s] = t.state[s] ? t.state[s] + begin : nullptr;
  return range;
}

// Elements [begin, end) of a row-sparse tensor: named rows with their gradient, the runs between them with
// zero.
void step_sparse(OptimKernels::Step step, const OptimTensor& t, const OptimCoefficients& c, bool lazy,
                 int64_t begin, int64_t end) {
  const int64_t first_row = begin / t.row_size, end_row = end / t.row_size;
  const int32_t* next = std::lower_bound(t.row_ids, t.row_ids + t.row_count, first_row);
  int64_t done = begin;
  const auto absent_until = [&](int64_t place) {
    if (!lazy && place > done) step(range_of(t, done, place, nullptr), c);
  };
  for (; next != t.row_ids + t.row_count && *next < end_row; ++next) {
    const int64_t place = *next * t.row_size;
    absent_until(place);
    step(range_of(t, place, place + t.row_size, t.gradient + (next - t.row_ids) * t.row_size), c);
    done = place + t.row_size;
  }
  absent_until(end);
}

// Runs `step` over all tensors; coefficients_of(tensor) is asked once per tensor.
template <class CoefficientsOf>
void step_all(OptimKernels::Step step, std::span<const OptimTensor> tensors, const StepOptions& options,
              CoefficientsOf coefficients_of) {
  std::vector<OptimCoefficients> coefficients(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const OptimTensor& t = tensors[i];
    OptimCoefficients& c = coefficients[i];
    c.gradient_scale = options.gradient_scale;
    c.learning_rate = static_cast<float>(t.learning_rate);
    c.weight_decay = static_cast<float>(t.weight_decay);
    coefficients_of(t, c);
  }
  const ChunkList chunks(tensors, [](const OptimTensor& t) { return chunks_in(t.count, chunk_elements(t)); });
  parallel_chunks(chunks.total(), [&](int64_t chunk) {
    const size_t i = chunks.piece_of(chunk);
    const OptimTensor& t = tensors[i];
    const int64_t begin = (chunk - chunks.start(i)) * chunk_elements(t);
    const int64_t end = std::min(t.count, begin + chunk_elements(t));
    if (t.row_ids)
      step_sparse(step, t, coefficients[i], options.lazy_rows, begin, end);
    else
      step(range_of(t, begin, end, t.gradient + begin), coefficients[i]);
  });
}

}  // namespace

void optim_step(const SgdRule& rule, std::span<const OptimTensor> tensors, const StepOptions& options,
                const OptimKernels& kernels) {
  const auto step = rule.momentum == 0 ? kernels.sgd
                    : rule.nesterov    ? kernels.sgd_nesterov
                                       : kernels.sgd_momentum;
  step_all(step, tensors, options, [&](const OptimTensor& t, OptimCoefficients& c) {
    c.decay1 = static_cast<float>(rule.momentum);
    // The first buffer is the first gradient itself, whatever the dampening.
    c.gain1 = t.step <= 1 ? 1.0f : static_cast<float>(1 - rule.dampening);
  });
}

void optim_step(const AdamRule& rule, std::span<const OptimTensor> tensors, const StepOptions& options,
                const OptimKernels& kernels) {
  step_all(kernels.adam, tensors, options, [&](const OptimTensor& t, OptimCoefficients& c) {
    const double step = static_cast<double>(t.step);
    const double seen1 = rule.bias_correction ? 1 - std::pow(rule.beta1, step) : 1,
                 seen2 = rule.bias_correction ? 1 - std::pow(rule.beta2, step) : 1;
    c.learning_rate = static_cast<float>(t.learning_rate / seen1);
    c.root_scale = static_cast<float>(1 / std::sqrt(seen2));
    c.decay1 = static_cast<float>(rule.beta1), c.gain1 = static_cast<float>(1 - rule.beta1);
    c.decay2 = static_cast<float>(rule.beta2), c.gain2 = static_cast<float>(1 - rule.beta2);
    c.epsilon = static_cast<float>(rule.epsilon);
    if (rule.decoupled) {
      c.keep = static_cast<float>(1 - t.learning_rate * t.weight_decay);
      c.weight_decay = 0;
    }
  });
}

void optim_step(const AdaDeltaRule& rule, std::span<const OptimTensor> tensors, const StepOptions& options,
                const OptimKernels& kernels) {
  step_all(kernels.adadelta, tensors, options, [&](const OptimTensor&, OptimCoefficients& c) {
    c.decay2 = static_cast<float>(rule.rho), c.gain2 = static_cast<float>(1 - rule.rho);
    c.epsilon = static_cast<float>(rule.epsilon);
  });
}

void optim_step(const AdagradRule& rule, std::span<const OptimTensor> tensors, const StepOptions& options,
                const OptimKernels& kernels) {
  step_all(kernels.adagrad, tensors, options, [&](const OptimTensor& t, OptimCoefficients& c) {
    const double before = static_cast<double>(t.step - 1);
    c.learning_rate = static_cast<float>(t.learning_rate / (1 + before * rule.learning_rate_decay));
    c.epsilon = static_cast<float>(rule.epsilon);
  });
}

void optim_step(const RmspropRule& rule, std::span<const OptimTensor> tensors, const StepOptions& options,
                const OptimKernels& kernels) {
  step_all(kernels.rmsprop[rule.momentum != 0][rule.centered], tensors, options,
           [&](const OptimTensor&, OptimCoefficients& c) {
             c.decay1 = static_cast<float>(rule.momentum);
             c.decay2 = static_cast<float>(rule.alpha), c.gain2 = static_cast<float>(1 - rule.alpha);
             c.epsilon = static_cast<float>(rule.epsilon);
           });
}

void ema_update(std::span<const EmaTensor> tensors, double decay, const OptimKernels& kernels) {
  const ChunkList chunks(tensors, [](const EmaTensor& t) { return chunks_in(t.count, kChunk); });
  parallel_chunks(chunks.total(), [&](int64_t chunk) {
    const size_t i = chunks.piece_of(chunk);
    const int64_t begin = (chunk - chunks.start(i)) * kChunk;
    kernels.ema(tensors[i].average + begin, tensors[i].weight + begin,
                std::min(kChunk, tensors[i].count - begin), static_cast<float>(1 - decay));
  });
}

void sums_of_squares(std::span<const ConstTensor> tensors, double* sums, const OptimKernels& kernels) {
  const ChunkList chunks(tensors, [](const ConstTensor& t) { return chunks_in(t.count, kChunk); });
  std::vector<double> partial(chunks.total());
  parallel_chunks(chunks.total(), [&](int64_t chunk) {
    const size_t i = chunks.piece_of(chunk);
    const int64_t begin = (chunk - chunks.start(i)) * kChunk;
    partial[chunk] =
        kernels.sum_of_squares(tensors[i].values + begin, std::min(kChunk, tensors[i].count - begin));
  });
  for (size_t i = 0; i < tensors.size(); ++i) {
    sums[i] = 0;
    for (int64_t chunk = chunks.start(i); chunk < chunks.start(i + 1); ++chunk) sums[i] += partial[chunk];
  }
}

}  // namespace fovea::kernels
