#include "autograd/ops_rows.h"

#include <algorithm>

#include "kernels/vector/elementwise.h"
#include "kernels/vector/rows.h"

namespace fovea {
namespace {

void check_ids(const char* op, const Shape& shape, std::span<const int32_t> ids, int64_t bound) {
  for (const int32_t id : ids)
    require(id >= 0 && id < bound, op, ": got number ", id, " for shape ", shape, ", wanted 0 to ",
            bound - 1);
}

}  // namespace

Var embedding(const Var& table, std::span<const int32_t> ids, const EmbeddingOptions& options) {
  require(table.rank() == 2, "embedding: got a table of shape ", table.shape(), ", wanted [n, d]");
  const int64_t rows = table.size(0), d = table.size(1), count = static_cast<int64_t>(ids.size());
  const int32_t padding = options.padding;
  const float scale = options.scale;
  const Var& added = options.added;
  for (const int32_t id : ids)
    require((id >= 0 && id < rows) || id == padding, "embedding: got id ", id, " for a table of shape ",
            table.shape(), ", wanted 0 to ", rows - 1);
  require(!added.defined() || added.shape() == Shape{count, d}, "embedding: got vectors to add of shape ",
          added.defined() ? added.shape() : Shape{}, ", wanted ", Shape{count, d});
  const Tensor weights = table.value().contiguous();
  const Tensor y({count, d});
  if (std::find(ids.begin(), ids.end(), padding) == ids.end()) {
    kernels::gather_rows(weights.data(), d, ids, y.data());
  } else {
    for (int64_t i = 0; i < count; ++i) {
      float* row = y.data() + i * d;
      const int32_t id = ids[static_cast<size_t>(i)];
      if (id == padding)
        std::fill(row, row + d, 0.0f);
      else
        std::copy_n(weights.data() + id * d, d, row);
    }
  }
  if (scale != 1) kernels::scale(scale, y.data(), y.data(), y.count());
  if (added.defined()) kernels::axpy(1, added.value().contiguous().data(), y.data(), y.count());
  if (!recording({table, added})) return Var(y);
  std::vector<int32_t> kept(ids.begin(), ids.end());
  return record(y, {table, added},
                [table, added, kept = std::move(kept), padding, scale, d](const Tensor& grad) {
                  if (added.requires_grad()) added.add_grad(grad);
                  if (!table.requires_grad()) return;
                  kernels::RowGroups groups = kernels::group_rows(kept, padding);
                  Tensor sums({static_cast<int64_t>(groups.rows.size()), d});
                  kernels::sum_groups(groups, grad.data(), d, sums.data());
                  if (scale != 1) kernels::scale(scale, sums.data(), sums.data(), sums.count());
                  table.add_grad(RowSparse{std::move(groups.rows), std::move(sums)});
                });
}

Var gather(const Var& x, std::span<const int32_t> ids) {
  require(x.rank() >= 1, "gather: got a single number, wanted [n, ...]");
  check_ids("gather", x.shape(), ids, x.size(0));
  const int64_t row_size = x.shape().count(1, x.rank());
  Shape shape = x.shape();
  shape.set(0, static_cast<int64_t>(ids.size()));
  const Tensor y(shape);
  kernels::gather_rows(x.value().contiguous().data(), row_size, ids, y.data());
  std::vector<int32_t> kept(ids.begin(), ids.end());
  return record(y, {x}, [x, kept = std::move(kept), row_size](const Tensor& grad) {
    kernels::scatter_add_rows(grad.data(), row_size, kept, x.grad_buffer().data());
  });
}

Var pick(const Var& x, std::span<const int32_t> columns) {
  require(x.rank() == 2 && x.size(0) == static_cast<int64_t>(columns.size()), "pick: got shape ", x.shape(),
          " and ", columns.size(), " columns, wanted [rows, n] and one column per row");
  const int64_t rows = x.size(0), n = x.size(1);
  check_ids("pick", x.shape(), columns, n);
  const Tensor y(Shape{rows}), from = x.value().contiguous();
  for (int64_t r = 0; r < rows; ++r) y.data()[r] = from.data()[r * n + columns[static_cast<size_t>(r)]];
  std::vector<int32_t> kept(columns.begin(), columns.end());
  return record(y, {x}, [x, kept = std::move(kept), rows, n](const Tensor& grad) {
    float* dx = x.grad_buffer().data();
    for (int64_t r = 0; r < rows; ++r) dx[r * n + kept[static_cast<size_t>(r)]] += grad.data()[r];
  });
}

}  // namespace fovea
