#include "tasks/glimpse_classifier.h"

#include <algorithm>

#include "base/stop_check.h"
#include "io/file.h"
#include "models/registry/glimpse_classifiers.h"
#include "nn/int8_weights.h"
#include "nn/weights.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kMostSide = 4096;

Json scene_json(const data::Scene& scene) {
  return {{"kind", name_of(scene.kind)},
          {"size", scene.size},
          {"fragments", scene.fragments},
          {"side", scene.side},
          {"blended", scene.blended}};
}

data::Scene scene_from(const Json& json, const std::string& where) {
  data::Scene scene;
  const auto read = [&](const char* name, auto& value) {
    require(json.is_object() && json.contains(name), where, ": a scene without ", name);
    value_from_json(json[name], value, where + ": " + name);
  };
  std::string kind;
  read("kind", kind);
  scene.kind = data::scene_named(kind);
  read("size", scene.size);
  read("fragments", scene.fragments);
  read("side", scene.side);
  read("blended", scene.blended);
  require(scene.size >= 0 && scene.size <= kMostSide && scene.fragments >= 0 &&
              scene.fragments <= kMostSide && scene.side >= 1 && scene.side <= kMostSide,
          where, ": a scene of size ", scene.size, " with ", scene.fragments, " fragments of ", scene.side,
          " pixels, wanted at most ", kMostSide, " of each");
  return scene;
}

// The mean of the probabilities of a picture's paths. logits: [copies, classes].
Prediction mean_prediction(const float* logits, int64_t copies, int64_t classes) {
  Prediction mean = prediction_of({logits, static_cast<size_t>(classes)});
  for (int64_t c = 1; c < copies; ++c) {
    const Prediction one = prediction_of({logits + c * classes, static_cast<size_t>(classes)});
    for (size_t k = 0; k < mean.probabilities.size(); ++k) mean.probabilities[k] += one.probabilities[k];
  }
  if (copies == 1) return mean;
  for (float& probability : mean.probabilities) probability /= static_cast<float>(copies);
  mean.label = static_cast<int32_t>(std::max_element(mean.probabilities.begin(), mean.probabilities.end()) -
                                    mean.probabilities.begin());
  return mean;
}

}  // namespace

LoadedGlimpseClassifier load_glimpse_classifier(const std::filesystem::path& folder,
                                                const std::string& compute) {
  const Compute kind = compute_named(compute);
  const FolderConfig config = read_folder_config(folder, "glimpse");
  const std::string where = (folder / "config.json").string();
  LoadedGlimpseClassifier loaded;
  loaded.model = config.model;
  loaded.config = config.settings;
  const auto read = [&](const char* name, auto& value) {
    require(config.all.contains(name), where, ": a glimpse classifier without ", name);
    value_from_json(config.all[name], value, where + ": " + name);
  };
  read("labels", loaded.labels);
  read("height", loaded.source.height);
  read("width", loaded.source.width);
  require(config.all.contains("scene"), where, ": a glimpse classifier without scene");
  loaded.scene = scene_from(config.all["scene"], where);
  loaded.network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    return models::make_model<models::GlimpseClassifiers>(config.model, config.settings, rng);
  });
  loaded.source.channels = loaded.network->sizes().channels;
  require(loaded.source.height > 0 && loaded.source.height <= kMostSide && loaded.source.width > 0 &&
              loaded.source.width <= kMostSide &&
              (loaded.source.channels == 1 || loaded.source.channels == 3),
          where, ": pictures of ", loaded.source.height, " x ", loaded.source.width, " x ",
          loaded.source.channels, ", wanted 1 to ", kMostSide, " a side and 1 or 3 channels");
  loaded.form();  // throws where pictures and scene do not fit
  require(static_cast<int64_t>(loaded.labels.size()) == loaded.network->sizes().classes, where, ": ",
          loaded.labels.size(), " labels for ", loaded.network->sizes().classes, " classes");
  loaded.prepared = nn::prepare_for_use(*loaded.network, kind, folder.string());
  return loaded;
}

void save_glimpse_config(const std::filesystem::path& folder, const LoadedGlimpseClassifier& loaded) {
  save_json(folder / "config.json", Json{{"task", "glimpse"},
                                         {"model", loaded.model},
                                         {"settings", loaded.config},
                                         {"labels", loaded.labels},
                                         {"height", loaded.source.height},
                                         {"width", loaded.source.width},
                                         {"scene", scene_json(loaded.scene)}});
}

void save_glimpse_classifier(const std::filesystem::path& folder, const LoadedGlimpseClassifier& loaded) {
  make_directories(folder);
  nn::save_weights(*loaded.network, folder / "model.safetensors");
  save_glimpse_config(folder, loaded);
}

std::vector<Prediction> classify_scenes(const LoadedGlimpseClassifier& loaded, const data::Pictures& scenes,
                                        int64_t rollouts) {
  std::vector<Prediction> found;
  const nn::Prepared prepared(*loaded.network);
  const int64_t copies = std::max<int64_t>(1, rollouts), batch = std::max<int64_t>(1, 256 / copies);
  for (int64_t first = 0; first < scenes.count(); first += batch) {
    check_stop();
    const int64_t count = std::min(batch, scenes.count() - first);
    const models::GlimpseTrace trace = loaded.network->trace(data::to_values(scenes, first, count),
                                                             {.copies = rollouts, .seed = kTestScenes});
    const Tensor logits = trace.logits.back().contiguous();
    const int64_t classes = logits.size(1);
    for (int64_t i = 0; i < count; ++i)
      found.push_back(mean_prediction(logits.data() + i * copies * classes, copies, classes));
  }
  return found;
}

}  // namespace fovea::tasks
