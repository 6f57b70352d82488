// A small captioning task on disk: pictures of two colours with a bright square in a corner, captions that say so, and
// an encoder with random weights in the files of a published MobileNet.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "data/pictures.h"
#include "io/file.h"
#include "models/mobilenet.h"

namespace fovea::models {

// STEM.f32 and STEM.manifest.tsv with Keras' names.
inline void write_mobilenet(const std::filesystem::path& stem, const MobileNetConfig& config, uint64_t seed) {
  Rng rng(seed);
  const MobileNet network(config, rng);
  // Norms that fit the weights, from pictures of random colours: a signal would otherwise die out layer by layer.
  {
    const NoGrad no_grad;
    nn::Context fitting{.training = true};
    Tensor pictures({32, 32, 32, 3});
    for (int64_t i = 0; i < pictures.count(); ++i)
      if (i % (16 * 32 * 3) < 3)
        pictures.data()[i] = 2 * rng.uniform() - 1;
      else
        pictures.data()[i] = pictures.data()[i - 3];
    for (int pass = 0; pass < 60; ++pass) network(Var(pictures), fitting);
  }
  std::ofstream floats(stem.string() + ".f32", std::ios::binary), manifest(stem.string() + ".manifest.tsv");
  int64_t offset = 0;
  for (const nn::NamedParameter& parameter : network.state()) {
    std::string layer = "conv1", name = parameter.name;
    if (name.starts_with("blocks.")) {
      const size_t dot = name.find('.', 7);
      const std::string number = std::to_string(std::stoi(name.substr(7, dot - 7)) + 1);
      name = name.substr(dot + 1);
      layer = (name.starts_with("depthwise") || name.starts_with("norm1") ? "conv_dw_" : "conv_pw_") + number;
    }
    Tensor value = parameter.value.value();
    const bool depthwise = name.starts_with("depthwise");
    if (name.find("norm") == std::string::npos) {
      value = value
                  .permute(depthwise ? std::initializer_list<int>{2, 3, 0, 1}
                                     : std::initializer_list<int>{2, 3, 1, 0})
                  .contiguous();
      layer += depthwise ? "/depthwise_kernel" : "/kernel";
    } else {
      layer += name.ends_with("running_mean")  ? "_bn/moving_mean"
               : name.ends_with("running_var") ? "_bn/moving_variance"
               : name.ends_with("weight")      ? "_bn/gamma"
                                               : "_bn/beta";
    }
    std::string shape;
    for (int i = 0; i < value.rank(); ++i) shape += (i > 0 ? "x" : "") + std::to_string(value.size(i));
    const int64_t bytes = value.count() * static_cast<int64_t>(sizeof(float));
    manifest << layer << '\t' << shape << '\t' << offset << '\t' << bytes << '\n';
    floats.write(reinterpret_cast<const char*>(value.data()), bytes);
    offset += bytes;
  }
}

// folder/images/0.png ...; folder/captions.txt (Flickr's form, two captions each); folder/train.txt, folder/valid.txt;
// folder/encoder.f32 and .manifest.tsv: 5 blocks, a quarter of the width; 4 x 4 x 64 for pictures of 32 pixels.
inline void write_captioned_pictures(const std::filesystem::path& folder, int count) {
  std::filesystem::create_directories(folder / "images");
  std::ofstream captions(folder / "captions.txt"), train(folder / "train.txt"), valid(folder / "valid.txt");
  Rng rng(7);
  for (int i = 0; i < count; ++i) {
    const bool red = i % 2 == 0, left = i / 2 % 2 == 0;
    std::vector<uint8_t> pixels(3 * 32 * 32);
    for (int y = 0; y < 32; ++y)
      for (int x = 0; x < 32; ++x) {
        const bool square = y < 16 && (left ? x < 16 : x >= 16);
        for (int c = 0; c < 3; ++c)
          pixels[static_cast<size_t>(3 * (32 * y + x) + c)] =
              static_cast<uint8_t>((square               ? 200
                                    : c == (red ? 0 : 2) ? 120
                                                         : 10) +
                                   rng.below(10));
      }
    const std::string name = std::to_string(i) + ".png";
    write_atomically(folder / "images" / name, data::png_bytes(32, 32, pixels));
    const std::string colour = red ? "red" : "blue", side = left ? "left" : "right";
    captions << name << "#0\tA square on the " << side << " of a " << colour << " picture .\n"
             << name << "#1\tThe " << colour << " picture has a square on the " << side << " .\n";
    (i < count - 8 ? train : valid) << name << '\n';
  }
  write_mobilenet(folder / "encoder", {.width = 0.25f, .blocks = 5}, 3);
}

}  // namespace fovea::models
