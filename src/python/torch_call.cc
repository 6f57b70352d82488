// Attention on tensors of PyTorch without libtorch: what a call needs besides its tensors is prepared once, and its results are
// tensors that PyTorch allocates. ops.py holds the ops and the autograd.Function around it.
#include "python/torch_call.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/host_threads.h"
#include "base/thread_limit.h"
#include "python/arrays.h"
#include "python/masks.h"
#include "python/openmp.h"
#include "python/tensors.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

constexpr size_t kSeed = kInputNames.size();  // the place after the inputs: an integer tensor

// While one lives, this thread's work runs on as many threads as PyTorch's would, and on the same.
struct TorchThreads {
  explicit TorchThreads(int count) : limit(count), host(openmp_threads()) {}
  const ThreadLimit limit;
  const HostThreads host;
};

// Whether x has these sizes and strides; a stride along a single element does not count.
bool is_laid_out(const StridedInput& x, const std::array<int64_t, 4>& sizes,
                 const std::array<int64_t, 4>& strides) {
  for (int i = 0; i < x.rank; ++i)
    if (x.sizes[i] != sizes[i] || (x.sizes[i] != 1 && x.strides[i] != strides[i])) return false;
  return true;
}

// Row-major, without gaps.
bool is_dense(const StridedInput& x) {
  std::array<int64_t, 4> strides{};
  int64_t stride = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= x.sizes[i];
  }
  return is_laid_out(x, x.sizes, strides);
}

nb::tuple tuple_of(const std::array<int64_t, 4>& values) {
  return nb::make_tuple(values[0], values[1], values[2], values[3]);
}

std::array<int64_t, 4> output_sizes(const AttentionSizes& s) {
  return {s.batch, s.heads, s.queries, s.dv};
}

void check_sizes(const char* name, const StridedOutput& x, const std::array<int64_t, 4>& sizes) {
  for (int i = 0; i < 4; ++i)
    require((i < x.rank ? x.sizes[i] : 1) == sizes[i], "attention: ", name,
            " has another size than attention() gave it");
}

// A call whose kernels take a few microseconds: less than to start threads, or to wait for anybody who gets the GIL meanwhile.
bool is_small(const AttentionSizes& s) {
  constexpr double kMultiplyAdds = 1 << 17;
  return static_cast<double>(s.batch) * static_cast<double>(s.heads) * static_cast<double>(s.queries) *
             static_cast<double>(s.keys) * static_cast<double>(s.d + s.dv) <=
         kMultiplyAdds;
}

// Runs `work` of these sizes. threads: torch.get_num_threads.
template <class Work>
void run(const AttentionSizes& sizes, nb::handle threads, const Work& work) {
  if (is_small(sizes)) {
    const ThreadLimit one(1);
    return work();
  }
  const int count = nb::cast<int>(threads());
  const nb::gil_scoped_release release;
  const TorchThreads guard(count);
  work();
}

// As Call::output_and_lse() gave it, or a tensor [B, H, Nq].
float* saved_lse(nb::handle lse, const AttentionSizes& s) {
  if (nb::isinstance<nb::capsule>(lse)) return static_cast<float*>(nb::borrow<nb::capsule>(lse).data());
  const StridedOutput found = tensor_view(lse);
  check_sizes("lse", found, {s.batch, s.heads, s.queries, 1});
  require(is_dense(input_view(lse)), "attention: lse has gaps in memory, wanted it as attention() gave it");
  return found.data;
}

// Everything of a call but its tensors, made once for many calls. The caller vouches for float32 tensors on the CPU.
class Call {
 public:
  // places: which input each tensor is, in the order of kInputNames; the last may be kSeed. mask: its number, or 0.
  Call(std::vector<size_t> places, std::string spec, Counts lengths, Counts query_lengths, Counts documents,
       int64_t mask, double dropout, bool training)
      : places_(std::move(places)) {
    for (const size_t place : places_)
      require(place <= kSeed, "attention: got place ", place, ", wanted at most ", kSeed);
    seeded_ = !places_.empty() && places_.back() == kSeed;
    if (seeded_) places_.pop_back();
    if (mask != 0) mask_ = find_mask(mask);
    const auto has = [&](size_t place) { return std::ranges::find(places_, place) != places_.end(); };
    text_ = {.spec = std::move(spec),
             .bias = has(3),
             .alibi = has(4),
             .sink = has(7),
             .dropout = static_cast<float>(dropout),
             .lengths = lengths.value_or(std::vector<int64_t>{}),
             .query_lengths = query_lengths.value_or(std::vector<int64_t>{}),
             .documents = documents.value_or(std::vector<int64_t>{}),
             .training = training};
  }

  // out and lse (or None) are filled.
  void forward(const nb::tuple& tensors, nb::handle out, nb::handle lse, int threads) {
    const Arguments in = arguments(tensors, 0);
    const StridedResults results{.out = tensor_view(out), .lse = tensor_view(lse).data};
    const nb::gil_scoped_release release;
    const TorchThreads guard(threads);
    in.prepared->forward(in.arrays, results, in.seed);
  }

  // The output as a new tensor. like: torch.empty_like; threads: torch.get_num_threads.
  nb::object output(const nb::tuple& tensors, nb::handle like, nb::handle threads) {
    return compute(tensors, like, nullptr, threads);
  }

  // (the output, the log-sum-exp for backward()): what nobody else reads need not be a tensor, which takes longer to make.
  nb::tuple output_and_lse(const nb::tuple& tensors, nb::handle like, nb::handle threads) {
    std::unique_ptr<float[]> lse;
    nb::object out = compute(tensors, like, &lse, threads);
    return nb::make_tuple(std::move(out), nb::capsule(lse.release(), [](void* memory) noexcept {
                            delete[] static_cast<float*>(memory);
                          }));
  }

  // saved: the output, then the tensors; lse: as output_and_lse() gave it, or a tensor. wanted: for each tensor whether its
  // gradient is, after an entry that does not count (Function.apply() is given the call first). Returns the gradients
  // in the order of `wanted`, each made by like(tensor), where the tensor is dense, or by like_view(tensor, whether it
  // is q, k or v).
  nb::tuple backward(const nb::tuple& saved, nb::handle lse, nb::handle d_out, const nb::tuple& wanted,
                     nb::handle like, nb::handle like_view, nb::handle threads) {
    const Arguments in = arguments(saved, 1);
    require(wanted.size() == saved.size(), "attention: got ", wanted.size(), " wishes for ", saved.size(),
            " tensors");
    const StridedResults results{.out = tensor_view(saved[0]), .lse = saved_lse(lse, in.prepared->sizes())};
    check_sizes("out", results.out, output_sizes(in.prepared->sizes()));
    const StridedInput d = input_view(d_out);
    StridedGradients to;
    nb::object gradients = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(wanted.size())));
    if (!gradients.is_valid()) throw nb::python_error();
    for (size_t i = 0; i < wanted.size(); ++i) {
      nb::object gradient = nb::none();
      if (i > 0 && i <= places_.size() && wanted[i].is(Py_True)) {
        const size_t place = places_[i - 1];
        gradient = is_dense(in.arrays.*members()[place]) ? like(saved[i])
                                                         : like_view(saved[i], nb::bool_(place < 3));
        to.*input_members<StridedOutput, StridedGradients>()[place] = tensor_view(gradient);
      }
      PyTuple_SetItem(gradients.ptr(), static_cast<Py_ssize_t>(i), gradient.release().ptr());
    }
    run(in.prepared->sizes(), threads, [&] { in.prepared->backward(in.arrays, results, d, to, in.seed); });
    return nb::borrow<nb::tuple>(gradients);
  }

  // weights: [B, heads, rows, Nk], filled.
  void weights(const nb::tuple& tensors, const std::vector<int32_t>& heads, const std::vector<int32_t>& rows,
               nb::handle weights, int threads) {
    const Arguments in = arguments(tensors, 0);
    float* const to = tensor_view(weights).data;
    const nb::gil_scoped_release release;
    const TorchThreads guard(threads);
    in.prepared->weights(in.arrays, heads, rows, to, in.seed);
  }

 private:
  struct Arguments {
    StridedInputs arrays;
    std::shared_ptr<const PreparedAttention> prepared;
    uint64_t seed = 0;
  };
  static std::array<StridedInput StridedInputs::*, kInputNames.size()> members() {
    return input_members<StridedInput, StridedInputs>();
  }

  // lse: null, or where it goes.
  nb::object compute(const nb::tuple& tensors, nb::handle like, std::unique_ptr<float[]>* lse,
                     nb::handle threads) {
    const Arguments in = arguments(tensors, 0);
    const AttentionSizes& s = in.prepared->sizes();
    // As _new_results() of ops.py: [B, Nq, H, Dv] in memory. Memory like that of q, if it is the same, is quicker to get.
    const std::array<int64_t, 4> sizes = output_sizes(s);
    const std::array<int64_t, 4> strides{s.queries * s.heads * s.dv, s.dv, s.heads * s.dv, 1};
    nb::object out = is_laid_out(in.arrays.q, sizes, strides)
                         ? like(tensors[0])
                         : tensors[0].attr("new_empty_strided")(tuple_of(sizes), tuple_of(strides));
    if (lse != nullptr)
      *lse = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(s.batch * s.heads * s.queries));
    const StridedResults results{.out = tensor_view(out), .lse = lse != nullptr ? lse->get() : nullptr};
    run(s, threads, [&] { in.prepared->forward(in.arrays, results, in.seed); });
    return out;
  }

  // tensors: from `first` on, one for each place.
  Arguments arguments(const nb::tuple& tensors, size_t first) {
    require(tensors.size() == first + places_.size() + (seeded_ ? 1 : 0), "attention: got ", tensors.size(),
            " tensors for ", places_.size(), " places");
    Arguments found;
    for (size_t i = 0; i < places_.size(); ++i)
      found.arrays.*members()[places_[i]] = input_view(tensors[first + i]);
    if (seeded_) found.seed = nb::cast<uint64_t>(tensors[first + places_.size()].attr("item")());
    const AttentionSizes sizes = attention_sizes(found.arrays.q, found.arrays.k, found.arrays.v);
    found.prepared = last_.lock();
    if (found.prepared == nullptr || found.prepared->sizes() != sizes)
      last_ = found.prepared = prepared_for(text_, sizes, mask_.get());
    return found;
  }

  std::vector<size_t> places_;
  bool seeded_;
  AttentionText text_;
  std::shared_ptr<SharedMask> mask_;
  std::weak_ptr<const PreparedAttention> last_;  // of the sizes met last; the cache keeps it. With the GIL.
};

}  // namespace

void add_torch_calls(nb::module_& module) {
  nb::class_<Call>(module, "Call")
      .def(nb::init<std::vector<size_t>, std::string, Counts, Counts, Counts, int64_t, double, bool>(),
           nb::arg("places"), nb::arg("spec"), nb::arg("lengths").none(), nb::arg("query_lengths").none(),
           nb::arg("documents").none(), nb::arg("mask"), nb::arg("dropout"), nb::arg("training"))
      .def("forward", &Call::forward, nb::arg("tensors"), nb::arg("out"), nb::arg("lse").none(),
           nb::arg("threads"))
      .def("output", &Call::output, nb::arg("tensors"), nb::arg("like"), nb::arg("threads"))
      .def("output_and_lse", &Call::output_and_lse, nb::arg("tensors"), nb::arg("like"), nb::arg("threads"))
      .def("backward", &Call::backward, nb::arg("saved"), nb::arg("lse"), nb::arg("d_out"), nb::arg("wanted"),
           nb::arg("like"), nb::arg("like_view"), nb::arg("threads"))
      .def("weights", &Call::weights, nb::arg("tensors"), nb::arg("heads"), nb::arg("rows"),
           nb::arg("weights"), nb::arg("threads"));
  module.def("set_plain_types", &set_plain_types, nb::arg("types"));
  module.def(
      "are_ready",
      [](nb::handle q, nb::handle k, nb::handle v) { return is_ready(q) && is_ready(k) && is_ready(v); },
      nb::arg("q").none(), nb::arg("k").none(), nb::arg("v").none());
}

}  // namespace fovea::python
