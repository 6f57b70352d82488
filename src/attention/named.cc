#include "attention/named.h"

#include "base/error.h"

namespace fovea {

Pattern longformer(const Longformer& options) {
  require(options.window >= 0 && options.window % 2 == 0, "longformer: window: got ", options.window,
          ", wanted an even number: half of it is on either side");
  const Pattern local = window(options.window / 2, options.window / 2, options.dilation);
  return options.global.empty() ? local : local | global(options.global);
}

Pattern bigbird(const BigBird& options) {
  require(options.window >= 1 && options.window % 2 == 1, "bigbird: window: got ", options.window,
          " blocks, wanted an odd number: the own block and as many on either side");
  require(options.added >= 0, "bigbird: added tokens: got ", options.added, ", wanted 0 or more");
  Pattern pattern = block_window(options.block, options.window / 2, options.window / 2);
  if (options.random > 0) pattern = pattern | random_blocks(options.block, options.random, options.seed);
  if (options.added > 0) pattern = pattern | global_range(0, options.added - 1);
  return options.global.empty() ? pattern : pattern | global(options.global);
}

Pattern sparse_strided(int64_t stride, bool merged) {
  return merged ? causal() & (window(stride - 1, 0) | strided(stride))
                : heads({window(stride - 1, 0), causal() & strided(stride)});
}

Pattern sparse_fixed(int64_t stride, int64_t summary) {
  return causal() & fixed(stride, summary);
}

Pattern streaming(int64_t size, int64_t sinks) {
  require(size >= 1, "streaming: window: got ", size, ", wanted at least 1: the token itself");
  require(sinks >= 0, "streaming: sinks: got ", sinks, ", wanted 0 or more");
  return sinks == 0 ? window(size - 1, 0) : causal() & (window(size - 1, 0) | global_range(0, sinks - 1));
}

Pattern local_m(int64_t reach) {
  return window(reach, reach, 1, Align::top_left);
}

}  // namespace fovea
