#include "tasks/image_classifier.h"

#include <algorithm>

#include "base/stop_check.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "models/registry/image_classifiers.h"
#include "nn/int8_weights.h"
#include "nn/weights.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kMostSide = 4096;

}  // namespace

LoadedImageClassifier load_image_classifier(const std::filesystem::path& folder, const std::string& compute) {
  const Compute kind = compute_named(compute);
  const FolderConfig config = read_folder_config(folder, "image");
  const std::string where = (folder / "config.json").string();
  LoadedImageClassifier loaded;
  loaded.model = config.model;
  loaded.config = config.settings;
  const auto read = [&](const char* name, auto& value) {
    require(config.all.contains(name), where, ": an image classifier without ", name);
    value_from_json(config.all[name], value, where + ": " + name);
  };
  read("labels", loaded.labels);
  read("height", loaded.form.height);
  read("width", loaded.form.width);
  read("mean", loaded.moments.mean);
  read("deviation", loaded.moments.deviation);
  loaded.network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    return models::make_model<models::ImageClassifiers>(config.model, config.settings, rng);
  });
  loaded.form.channels = loaded.network->channels();
  const auto channels = static_cast<size_t>(loaded.form.channels);
  require(loaded.form.height > 0 && loaded.form.height <= kMostSide && loaded.form.width > 0 &&
              loaded.form.width <= kMostSide,
          where, ": pictures of ", loaded.form.height, " x ", loaded.form.width, ", wanted 1 to ", kMostSide,
          " a side");
  const Size2d only = loaded.network->picture_size();
  require(only.h == 0 || (only.h == loaded.form.height && only.w == loaded.form.width), where,
          ": pictures of ", loaded.form.height, " x ", loaded.form.width, " for a network that takes ",
          only.h, " x ", only.w);
  require(loaded.moments.mean.size() == channels && loaded.moments.deviation.size() == channels &&
              std::all_of(loaded.moments.deviation.begin(), loaded.moments.deviation.end(),
                          [](float deviation) { return deviation > 0; }),
          where, ": mean and deviation must have a number for each of ", channels,
          " channels, deviations above 0");
  require(static_cast<int64_t>(loaded.labels.size()) == loaded.network->classes(), where, ": ",
          loaded.labels.size(), " labels for ", loaded.network->classes(), " classes");
  loaded.prepared = nn::prepare_for_use(*loaded.network, kind, folder.string());
  return loaded;
}

void save_image_classifier_config(const std::filesystem::path& folder, const LoadedImageClassifier& loaded) {
  save_json(folder / "config.json", Json{{"task", "image"},
                                         {"model", loaded.model},
                                         {"settings", loaded.config},
                                         {"labels", loaded.labels},
                                         {"height", loaded.form.height},
                                         {"width", loaded.form.width},
                                         {"mean", value_to_json(loaded.moments.mean)},
                                         {"deviation", value_to_json(loaded.moments.deviation)}});
}

void save_image_classifier(const std::filesystem::path& folder, const LoadedImageClassifier& loaded) {
  make_directories(folder);
  nn::save_weights(*loaded.network, folder / "model.safetensors");
  save_image_classifier_config(folder, loaded);
}

std::vector<Prediction> classify_pictures(const LoadedImageClassifier& loaded, const data::Pictures& pictures,
                                          int64_t batch) {
  std::vector<Prediction> predictions;
  const data::PictureForm& form = loaded.form;
  const NoGrad no_grad;
  const nn::Prepared prepared(*loaded.network);
  nn::Context context;
  for (int64_t first = 0; first < pictures.count(); first += batch) {
    check_stop();
    const int64_t count = std::min(batch, pictures.count() - first);
    Tensor x({count, form.height, form.width, form.channels});
    for (int64_t i = 0; i < count; ++i) {
      const Tensor one = data::normalised(pictures.picture(first + i), form, loaded.moments);
      std::copy_n(one.data(), one.count(), x.data() + i * one.count());
    }
    const Tensor logits = loaded.network->logits(Var(x), context).value().contiguous();
    const int64_t classes = logits.size(1);
    for (int64_t i = 0; i < count; ++i)
      predictions.push_back(prediction_of({logits.data() + i * classes, static_cast<size_t>(classes)}));
  }
  return predictions;
}

std::vector<Prediction> classify_picture_files(const LoadedImageClassifier& loaded,
                                               std::span<const std::string> files) {
  data::Pictures pictures{.form = loaded.form, .pixels = {}, .labels = {}, .classes = loaded.labels};
  for (const std::string& file : files) {
    const std::vector<uint8_t> one = data::read_picture_as(file, loaded.form);
    pictures.pixels.insert(pictures.pixels.end(), one.begin(), one.end());
    pictures.labels.push_back(0);
  }
  return classify_pictures(loaded, pictures);
}

}  // namespace fovea::tasks
