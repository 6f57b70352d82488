#include "tasks/image_classifier.h"

#include <algorithm>

#include "io/file.h"
#include "io/safetensors.h"
#include "models/registry.h"
#include "nn/int8_weights.h"
#include "nn/weights.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kMostSide = 4096;

}  // namespace

ImageClassifierParts load_image_classifier(const std::filesystem::path& folder, const std::string& compute) {
  const Compute kind = compute_named(compute);
  const FolderConfig config = read_folder_config(folder, "image");
  const std::string where = (folder / "config.json").string();
  ImageClassifierParts parts;
  parts.model = config.model;
  parts.config = config.settings;
  const auto read = [&](const char* name, auto& value) {
    require(config.all.contains(name), where, ": an image classifier without ", name);
    value_from_json(config.all[name], value, where + ": " + name);
  };
  read("labels", parts.labels);
  read("height", parts.form.height);
  read("width", parts.form.width);
  read("mean", parts.moments.mean);
  read("deviation", parts.moments.deviation);
  parts.network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    return models::make_model<models::ImageClassifiers>(config.model, config.settings, rng);
  });
  parts.form.channels = parts.network->channels();
  const auto channels = static_cast<size_t>(parts.form.channels);
  require(parts.form.height > 0 && parts.form.height <= kMostSide && parts.form.width > 0 &&
              parts.form.width <= kMostSide,
          where, ": pictures of ", parts.form.height, " x ", parts.form.width, ", wanted 1 to ", kMostSide,
          " a side");
  const Size2d only = parts.network->picture_size();
  require(only.h == 0 || (only.h == parts.form.height && only.w == parts.form.width), where, ": pictures of ",
          parts.form.height, " x ", parts.form.width, " for a network that takes ", only.h, " x ", only.w);
  require(parts.moments.mean.size() == channels && parts.moments.deviation.size() == channels &&
              std::all_of(parts.moments.deviation.begin(), parts.moments.deviation.end(),
                          [](float deviation) { return deviation > 0; }),
          where, ": mean and deviation must hold a number for each of ", channels,
          " channels, deviations above 0");
  require(static_cast<int64_t>(parts.labels.size()) == parts.network->classes(), where, ": ",
          parts.labels.size(), " labels for ", parts.network->classes(), " classes");
  if (kind == Compute::int8) nn::round_to_int8(*parts.network, folder.string());
  parts.prepared = nn::Prepared(*parts.network, kind);
  return parts;
}

void save_image_classifier_config(const std::filesystem::path& folder, const ImageClassifierParts& parts) {
  save_json(folder / "config.json", Json{{"task", "image"},
                                         {"model", parts.model},
                                         {"settings", parts.config},
                                         {"labels", parts.labels},
                                         {"height", parts.form.height},
                                         {"width", parts.form.width},
                                         {"mean", value_to_json(parts.moments.mean)},
                                         {"deviation", value_to_json(parts.moments.deviation)}});
}

void save_image_classifier(const std::filesystem::path& folder, const ImageClassifierParts& parts) {
  make_directories(folder);
  nn::save_weights(*parts.network, folder / "model.safetensors");
  save_image_classifier_config(folder, parts);
}

std::vector<Prediction> classify_pictures(const ImageClassifierParts& parts, const data::Pictures& pictures,
                                          int64_t batch) {
  std::vector<Prediction> told;
  const data::PictureForm& form = parts.form;
  const NoGrad no_grad;
  const nn::Prepared prepared(*parts.network);
  nn::Context context;
  for (int64_t first = 0; first < pictures.count(); first += batch) {
    const int64_t count = std::min(batch, pictures.count() - first);
    Tensor x({count, form.height, form.width, form.channels});
    for (int64_t i = 0; i < count; ++i) {
      const Tensor one = data::normalised(pictures.picture(first + i), form, parts.moments);
      std::copy_n(one.data(), one.count(), x.data() + i * one.count());
    }
    const Tensor logits = parts.network->logits(Var(x), context).value().contiguous();
    const int64_t classes = logits.size(1);
    for (int64_t i = 0; i < count; ++i)
      told.push_back(prediction_of({logits.data() + i * classes, static_cast<size_t>(classes)}));
  }
  return told;
}

std::vector<Prediction> classify_picture_files(const ImageClassifierParts& parts,
                                               std::span<const std::string> files) {
  data::Pictures pictures{.form = parts.form, .pixels = {}, .labels = {}, .classes = parts.labels};
  for (const std::string& file : files) {
    const std::vector<uint8_t> one = data::read_picture_as(file, parts.form);
    pictures.pixels.insert(pictures.pixels.end(), one.begin(), one.end());
    pictures.labels.push_back(0);
  }
  return classify_pictures(parts, pictures);
}

}  // namespace fovea::tasks
