#include "kernels/vector/loss.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(LossKernels, loss_table, loss_kernels)

namespace fovea::kernels {
namespace {

template <class Args>
void over_rows(const Args& args, void (*body)(const Args&, int64_t, int64_t)) {
  const int64_t rows = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, args.classes));
  parallel_for(args.rows, rows, [&](int64_t begin, int64_t end) { body(args, begin, end); });
}

}  // namespace

void cross_entropy(const CrossEntropy& args, const LossKernels& kernels) {
  over_rows(args, kernels.cross_entropy);
}
void cross_entropy_backward(const CrossEntropyBackward& args, const LossKernels& kernels) {
  over_rows(args, kernels.cross_entropy_backward);
}

}  // namespace fovea::kernels
