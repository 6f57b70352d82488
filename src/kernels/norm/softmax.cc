#include "kernels/norm/softmax.h"

#include <algorithm>

#include "base/parallel.h"
#include "kernels/level_table.h"

FOVEA_LEVEL_TABLES(SoftmaxKernels, softmax_table, softmax_kernels)

namespace fovea::kernels {
namespace {

template <class Args>
void over_rows(const Args& args, void (*body)(const Args&, int64_t, int64_t)) {
  const int64_t rows = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, args.columns));
  parallel_for(args.rows, rows, [&](int64_t begin, int64_t end) { body(args, begin, end); });
}

}  // namespace

void softmax(const Softmax& args, const SoftmaxKernels& kernels) {
  over_rows(args, kernels.softmax);
}
void log_softmax(const Softmax& args, const SoftmaxKernels& kernels) {
  over_rows(args, kernels.log_softmax);
}
void softmax_backward(const SoftmaxBackward& args, const SoftmaxKernels& kernels) {
  over_rows(args, kernels.softmax_backward);
}
void log_softmax_backward(const SoftmaxBackward& args, const SoftmaxKernels& kernels) {
  over_rows(args, kernels.log_softmax_backward);
}

}  // namespace fovea::kernels
