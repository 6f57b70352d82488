// Arithmetic and functions element by element.
#pragma once

#include "autograd/var.h"

namespace fovea {

// Shapes broadcast: sizes of 1 and missing leading dimensions repeat.
Var operator+(const Var& a, const Var& b);
Var operator-(const Var& a, const Var& b);
Var operator*(const Var& a, const Var& b);
Var operator/(const Var& a, const Var& b);

Var operator+(const Var& x, float number);
Var operator-(const Var& x, float number);
Var operator*(const Var& x, float number);
Var operator/(const Var& x, float number);
inline Var operator+(float number, const Var& x) {
  return x + number;
}
inline Var operator*(float number, const Var& x) {
  return x * number;
}
Var operator-(float number, const Var& x);
Var operator/(float number, const Var& x);
inline Var operator-(const Var& x) {
  return x * -1.0f;
}

Var relu(const Var& x);
Var gelu(const Var& x);       // x Phi(x), with the error function
Var gelu_tanh(const Var& x);  // its approximation by tanh
Var silu(const Var& x);       // x sigmoid(x)
Var tanh(const Var& x);
Var sigmoid(const Var& x);
Var exp(const Var& x);
Var log(const Var& x);

}  // namespace fovea
