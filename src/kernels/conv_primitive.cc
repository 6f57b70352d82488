#include "kernels/conv_primitive.h"

#include <omp.h>

#include <array>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "base/error.h"

namespace fovea::kernels {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::stream& stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

// oneDNN prepares and runs for as many threads as OpenMP would start: one, since chunks are ours. Asked at
// every call: what is set inside a parallel region is forgotten at its end.
void stay_on_this_thread() {
  omp_set_num_threads(1);
}

// What all three passes are described by. Images are named [N, C, H, W] and stored channels last.
struct Description {
  Description(const ConvShape& s, bool with_bias)
      : x({s.images, s.channels, s.height, s.width}, kFloat, Tag::nhwc),
        y({s.images, s.filters, s.out_height(), s.out_width()}, kFloat, Tag::nhwc),
        weight_sizes{s.filters, s.channels, s.kernel_h, s.kernel_w},
        strides{s.stride_h, s.stride_w},
        dilation{s.dilation_h - 1, s.dilation_w - 1},
        before{s.top, s.left},
        after{s.bottom, s.right} {
    if (s.groups > 1)
      weight_sizes = {s.groups, s.filters / s.groups, s.channels / s.groups, s.kernel_h, s.kernel_w};
    weight = memory::desc(weight_sizes, kFloat, Tag::any);
    plain_weight = memory::desc(weight_sizes, kFloat, s.groups > 1 ? Tag::goihw : Tag::oihw);
    if (with_bias) bias = memory::desc({s.filters}, kFloat, Tag::x);
  }
  memory::desc x, y, weight, plain_weight, bias;
  memory::dims weight_sizes, strides, dilation, before, after;
};

dnnl::primitive_attr attributes() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

#if DNNL_VERSION_MAJOR >= 3
dnnl::convolution_forward::primitive_desc forward_of(const Description& d) {
  return {engine(),   dnnl::prop_kind::forward_training,
          kDirect,    d.x,
          d.weight,   d.bias,
          d.y,        d.strides,
          d.dilation, d.before,
          d.after,    attributes()};
}
dnnl::convolution_backward_data::primitive_desc backward_data_of(const Description& d) {
  return {engine(),   kDirect,  d.x,     d.weight,      d.y,         d.strides,
          d.dilation, d.before, d.after, forward_of(d), attributes()};
}
dnnl::convolution_backward_weights::primitive_desc backward_weights_of(const Description& d) {
  return {engine(),  kDirect,    d.x,      d.weight, d.bias,        d.y,
          d.strides, d.dilation, d.before, d.after,  forward_of(d), attributes()};
}
#else
dnnl::convolution_forward::primitive_desc forward_of(const Description& d) {
  return {{dnnl::prop_kind::forward_training, kDirect, d.x, d.weight, d.bias, d.y, d.strides, d.dilation,
           d.before, d.after},
          attributes(),
          engine()};
}
dnnl::convolution_backward_data::primitive_desc backward_data_of(const Description& d) {
  return {{kDirect, d.x, d.weight, d.y, d.strides, d.dilation, d.before, d.after},
          attributes(),
          engine(),
          forward_of(d)};
}
dnnl::convolution_backward_weights::primitive_desc backward_weights_of(const Description& d) {
  return {{kDirect, d.x, d.weight, d.bias, d.y, d.strides, d.dilation, d.before, d.after},
          attributes(),
          engine(),
          forward_of(d)};
}
#endif

// Memory for the primitives of this thread while they run.
void* scratchpad(size_t bytes) {
  struct Pad {
    void* data = nullptr;
    size_t bytes = 0;
    ~Pad() { std::free(data); }
  };
  thread_local Pad pad;
  if (pad.bytes < bytes) {
    std::free(pad.data);
    pad.bytes = (bytes + 4095) / 4096 * 4096;
    pad.data = std::aligned_alloc(4096, pad.bytes);
    if (pad.data == nullptr) {
      pad.bytes = 0;
      fail("convolution: no memory for ", bytes, " bytes of scratch");
    }
  }
  return pad.data;
}

// Memory of a description, whose address is given at every run.
memory place_of(const memory::desc& description) {
  return memory(description, engine(), nullptr);
}

}  // namespace

struct ConvPrimitive::Parts {
  dnnl::primitive primitive;
  memory x, y, packed, bias, scratch, plain;
  memory::desc packed_order;
  size_t scratch_bytes = 0;
  std::array<dnnl_exec_arg_t, 5> arguments;
  int argument_count = 0;
  dnnl::reorder to_packed, to_plain;

  template <class Primitive, class Descriptor>
  void take(const Descriptor& descriptor) {
    primitive = Primitive(descriptor);
    scratch = place_of(descriptor.scratchpad_desc());
    scratch_bytes = descriptor.scratchpad_desc().get_size();
  }
  void add(int name, const memory& value) { arguments[argument_count++] = {name, value.get()}; }
};

ConvPrimitive::ConvPrimitive(ConvPass pass, const ConvShape& shape, bool with_bias)
    : parts_(std::make_unique<Parts>()) {
  stay_on_this_thread();
  Parts& p = *parts_;
  try {
    const Description d(shape, with_bias);
    memory::desc packed;
    switch (pass) {
      case ConvPass::forward: {
        const auto descriptor = forward_of(d);
        p.take<dnnl::convolution_forward>(descriptor);
        packed = descriptor.weights_desc();
        break;
      }
      case ConvPass::backward_data: {
        const auto descriptor = backward_data_of(d);
        p.take<dnnl::convolution_backward_data>(descriptor);
        packed = descriptor.weights_desc();
        break;
      }
      case ConvPass::backward_weights: {
        const auto descriptor = backward_weights_of(d);
        p.take<dnnl::convolution_backward_weights>(descriptor);
        packed = descriptor.diff_weights_desc();
        break;
      }
    }
    p.x = place_of(d.x);
    p.y = place_of(d.y);
    p.packed = place_of(packed);
    p.packed_order = packed;
    p.plain = place_of(d.plain_weight);
    if (pass == ConvPass::backward_weights)
      p.to_plain = dnnl::reorder(p.packed, p.plain);
    else
      p.to_packed = dnnl::reorder(p.plain, p.packed);
    const bool forward = pass == ConvPass::forward, weights = pass == ConvPass::backward_weights;
    p.add(pass == ConvPass::backward_data ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, p.x);
    p.add(forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, p.y);
    p.add(weights ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, p.packed);
    p.add(DNNL_ARG_SCRATCHPAD, p.scratch);
    if (with_bias) {
      p.bias = place_of(d.bias);
      p.add(weights ? DNNL_ARG_DIFF_BIAS : DNNL_ARG_BIAS, p.bias);
    }
  } catch (const dnnl::error& error) {
    fail("convolution: oneDNN cannot do ", shape.kernel_h, " x ", shape.kernel_w, " over ", shape.height,
         " x ", shape.width, " of ", shape.channels, " channels: ", error.what());
  }
}

ConvPrimitive::~ConvPrimitive() = default;
ConvPrimitive::ConvPrimitive(ConvPrimitive&&) noexcept = default;

int64_t ConvPrimitive::packed_floats() const {
  return static_cast<int64_t>(parts_->packed_order.get_size() / sizeof(float));
}

bool ConvPrimitive::packs_like(const ConvPrimitive& other) const {
  return parts_->packed_order == other.parts_->packed_order;
}

namespace {

// oneDNN's handles are not const, whatever is done with them.
void put(memory& place, const float* data) {
  place.set_data_handle(const_cast<float*>(data));
}

void move(dnnl::reorder& reorder, memory& from, memory& to) {
  stay_on_this_thread();
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
  FOVEA_ASSERT(dnnl_primitive_execute(reorder.get(), stream().get(), 2, arguments) == dnnl_success);
}

}  // namespace

void ConvPrimitive::pack(const float* weight, float* packed) {
  put(parts_->plain, weight);
  put(parts_->packed, packed);
  move(parts_->to_packed, parts_->plain, parts_->packed);
}

void ConvPrimitive::unpack(const float* packed, float* weight) {
  put(parts_->packed, packed);
  put(parts_->plain, weight);
  move(parts_->to_plain, parts_->packed, parts_->plain);
}

void ConvPrimitive::run(const Call& call) {
  stay_on_this_thread();
  Parts& p = *parts_;
  put(p.x, call.x);
  put(p.y, call.y);
  put(p.packed, call.packed);
  if (p.bias) put(p.bias, call.bias);
  p.scratch.set_data_handle(p.scratch_bytes > 0 ? scratchpad(p.scratch_bytes) : nullptr);
  FOVEA_ASSERT(dnnl_primitive_execute(p.primitive.get(), stream().get(), p.argument_count,
                                      p.arguments.data()) == dnnl_success);
}

namespace {

struct Key {
  ConvPass pass;
  bool with_bias;
  ConvShape shape;
  friend bool operator==(const Key&, const Key&) = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    const ConvShape& s = key.shape;
    size_t hash = static_cast<size_t>(key.pass) * 2 + key.with_bias;
    for (const int64_t size :
         {s.images, s.height, s.width, s.channels, s.filters, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w,
          s.dilation_h, s.dilation_w, s.top, s.bottom, s.left, s.right, s.groups})
      hash = hash * 0x9E3779B97F4A7C15u + static_cast<size_t>(size);
    return hash;
  }
};

}  // namespace

ConvPrimitive& conv_primitive(ConvPass pass, const ConvShape& shape, bool with_bias) {
  // A network has some dozens; pictures of ever new sizes must not fill the memory.
  constexpr size_t kMost = 512;
  thread_local std::unordered_map<Key, ConvPrimitive, KeyHash> kept;
  const Key key{pass, with_bias, shape};
  const auto found = kept.find(key);
  if (found != kept.end()) return found->second;
  if (kept.size() >= kMost) kept.clear();
  return kept.emplace(key, ConvPrimitive(pass, shape, with_bias)).first->second;
}

}  // namespace fovea::kernels
