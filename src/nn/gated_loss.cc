#include "nn/gated_loss.h"

#include <cmath>

#include "base/error.h"

namespace fovea::nn {

Var gated_loss(const Var& loss, const Tensor& mask) {
  require(mask.count() == loss.count(), "gated_loss: got a loss of shape ", loss.shape(),
          " and a mask of shape ", mask.shape(), ", wanted as many elements in both");
  const Tensor gate = mask.contiguous(), values = loss.value().contiguous();
  double total = 0, sum = 0;
  for (int64_t i = 0; i < gate.count(); ++i) {
    const float weight = gate.data()[i];
    require(weight >= 0 && std::isfinite(weight), "gated_loss: got ", weight,
            " in the mask, wanted finite numbers of 0 or more");
    if (weight == 0) continue;
    total += double{weight};
    sum += double{weight} * double{values.data()[i]};
  }
  const double share = total > 0 ? 1 / total : 0;
  return record(Tensor::scalar(static_cast<float>(sum * share)), {loss}, [=](const Tensor& grad) {
    const Tensor d(loss.shape());
    const auto factor = static_cast<float>(double{grad.item()} * share);
    for (int64_t i = 0; i < d.count(); ++i) d.data()[i] = gate.data()[i] == 0 ? 0 : gate.data()[i] * factor;
    loss.add_grad(d);
  });
}

}  // namespace fovea::nn
