// Products that a recurrent pass repeats: weights packed once, and one gradient of a weight for all steps.
#include "autograd/ops_repeated.h"

#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_gemm.h"
#include "kernels/scratch.h"

namespace fovea {

struct RepeatedLinear::Pass {
  Var weight, bias;
  Tensor forward{}, backward{};  // the packed weight; undefined until it is needed
  int64_t rows = 0;              // of all calls
  // What calls have left for the weight's gradient, [rows, out] and [rows, in]; `filled` of them so far.
  Tensor d{}, x{};
  int64_t filled = 0;

  int64_t in() const { return weight.size(1); }
  int64_t out() const { return weight.size(0); }

  // [m, k] times the packed weight, [k, n].
  static Tensor product(const Tensor& a, const Tensor& packed, int64_t n) {
    const int64_t m = a.size(0), k = a.size(1);
    constexpr int64_t kFewRows = 256, kPart = int64_t{1} << 19, kParts = 8;
    Tensor c({m, n});
    if (m > kFewRows || k == 0) {
      kernels::gemm({.m = m,
                     .n = n,
                     .k = k,
                     .a = a.data(),
                     .lda = k,
                     .packed = k == 0 ? nullptr : packed.data(),
                     .c = c.data(),
                     .ldc = n});
      return c;
    }
    // Few rows stay together; columns are cut into parts that are worth a thread. Rows of such a length would share cache
    // sets, and are copied to where they do not.
    const float* rows = a.data();
    int64_t lda = k;
    if (k % 1024 == 0) {
      lda = k + 16;
      float* const apart = kernels::scratch_floats(0, m * lda);
      for (int64_t i = 0; i < m; ++i) std::copy_n(a.data() + i * k, k, apart + i * lda);
      rows = apart;
    }
    const kernels::PackedGemmKernels& kernels = kernels::packed_gemm_kernels();
    const int64_t panel = kernels.panel_columns, panels = (n + panel - 1) / panel;
    const int64_t part =
        panel * std::max(kPart / std::max<int64_t>(1, m * k * panel) + 1, (panels + kParts - 1) / kParts);
    parallel_for(n, part, [&](int64_t begin, int64_t end) {
      kernels.multiply({.m = m,
                        .n = n,
                        .k = k,
                        .column_begin = begin,
                        .column_end = end,
                        .a = rows,
                        .lda = lda,
                        .packed = packed.data(),
                        .c = c.data(),
                        .ldc = n});
    });
    return c;
  }
  // a weight^T, or with `back` a weight.
  Tensor times_weight(const Tensor& a, bool back) {
    Tensor& packed = back ? backward : forward;
    const int64_t n = back ? in() : out(), k = back ? out() : in();
    if (!packed.defined()) {
      packed = Tensor(Shape{kernels::packed_size(n, k)});
      const Tensor dense = weight.value().contiguous();
      kernels::pack_parallel({.transpose = !back, .n = n, .k = k, .b = dense.data(), .ldb = in()},
                             packed.data());
    }
    return product(a, packed, n);
  }

  // Keeps a call's x, and gives the place of its d, [rows, out], for the caller to fill.
  Tensor keep(const Tensor& x_rows) {
    if (!d.defined()) {
      d = Tensor({rows, out()});
      x = Tensor({rows, in()});
    }
    const int64_t count = x_rows.size(0), begin = filled;
    filled += count;
    x.narrow(0, begin, count).copy_from(x_rows);
    return d.narrow(0, begin, count);
  }

  Tensor weight_gradient() const {
    Tensor gradient(weight.shape());
    kernels::gemm({.transpose_a = true,
                   .m = out(),
                   .n = in(),
                   .k = filled,
                   .a = d.data(),
                   .lda = out(),
                   .b = x.data(),
                   .ldb = in(),
                   .c = gradient.data(),
                   .ldc = in()});
    return gradient;
  }

  // Gives the parameters their gradients, once all calls have left theirs.
  void finish() {
    if (filled == 0) return;
    if (weight.requires_grad()) weight.add_grad(weight_gradient());
    if (bias.requires_grad()) {
      const Tensor d_bias(bias.shape());
      kernels::bias_activation_backward(
          {.rows = filled, .columns = out(), .dy = d.data(), .d_bias = d_bias.data()});
      bias.add_grad(d_bias);
    }
    d = x = backward = {};
    filled = 0;
  }
};

RepeatedLinear::RepeatedLinear(const Var& weight, const Var& bias)
    : pass_(std::make_shared<Pass>(Pass{.weight = weight, .bias = bias})) {
  require(weight.rank() == 2, "linear: got a weight of shape ", weight.shape(), ", wanted [out, in]");
  require(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "linear: got a bias of shape ",
          bias.defined() ? bias.shape() : Shape{}, ", wanted [", weight.size(0), "]");
  joint_ = record({}, {weight, bias}, [pass = pass_](const Tensor&) { pass->finish(); });
}

Var RepeatedLinear::operator()(const Var& x, Activation activation) const {
  const std::shared_ptr<Pass> pass = pass_;
  const int64_t in = pass->in(), out = pass->out();
  require(x.rank() == 2 && x.size(1) == in, "linear: got input of shape ", x.shape(),
          " for a weight of shape ", pass->weight.shape(), ", wanted [rows, ", in, "]");
  const int64_t rows = x.size(0);
  const Tensor from = x.value().contiguous();
  const Tensor y = pass->times_weight(from, false);
  const bool recorded = recording({x, joint_});
  const Tensor before = recorded && activation != Activation::none && activation != Activation::relu
                            ? Tensor(y.shape())
                            : Tensor();
  if (pass->bias.defined() || activation != Activation::none)
    kernels::bias_activation({.activation = activation,
                              .rows = rows,
                              .columns = out,
                              .x = y.data(),
                              .bias = pass->bias.defined() ? pass->bias.value().data() : nullptr,
                              .before = before.defined() ? before.data() : nullptr,
                              .y = y.data()});
  if (!recorded) return Var(y);
  pass->rows += rows;
  return record(y, {x, joint_}, [=, joint = joint_](const Tensor& grad) {
    const bool keeps = joint.requires_grad(), plain = activation == Activation::none;
    const Tensor d = keeps ? pass->keep(from) : plain ? grad : Tensor(grad.shape());
    if (!plain)
      kernels::bias_activation_backward({.activation = activation,
                                         .rows = rows,
                                         .columns = out,
                                         .saved = before.defined() ? before.data() : y.data(),
                                         .dy = grad.data(),
                                         .dx = d.data()});
    else if (keeps)
      d.copy_from(grad);
    if (x.requires_grad()) x.add_grad(pass->times_weight(d, true));
  });
}

LstmState lstm_gates(const Var& input, const Var& product, const Var& added, const Var& c) {
  require(c.rank() == 2, "lstm: got cells of shape ", c.shape(), ", wanted [rows, hidden]");
  const int64_t rows = c.size(0), hidden = c.size(1);
  const Var parts[] = {input, product, added};
  std::vector<Tensor> from;  // rows may be parts of longer ones
  for (const Var& part : parts) {
    if (!part.defined()) continue;
    require(part.shape() == Shape{rows, 4 * hidden}, "lstm: got gates of shape ", part.shape(), ", wanted ",
            Shape{rows, 4 * hidden});
    from.push_back(part.value().stride(1) == 1 ? part.value() : part.value().contiguous());
  }
  if (!added.defined()) from.push_back(Tensor::zeros({1, 4 * hidden}));
  const Var parents[] = {input, product, added, c};
  const bool keeps = recording(parents);
  const Tensor h({rows, hidden}), next = c.value().clone(),
                                  gates = keeps ? Tensor({rows, 4 * hidden}) : Tensor();
  const auto row_of = [&](size_t part, int64_t row) {
    return from[part].data() + (from[part].size(0) == 1 ? 0 : row * from[part].stride(0));
  };
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, hidden));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      kernels::recurrent_kernels().forward_row(RecurrentCell::lstm,
                                               {.before = row_of(0, r),
                                                .product = row_of(1, r),
                                                .product_stride = hidden,
                                                .h_next = h.data() + r * hidden,
                                                .c = next.data() + r * hidden,
                                                .out = h.data() + r * hidden,
                                                .gates = keeps ? gates.data() + r * 4 * hidden : nullptr,
                                                .cells = keeps ? next.data() + r * hidden : nullptr},
                                               row_of(2, r), hidden);
  });
  const Tensor before = keeps ? c.value().contiguous() : Tensor();
  const std::vector<Var> results = record_many({h, next}, parents, [=](std::span<const Tensor> grads) {
    const Tensor d_h = grads[0].defined() ? grads[0].contiguous() : Tensor::zeros({rows, hidden});
    const Tensor d_c = grads[1].defined() ? grads[1].clone() : Tensor::zeros({rows, hidden});
    parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        kernels::recurrent_kernels().backward_row(RecurrentCell::lstm,
                                                  {.d_h = d_h.data() + r * hidden,
                                                   .d_c = d_c.data() + r * hidden,
                                                   .cells = next.data() + r * hidden,
                                                   .c_before = before.data() + r * hidden,
                                                   .gates = gates.data() + r * 4 * hidden,
                                                   .rows = gates.data() + r * 4 * hidden},
                                                  hidden);
    });
    for (const Var& part : {input, product, added}) part.add_grad(gates);
    c.add_grad(d_c);
  });
  return {results[0], results[1]};
}

}  // namespace fovea
