#include "autograd/ops_tokens.h"

#include <vector>

#include "kernels/elementwise.h"
#include "kernels/rows.h"

namespace fovea {

Var embed_tokens(const Var& table, std::span<const int32_t> ids, float scale, const Var& added) {
  require(table.rank() == 2, "embedding: got a table of shape ", table.shape(), ", wanted [vocabulary, d]");
  const int64_t vocabulary = table.size(0), d = table.size(1);
  for (const int32_t id : ids)
    require(id >= 0 && id < vocabulary, "embedding: id ", id, ", wanted 0 to ", vocabulary - 1);
  const Shape shape{static_cast<int64_t>(ids.size()), d};
  require(!added.defined() || added.shape() == shape, "embedding: got positions of shape ",
          added.defined() ? added.shape() : Shape{}, ", wanted ", shape);
  const Tensor rows = table.value().contiguous();
  Tensor y(shape);
  kernels::gather_rows(rows.data(), d, ids, y.data());
  if (scale != 1) kernels::scale(scale, y.data(), y.data(), y.count());
  if (added.defined()) kernels::axpy(1, added.value().contiguous().data(), y.data(), y.count());
  const std::vector<int32_t> kept(ids.begin(), ids.end());
  return record(std::move(y), {table, added}, [=](const Tensor& grad) {
    if (added.requires_grad()) added.add_grad(grad);
    if (!table.requires_grad()) return;
    kernels::RowGroups groups = kernels::group_rows(kept);
    Tensor sums({static_cast<int64_t>(groups.rows.size()), d});
    kernels::sum_groups(groups, grad.data(), d, sums.data());
    if (scale != 1) kernels::scale(scale, sums.data(), sums.data(), sums.count());
    table.add_grad(RowSparse{std::move(groups.rows), std::move(sums)});
  });
}

}  // namespace fovea
