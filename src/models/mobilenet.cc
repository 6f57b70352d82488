// MobileNet-v1: its blocks, and its published weights read from a manifest and a file of floats.
#include "models/mobilenet.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>

#include "autograd/ops.h"
#include "io/file.h"
#include "io/json.h"
#include "nn/norm_in_place.h"

namespace fovea::models {
namespace {

constexpr float kEpsilon = 1e-3f;
constexpr int64_t kFirst = 32;
struct BlockSize {
  int64_t channels, stride;
};
constexpr std::array<BlockSize, 13> kBlocks{{{64, 1},
                                             {128, 2},
                                             {128, 1},
                                             {256, 2},
                                             {256, 1},
                                             {512, 2},
                                             {512, 1},
                                             {512, 1},
                                             {512, 1},
                                             {512, 1},
                                             {512, 1},
                                             {1024, 2},
                                             {1024, 1}}};

// As TensorFlow counts: at least 8.
int64_t scaled(const MobileNetConfig& config, int64_t channels) {
  return std::max<int64_t>(8, static_cast<int64_t>(static_cast<float>(channels) * config.width));
}

const MobileNetConfig& checked(const MobileNetConfig& c) {
  require(c.width > 0 && c.width <= 8, "mobilenet: width is ", c.width, ", wanted more than 0, at most 8");
  require(c.blocks >= 1 && c.blocks <= static_cast<int64_t>(kBlocks.size()), "mobilenet: blocks is ",
          c.blocks, ", wanted 1 to ", kBlocks.size());
  return c;
}

Var same_conv(const nn::Conv2d& conv, const Var& x) {
  Conv2dOptions options = conv.options;
  options.padding =
      same_padding({x.size(1), x.size(2)}, {conv.weight.size(2), conv.weight.size(3)}, options.stride);
  return conv2d(x, conv.weight, {}, options);
}

}  // namespace

MobileNet::Block::Block(int64_t in, int64_t out, int64_t stride, Rng& rng)
    : depthwise(in, in, 3, rng, {.stride = stride, .groups = in}, false),
      norm1(in, kEpsilon),
      pointwise(in, out, 1, rng, {}, false),
      norm2(out, kEpsilon) {
  add_child("depthwise", depthwise);
  add_child("norm1", norm1);
  add_child("pointwise", pointwise);
  add_child("norm2", norm2);
}

MobileNet::MobileNet(const MobileNetConfig& config, Rng& rng)
    : conv_(3, scaled(checked(config), kFirst), 3, rng, {.stride = 2}, false),
      norm_(scaled(config, kFirst), kEpsilon) {
  add_child("conv", conv_);
  add_child("norm", norm_);
  int64_t in = scaled(config, kFirst);
  for (int64_t i = 0; i < config.blocks; ++i) {
    const auto& [channels, stride] = kBlocks[static_cast<size_t>(i)];
    blocks_.push_back(std::make_unique<Block>(in, scaled(config, channels), stride, rng));
    add_child("blocks." + std::to_string(i), *blocks_.back());
    in = scaled(config, channels);
  }
}

Var MobileNet::operator()(const Var& x, const nn::Context& context) const {
  require(x.rank() == 4 && x.size(3) == 3, "mobilenet: got pictures of shape ", x.shape(),
          ", wanted [pictures, height, width, 3]");
  const auto layer = [&](const nn::Conv2d& conv, const nn::BatchNorm2d& norm, const Var& in) {
    return nn::norm_in_place(norm, same_conv(conv, in), context, NormActivation::relu6);
  };
  Var y = layer(conv_, norm_, x);
  for (const auto& block : blocks_)
    y = layer(block->pointwise, block->norm2, layer(block->depthwise, block->norm1, y));
  return y;
}

int64_t MobileNet::out_channels() const {
  return blocks_.back()->pointwise.weight.size(0);
}

int64_t MobileNet::out_side(int64_t side) const {
  const auto strided = [&](const nn::Conv2d& conv) {
    side = (side + conv.options.stride.h - 1) / conv.options.stride.h;
  };
  strided(conv_);
  for (const auto& block : blocks_) strided(block->depthwise);
  return side;
}

namespace {

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "3x3x8x1"; false when it is not so, or the tensor would not fit into `most` floats.
bool parse_shape(std::string_view text, uint64_t most, Shape& shape) {
  uint64_t count = 1;
  for (;;) {
    const size_t end = std::min(text.find('x'), text.size());
    int64_t size = 0;
    if (!parse_number(text.substr(0, end), size) || size < 1 || shape.rank() == Shape::kMaxRank) return false;
    if (static_cast<uint64_t>(size) > most / count) return false;
    count *= static_cast<uint64_t>(size);
    shape.push_back(size);
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

// The name of one of the network's tensors in a manifest: TensorFlow's slim, and Keras.
struct PublishedNames {
  std::string slim, keras;
};

PublishedNames published(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string_view part = name.substr(dot + 1);
  std::string_view layer = name.substr(0, dot);
  std::string slim = "MobilenetV1/Conv2d_0", keras = "conv1";
  bool depthwise = false;
  if (layer.starts_with("blocks.")) {
    layer.remove_prefix(7);
    int number = 0;
    std::from_chars(layer.data(), layer.data() + layer.size(), number);
    layer.remove_prefix(layer.find('.') + 1);
    depthwise = layer == "depthwise" || layer == "norm1";
    slim = message("MobilenetV1/Conv2d_", number + 1, depthwise ? "_depthwise" : "_pointwise");
    keras = message(depthwise ? "conv_dw_" : "conv_pw_", number + 1);
  }
  if (!layer.starts_with("norm"))
    return {slim + (depthwise ? "/depthwise_weights" : "/weights"),
            keras + (depthwise ? "/depthwise_kernel" : "/kernel")};
  const char* const moment = part == "weight"         ? "gamma"
                             : part == "bias"         ? "beta"
                             : part == "running_mean" ? "moving_mean"
                                                      : "moving_variance";
  return {message(slim, "/BatchNorm/", moment), message(keras, "_bn/", moment)};
}

}  // namespace

std::vector<ManifestEntry> parse_manifest(std::string_view text, uint64_t data_bytes,
                                          const std::string& where) {
  std::vector<ManifestEntry> entries;
  for (int64_t line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::array<std::string_view, 4> columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      const size_t tab = i + 1 < columns.size() ? rest.find('\t') : rest.size();
      require(tab != std::string_view::npos, where, ", line ", line,
              ": wanted name, shape, first byte and bytes between tabs");
      columns[i] = rest.substr(0, tab);
      rest.remove_prefix(std::min(tab + 1, rest.size()));
    }
    ManifestEntry entry{std::string(columns[0]), {}, 0};
    uint64_t bytes = 0;
    require(parse_shape(columns[1], data_bytes / sizeof(float), entry.shape) &&
                parse_number(columns[2], entry.offset) && parse_number(columns[3], bytes) &&
                bytes == static_cast<uint64_t>(entry.shape.count()) * sizeof(float) && bytes <= data_bytes &&
                entry.offset <= data_bytes - bytes,
            where, ", line ", line, ": ", in_quotes(entry.name), " does not lie within ", data_bytes,
            " bytes of floats");
    entries.push_back(std::move(entry));
  }
  return entries;
}

MobileNetConfig mobilenet_config(const std::filesystem::path& stem, int64_t blocks) {
  const std::string where = stem.string() + ".manifest.tsv";
  const MappedFile data(stem.string() + ".f32");
  const auto [slim, keras] = published("conv.weight");
  for (const ManifestEntry& entry : parse_manifest(read_text(where), data.bytes().size(), where))
    if ((entry.name == slim || entry.name == keras) && entry.shape.rank() == 4)
      return checked({.width = static_cast<float>(entry.shape[3]) / kFirst, .blocks = blocks});
  fail(where, ": neither ", in_quotes(slim), " nor ", in_quotes(keras),
       "; wanted the weights of a MobileNet");
}

void load_mobilenet(const MobileNet& network, const std::filesystem::path& stem) {
  const std::string where = stem.string() + ".manifest.tsv";
  const MappedFile data(stem.string() + ".f32");
  std::map<std::string, ManifestEntry> found;
  for (ManifestEntry& entry : parse_manifest(read_text(where), data.bytes().size(), where))
    found.insert_or_assign(entry.name, std::move(entry));
  nn::load_parameters(network, [&](std::string_view name) {
    const auto [slim, keras] = published(name);
    const auto place = found.contains(slim) ? found.find(slim) : found.find(keras);
    require(place != found.end(), where, ": neither ", in_quotes(slim), " nor ", in_quotes(keras),
            "; keep fewer blocks or take another file");
    const Tensor tensor(place->second.shape);
    std::memcpy(tensor.data(), data.bytes().data() + place->second.offset,
                static_cast<size_t>(tensor.count()) * sizeof(float));
    if (tensor.rank() != 4) return tensor;
    // [h, w, channels, filters], or [h, w, channels, 1] of a depthwise one.
    const bool depthwise = slim.ends_with("depthwise_weights");
    return tensor.permute(depthwise ? std::initializer_list<int>{2, 3, 0, 1}
                                    : std::initializer_list<int>{3, 2, 0, 1});
  });
}

}  // namespace fovea::models
