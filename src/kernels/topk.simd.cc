#include "kernels/topk.h"

#include "kernels/vector_math-inl.h"
#include "kernels/vector_row-inl.h"

namespace fovea::kernels {
namespace {

constexpr float kInfinity = __builtin_inff();

// The best so far, sorted: the largest first, of equal values the one that came first.
struct Chosen {
  float* values;
  int32_t* columns;  // null when only values matter
  int64_t wanted;
  int64_t found = 0;

  // What a value must exceed to be let in.
  HWY_INLINE float bar() const { return found < wanted ? -kInfinity : values[found - 1]; }
  void insert(float value, int32_t column) {
    if (found == wanted && !(value > values[found - 1])) return;
    int64_t place = found < wanted ? found++ : found - 1;
    for (; place > 0 && value > values[place - 1]; --place) {
      values[place] = values[place - 1];
      if (columns != nullptr) columns[place] = columns[place - 1];
    }
    values[place] = value;
    if (columns != nullptr) columns[place] = column;
  }
};

TopKResult top_k(const TopK& args) {
  const int64_t blocks = (args.count + kTopBlock - 1) / kTopBlock;
  const float* HWY_RESTRICT x = args.x;
  TopKResult result{.largest = -kInfinity};
  // The maxima of blocks first fill `values`: their wanted-th largest is a bound, reached by as many values.
  Chosen bounds{args.values, nullptr, args.wanted};
  bool skipped_counted = args.skipped < 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = b * kTopBlock,
                  size = args.count - begin < kTopBlock ? args.count - begin : kTopBlock;
    const float most = max_of(size, [&](int64_t i, int64_t lanes) HWY_ATTR {
      return keep_first(load(x + begin + i, lanes), lanes, -kInfinity);
    });
    args.scratch[b] = most;
    if (most > result.largest) result.largest = most;
    // A block whose maximum may be the skipped column's promises nothing.
    const bool holds_skipped = !skipped_counted && args.skipped < begin + size;
    if (holds_skipped)
      skipped_counted = true;
    else
      bounds.insert(most, 0);
  }
  const float bound = bounds.found == args.wanted ? args.values[args.wanted - 1] : -kInfinity;

  const V shift = hn::Set(d, result.largest);
  result.sum = sum_of(args.count, [&](int64_t i, int64_t lanes) HWY_ATTR {
    return vmath::exp_nonpositive(d, hn::Sub(keep_first(load(x + i, lanes), lanes, -kInfinity), shift));
  });

  Chosen chosen{args.values, args.columns, args.wanted};
  for (int64_t b = 0; b < blocks; ++b) {
    if (args.scratch[b] < bound) continue;
    const int64_t begin = b * kTopBlock,
                  end = begin + kTopBlock < args.count ? begin + kTopBlock : args.count;
    for (int64_t i = begin; i < end; i += kLanes) {
      const int64_t lanes = end - i < kLanes ? end - i : kLanes;
      const float bar = chosen.bar();
      if (chosen.found == args.wanted &&
          hn::AllFalse(d, hn::Gt(keep_first(load(x + i, lanes), lanes, -kInfinity), hn::Set(d, bar))))
        continue;
      for (int64_t j = i; j < i + lanes; ++j)
        if (x[j] >= bound && j != args.skipped) chosen.insert(x[j], static_cast<int32_t>(j));
    }
  }
  result.found = chosen.found;
  return result;
}

}  // namespace

namespace FOVEA_LEVEL {
extern const TopKKernels top_k_table;
const TopKKernels top_k_table{.top_k = top_k};
}  // namespace FOVEA_LEVEL
}  // namespace fovea::kernels
