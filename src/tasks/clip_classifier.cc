#include "tasks/clip_classifier.h"

#include <algorithm>
#include <cmath>

#include "base/stop_check.h"
#include "io/file.h"
#include "models/registry/clip_classifiers.h"
#include "nn/int8_weights.h"
#include "nn/weights.h"
#include "tasks/model_folder.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kMostClips = 1'000'000;

MadeClips made_from(const Json& json, const std::string& where) {
  MadeClips made;
  const auto read = [&](const char* name, auto& value) {
    require(json.is_object() && json.contains(name), where, ": made clips without ", name);
    value_from_json(json[name], value, where + ": " + name);
  };
  read("kind", made.kind);
  read("count", made.count);
  read("test_count", made.test_count);
  read("target", made.target);
  require((made.kind == "bags" || made.kind == "clips") && made.count >= 1 && made.count <= kMostClips &&
              made.test_count >= 1 && made.test_count <= kMostClips,
          where, ": made clips of kind ", in_quotes(made.kind), ", ", made.count, " and ", made.test_count,
          " of them; wanted bags or clips, 1 to ", kMostClips);
  return made;
}

}  // namespace

data::Clips MadeClips::make(const data::Pictures& pictures, int64_t clips, uint64_t seed) const {
  return kind == "bags" ? data::make_bags(pictures, {.count = clips, .target = target}, seed)
                        : data::make_key_frame_clips(pictures, {.count = clips}, seed);
}

LoadedClipClassifier load_clip_classifier(const std::filesystem::path& folder, const std::string& compute) {
  const Compute kind = compute_named(compute);
  const FolderConfig config = read_folder_config(folder, "clip");
  const std::string where = (folder / "config.json").string();
  LoadedClipClassifier loaded;
  loaded.model = config.model;
  loaded.config = config.settings;
  require(config.all.contains("labels"), where, ": a clip classifier without labels");
  value_from_json(config.all["labels"], loaded.labels, where + ": labels");
  if (config.all.contains("made")) loaded.made = made_from(config.all["made"], where);
  loaded.network = nn::load_network(folder / "model.safetensors", [&] {
    Rng rng(0);
    return models::make_model<models::ClipClassifiers>(config.model, config.settings, rng);
  });
  const models::ClipConfig& sizes = loaded.network->config();
  loaded.form = {sizes.height, sizes.width, sizes.channels};
  require(sizes.channels == 1 || sizes.channels == 3, where, ": frames of ", sizes.channels,
          " channels, wanted 1 or 3");
  require(static_cast<int64_t>(loaded.labels.size()) == sizes.classes, where, ": ", loaded.labels.size(),
          " labels for ", sizes.classes, " classes");
  loaded.prepared = nn::prepare_for_use(*loaded.network, kind, folder.string());
  return loaded;
}

void save_clip_config(const std::filesystem::path& folder, const LoadedClipClassifier& loaded) {
  Json json{
      {"task", "clip"}, {"model", loaded.model}, {"settings", loaded.config}, {"labels", loaded.labels}};
  if (loaded.made)
    json["made"] = {{"kind", loaded.made->kind},
                    {"count", loaded.made->count},
                    {"test_count", loaded.made->test_count},
                    {"target", loaded.made->target}};
  save_json(folder / "config.json", json);
}

void save_clip_classifier(const std::filesystem::path& folder, const LoadedClipClassifier& loaded) {
  make_directories(folder);
  nn::save_weights(*loaded.network, folder / "model.safetensors");
  save_clip_config(folder, loaded);
}

Tensor frame_values(const data::Clips& clips, int64_t first, int64_t count) {
  const Tensor values({count, clips.form.height, clips.form.width, clips.form.channels});
  const uint8_t* const from = clips.pixels.data() + first * clips.frame_bytes();
  for (int64_t i = 0; i < values.count(); ++i) values.data()[i] = static_cast<float>(from[i]) / 255;
  return values;
}

ClipPredictions classify_clips(const LoadedClipClassifier& loaded, const data::Clips& clips) {
  constexpr int64_t kMostFrames = 512;  // computed together; a longer clip is computed alone
  const nn::Prepared prepared(*loaded.network);
  ClipPredictions found;
  for (int64_t first = 0; first < clips.count();) {
    check_stop();
    std::vector<int64_t> lengths;
    int64_t frames = 0, last = first;
    do {
      lengths.push_back(clips.length(last));
      frames += clips.length(last++);
    } while (last < clips.count() && frames + clips.length(last) <= kMostFrames);
    const models::ClipResult result = loaded.network->classify(
        frame_values(clips, clips.starts[static_cast<size_t>(first)], frames), lengths);
    const int64_t classes = result.logits.size(1);
    for (int64_t c = 0; c < last - first; ++c)
      found.clips.push_back(
          prediction_of({result.logits.data() + c * classes, static_cast<size_t>(classes)}));
    found.weights.insert(found.weights.end(), result.weights.begin(), result.weights.end());
    first = last;
  }
  return found;
}

std::optional<double> weight_on_keys(const data::Clips& clips, std::span<const float> weights) {
  if (weights.empty() || clips.key.empty()) return {};
  double sum = 0;
  int64_t counted = 0;
  for (int64_t c = 0; c < clips.count(); ++c) {
    double on_keys = 0, all = 0;
    bool has_key = false;
    for (int64_t f = clips.starts[static_cast<size_t>(c)]; f < clips.starts[static_cast<size_t>(c) + 1];
         ++f) {
      const double weight = std::abs(weights[static_cast<size_t>(f)]);  // identity: of any sign and sum
      all += weight;
      if (clips.key[static_cast<size_t>(f)] == 0) continue;
      has_key = true;
      on_keys += weight;
    }
    if (all > 0) sum += on_keys / all;
    counted += has_key;
  }
  if (counted == 0) return {};
  return sum / static_cast<double>(counted);
}

data::Clips read_test_clips(const LoadedClipClassifier& loaded, const std::vector<std::string>& paths) {
  if (paths.size() == 1) return data::read_clips(paths[0], loaded.form, loaded.labels);
  require(loaded.made.has_value(), "got ", paths.size(),
          " files; this model was trained on clips from files: wanted a list file or a folder of clips");
  const data::Pictures pictures = data::read_pictures(paths, 0);
  require(pictures.form.height == loaded.form.height && pictures.form.width == loaded.form.width, paths[0],
          ": pictures of ", pictures.form.height, " x ", pictures.form.width, ", wanted ", loaded.form.height,
          " x ", loaded.form.width);
  data::Clips clips = loaded.made->make(pictures, loaded.made->test_count, kTestClips);
  require(clips.classes == loaded.labels, paths.back(), ": other classes than the model's");
  return clips;
}

}  // namespace fovea::tasks
