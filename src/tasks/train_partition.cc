// Trains a ship detector: settings, batches of scenes, validation and model card.
#include "tasks/train_partition.h"

#include <algorithm>
#include <bit>

#include "base/parallel.h"
#include "tasks/train_settings.h"

namespace fovea::tasks {
namespace {

struct SceneBatch {
  Tensor x;                           // [batch, size, size, 3]
  std::vector<int32_t> coarse, fine;  // a label for each cell
};

SceneBatch draw_batch(std::span<const data::ShipScene> scenes, const data::PixelMoments& moments, bool turn,
                      std::span<const int64_t> chosen, Rng& rng) {
  const size_t count = chosen.size();
  std::vector<int> turns(count);
  for (int& one : turns) one = turn ? static_cast<int>(rng.below(8)) : 0;
  std::vector<data::ShipScene> drawn(count);
  std::vector<data::ShipMaps> maps(count);
  parallel_for(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      drawn[i] = data::turned(scenes[static_cast<size_t>(chosen[i])], turns[i]);
      maps[i] = data::label_maps(drawn[i], models::Partition::kStride);
    }
  });
  std::vector<const data::ShipScene*> batch;
  SceneBatch result;
  for (size_t i = 0; i < count; ++i) {
    batch.push_back(&drawn[i]);
    result.coarse.insert(result.coarse.end(), maps[i].coarse.begin(), maps[i].coarse.end());
    result.fine.insert(result.fine.end(), maps[i].fine.begin(), maps[i].fine.end());
  }
  result.x = picture_batch(batch, moments);
  return result;
}

uint64_t fingerprint(std::span<const data::ShipScene> scenes) {
  DataFingerprint print;
  for (const data::ShipScene& scene : scenes) {
    for (const uint8_t value : scene.image.pixels) print.add(uint64_t{value});
    for (const data::Ship& ship : scene.ships)
      for (const double value : {ship.x, ship.y, ship.length, ship.width, ship.heading})
        print.add(std::bit_cast<uint64_t>(value));
  }
  return print.value();
}

data::PixelMoments moments_of(std::span<const data::ShipScene> scenes) {
  const int64_t side = scenes[0].image.height;
  data::Pictures pictures{.form = {side, side, 3}, .pixels = {}, .labels = {}, .classes = {}};
  // A part of a large set says enough.
  for (size_t i = 0; i < std::min<size_t>(scenes.size(), 500); ++i)
    pictures.pixels.insert(pictures.pixels.end(), scenes[i].image.pixels.begin(),
                           scenes[i].image.pixels.end());
  return data::pixel_moments(pictures);
}

CardText card_text(const PartitionFiles& files, const LoadedPartitioner& loaded) {
  return {.title = "A ship detector made with Fovea",
          .about = message("Finds bow and stern of ships in pictures fitted to ", loaded.size, " x ",
                           loaded.size, " pixels, and from them rotated boxes.\n"),
          .train = "`" + files.train + "`",
          .valid = files.valid.empty() ? "" : "`" + files.valid + "`",
          .use = "fovea partition " + files.out.string() + " picture.png"};
}

}  // namespace

void apply_preset(const std::string& name, PartitionTraining&, Json& settings) {
  settings = {{"width", name == "tiny" ? 8 : name == "base" ? 32 : 16}, {"end_weight", 2}};
}

void check_training(const PartitionTraining& training, const Json&) {
  check_rates(training.learning_rate, training.warmup, 0, training.weight_decay);
  require(training.size >= 64 && training.size <= 1024 && training.size % models::Partition::kSideUnit == 0,
          "size: got ", training.size, ", wanted a multiple of 8 from 64 to 1024");
  for (const auto& [name, scenes] :
       {std::pair{"scenes", training.scenes}, {"valid_scenes", training.valid_scenes}})
    require(!scenes || (*scenes >= 1 && *scenes <= 1'000'000), name, ": got ", scenes.value_or(0),
            ", wanted 1 to 1000000");
  require(training.batch >= 1, "batch: got ", training.batch, ", wanted at least 1");
}

TrainingOutcome train_partition(const PartitionFiles& files, const TrainSettings<PartitionTraining>& settings,
                                const std::string& command, RunObserver& observer,
                                const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  check_settings(settings);
  const bool drawn = files.train == kDrawnScenes;
  require(drawn || !settings.training.scenes, "scenes applies to --train scenes only; got --train ",
          files.train);
  require(files.valid == kDrawnScenes || !settings.training.valid_scenes,
          "valid_scenes applies to --valid scenes only; got ",
          files.valid.empty() ? "no --valid" : "--valid " + files.valid);
  PartitionTraining training = settings.training;
  if (drawn && !training.scenes) training.scenes = 2000;
  const int64_t valid_scenes = training.valid_scenes.value_or(200);
  observer.on_note(drawn ? message("drawing ", *training.scenes, " scenes") : "reading " + files.train);
  const std::vector<data::ShipScene> scenes =
      read_scenes({files.train, training.scenes.value_or(0), settings.options.seed}, training.size);
  std::vector<data::ShipScene> valid;
  if (!files.valid.empty())
    valid = read_scenes({files.valid, valid_scenes, kValidationHarbours}, training.size);
  const RunFolder folder(
      files.out,
      run_identity<PartitionTraining>({training, settings.options, settings.model}, fingerprint(scenes),
                                      counted(static_cast<int64_t>(scenes.size()), "scene")),
      observer);
  LoadedPartitioner loaded;
  loaded.size = training.size;
  loaded.moments = moments_of(scenes);
  loaded.config = models::model_config<models::Partitioners>(training.model, settings.model);
  Rng rng(settings.options.seed);
  loaded.network = models::make_model<models::Partitioners>(training.model, loaded.config, rng);
  int64_t ships = 0;
  for (const data::ShipScene& scene : scenes) ships += static_cast<int64_t>(scene.ships.size());
  observer.on_note(message(scenes.size(), " scenes of ", loaded.size, " x ", loaded.size, " with ", ships,
                           " ships, ", loaded.network->parameter_count(), " parameters"));

  TrainingPlan plan;
  plan.network = loaded.network.get();
  plan.rule = train::AdamW{.learning_rate = training.learning_rate, .weight_decay = training.weight_decay};
  plan.schedule = schedule_of(training.schedule, training.warmup);
  plan.options = settings.options;
  plan.passes = 15;
  plan.sizes.assign(scenes.size(), {1, 0});
  plan.batch_size = training.batch;
  plan.batch_unit = plan.unit = "pictures";
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    const SceneBatch batch = draw_batch(scenes, loaded.moments, training.turn, chosen, context.rng);
    return train::BatchLoss{loaded.network->loss(Var(batch.x), {batch.coarse, batch.fine}, context),
                            static_cast<double>(chosen.size())};
  };
  if (!valid.empty())
    plan.validate = [&] {
      const infer::DetectionCounts counts = evaluate_scenes(loaded, valid);
      train::Validation result{100 * counts.f1(),
                               {{"precision", 100 * counts.precision()}, {"recall", 100 * counts.recall()}}};
      if (counts.matched > 0) result.details.emplace_back("localisation", counts.localisation());
      return result;
    };
  plan.score_name = "F1";
  plan.score_unit = "%";
  plan.should_stop = should_stop;
  plan.save_config = [&](const std::filesystem::path& out) { save_partition_config(out, loaded); };
  plan.save_model = [&](const std::filesystem::path& out) { save_partition(out, loaded); };
  plan.card = card_text(files, loaded);
  plan.command = command;
  return run_training(folder, plan, observer);
}

}  // namespace fovea::tasks
