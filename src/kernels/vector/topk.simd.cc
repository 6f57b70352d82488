#include "kernels/vector/topk.h"

#include "kernels/vector/vector_math-inl.h"
#include "kernels/vector/vector_row-inl.h"

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

void summarise(int64_t count, const float* x, float* largest, float* sums) {
  for (int64_t begin = 0; begin < count; begin += kTopBlock) {
    const int64_t size = count - begin < kTopBlock ? count - begin : kTopBlock;
    const float most = max_of(size, [&](int64_t i, int64_t lanes) HWY_ATTR {
      return keep_first(load(x + begin + i, lanes), lanes, -kInfinity);
    });
    const V shift = hn::Set(d, most == -kInfinity ? 0 : most);
    *largest++ = most;
    *sums++ = sum_of(size, [&](int64_t i, int64_t lanes) HWY_ATTR {
      return vmath::exp_nonpositive(
          d, hn::Sub(keep_first(load(x + begin + i, lanes), lanes, -kInfinity), shift));
    });
  }
}

TopKResult top_k(const TopK& args) {
  const int64_t blocks = top_blocks(args.count);
  const float* HWY_RESTRICT x = args.x;
  TopKResult result{.largest = -kInfinity};
  // The maxima of blocks first fill `values`: their wanted-th largest is a bound, reached by as many values.
  // A block whose maximum may be the skipped column's promises nothing.
  Chosen bounds{args.values, nullptr, args.wanted};
  for (int64_t b = 0; b < blocks; ++b) {
    const float most = args.block_largest[b];
    if (most > result.largest) result.largest = most;
    if (args.skipped < 0 || args.skipped / kTopBlock != b) bounds.insert(most, 0);
  }
  const float bound = bounds.found == args.wanted ? args.values[args.wanted - 1] : -kInfinity;

  const V shift = hn::Set(d, result.largest);
  result.sum = sum_of(blocks, [&](int64_t b, int64_t lanes) HWY_ATTR {
    const V most = keep_first(load(args.block_largest + b, lanes), lanes, -kInfinity);
    return hn::Mul(load(args.block_sums + b, lanes), vmath::exp_nonpositive(d, hn::Sub(most, shift)));
  });

  Chosen chosen{args.values, args.columns, args.wanted};
  for (int64_t b = 0; b < blocks; ++b) {
    if (args.block_largest[b] < bound) continue;
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

int64_t candidates(const Uncertain& row) {
  const V length = hn::Set(d, row.length), error = hn::Set(d, row.error), slack = hn::Set(d, row.slack);
  const auto margin = [&](int64_t j, int64_t lanes) HWY_ATTR {
    return hn::MulAdd(length, load(row.errors + j, lanes),
                      hn::MulAdd(error, load(row.norms + j, lanes), slack));
  };
  // The columns before the skipped one, and those after it.
  const int64_t middle = row.skipped < 0 || row.skipped >= row.count ? row.count : row.skipped;
  const int64_t begins[] = {0, middle + 1}, ends[] = {middle, row.count};

  V broken = hn::Zero(d);  // NaN from the first NaN or infinity on
  float bar = -kInfinity;
  for (int part = 0; part < 2; ++part) {
    const float most = max_of(ends[part] - begins[part], [&](int64_t i, int64_t lanes) HWY_ATTR {
      const int64_t j = begins[part] + i;
      const V least = hn::Sub(load(row.x + j, lanes), margin(j, lanes));
      broken = hn::Add(broken, hn::Sub(least, least));
      return keep_first(least, lanes, -kInfinity);
    });
    if (most > bar) bar = most;
  }
  if (hn::GetLane(hn::SumOfLanes(d, broken)) != 0) return 0;

  int64_t found = 0;
  for (int part = 0; part < 2; ++part) {
    for_vectors(ends[part] - begins[part], [&](int64_t i, int64_t lanes) HWY_ATTR {
      const int64_t j = begins[part] + i;
      const V most = hn::Add(load(row.x + j, lanes), margin(j, lanes));
      if (hn::AllFalse(d, hn::Ge(most, hn::Set(d, bar)))) return;
      HWY_ALIGN float values[kLanes];
      hn::Store(most, d, values);
      for (int64_t lane = 0; lane < lanes; ++lane)
        if (values[lane] >= bar) row.columns[found++] = static_cast<int32_t>(j + lane);
    });
  }
  return found;
}

}  // namespace

namespace FOVEA_LEVEL {
extern const TopKKernels top_k_table;
const TopKKernels top_k_table{.summarise = summarise, .top_k = top_k, .candidates = candidates};
}  // namespace FOVEA_LEVEL
}  // namespace fovea::kernels
