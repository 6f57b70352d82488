// Weight matrices that are applied to one input, and their prepared form.
//
// A layer owns parameters. While a model is in use (nn::Prepared) its layers also hold them prepared, as
// float32 or int8; what runs without the tape then uses the prepared form, whose result for a row does not
// depend on the other rows of the call.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include "autograd/ops_linear.h"
#include "nn/prepared_linear.h"

namespace fovea::nn {

class Projection {
 public:
  struct Part {
    Var weight;  // [out, in]; undefined: the part is left out
    Var bias{};  // [out]; undefined: zeros
  };
  // The parts, one below the other. Called when they are needed, so that views of parameters are of the
  // parameters' present values.
  using Parts = std::function<std::vector<Part>()>;

  explicit Projection(Parts parts) : parts_(std::move(parts)) {}
  Projection(const Projection&) = delete;
  Projection& operator=(const Projection&) = delete;

  // x: [..., in] -> activation(x weight^T + bias): [..., out], with the tape or without.
  Var operator()(const Var& x, Activation activation = Activation::none) const;
  // The prepared form, where there is one and this thread records nothing; null otherwise.
  const PreparedLinear* in_use() const;
  // Without the tape and activation, into memory for rows * out floats. x: [..., in].
  void write(const Tensor& x, float* y) const;

  // Prepares the weights as they are now. Calls nest: the form is dropped by the last release(). Without a kind of
  // product: as it is already, or else float32. Throws Error when it is prepared already with another kind.
  void prepare(std::optional<Compute> compute);
  void release();

 private:
  Parts parts_;
  std::optional<PreparedLinear> prepared_;
  Compute compute_ = Compute::float32;
  std::atomic<int> uses_ = 0;
};

// x: [..., in] through a prepared layer.
Var apply(const PreparedLinear& layer, const Var& x, Activation activation = Activation::none);

}  // namespace fovea::nn
