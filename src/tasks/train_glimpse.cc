// Labelled pictures, scenes made of them, a network that looks at them glimpse by glimpse, and its folder.
#include "tasks/train_glimpse.h"

#include <algorithm>

#include "tasks/picture_files.h"
#include "tasks/train_settings.h"

namespace fovea::tasks {
namespace {

constexpr int64_t kSceneSize = 60, kSourceSize = 28;

data::Scene scene_of(const GlimpseTraining& training) {
  data::Scene scene{.kind = data::scene_named(training.scene), .size = training.size.value_or(kSceneSize)};
  if (scene.kind == data::SceneKind::plain) scene.size = 0;
  if (training.fragments) scene.fragments = *training.fragments;
  if (training.clutter) scene.blended = *training.clutter == "blended";
  return scene;
}

// Pictures of a folder get the size that is requested; those of IDX files have their own.
data::Pictures read_sources(const GlimpseFiles& files, const GlimpseTraining& training) {
  const bool plain = training.scene == "plain";
  data::Pictures pictures = data::read_pictures(files.train, plain ? training.size.value_or(0) : kSourceSize);
  require(!plain || !training.size ||
              (pictures.form.height == *training.size && pictures.form.width == *training.size),
          files.train[0], ": pictures of ", pictures.form.height, " x ", pictures.form.width,
          "; a plain scene has the size of its pictures, got --size ", training.size.value_or(0),
          "; leave out --size, or choose --scene translated");
  return pictures;
}

// What is empty, and what the run's identity needs to be complete.
GlimpseTraining settled(const GlimpseTraining& requested, const data::Pictures& pictures) {
  GlimpseTraining training = requested;
  if (!training.batch) training.batch = batch_for(pictures.count(), 16, 128);
  if (training.scene != "plain") training.size = training.size.value_or(kSceneSize);
  if (training.scene == "cluttered") {
    training.fragments = training.fragments.value_or(data::Scene{}.fragments);
    training.clutter = training.clutter.value_or("blended");
  }
  return training;
}

CardText card_text(const GlimpseFiles& files, const LoadedGlimpseClassifier& loaded) {
  const data::PictureForm form = loaded.form();
  return {.title = "A glimpse classifier made with Fovea",
          .about = message("Looks at pictures of ", form.height, " x ", form.width, " pixels in ",
                           loaded.network->sizes().glimpses, " glimpses and classifies them into ",
                           loaded.labels.size(), " classes.\n"),
          .train = "`" + files.train[0] + "` (scenes: " + name_of(loaded.scene.kind) + ")",
          .valid = files.valid.empty() ? "" : "`" + files.valid[0] + "`",
          .use = "fovea classify " + files.out.string() + " " + (files.out / "scenes" / "0.png").string()};
}

}  // namespace

void apply_preset(const std::string& name, GlimpseTraining&, Json& settings) {
  const bool tiny = name == "tiny", base = name == "base";
  settings = {{"hidden", tiny ? 128 : base ? 512 : 256}, {"features", tiny ? 64 : base ? 256 : 128}};
}

void check_training(const GlimpseTraining& training, const Json&) {
  check_rates(training.learning_rate, training.warmup, 0, training.weight_decay);
  require(!training.batch || *training.batch >= 1, "batch: got ", training.batch.value_or(0),
          ", wanted at least 1");
  require(!training.size || (*training.size >= 8 && *training.size <= 1024), "size: got ",
          training.size.value_or(0), ", wanted 8 to 1024");
  require(!training.fragments || (*training.fragments >= 0 && *training.fragments <= 1000), "fragments: got ",
          training.fragments.value_or(0), ", wanted 0 to 1000");
  if (training.scene == "cluttered") return;
  require(!training.fragments && !training.clutter, training.fragments ? "fragments" : "clutter",
          " needs --scene cluttered; got --scene ", training.scene);
}

TrainingOutcome train_glimpse(const GlimpseFiles& files, const TrainSettings<GlimpseTraining>& settings,
                              const std::string& command, RunObserver& observer,
                              const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  check_settings(settings);
  observer.on_note("reading " + files.train[0]);
  const data::Pictures pictures = read_sources(files, settings.training);
  note_left_out(files.train, observer);
  require_two_classes(pictures, files.train.back());
  const GlimpseTraining training = settled(settings.training, pictures);
  LoadedGlimpseClassifier loaded;
  loaded.model = training.model;
  loaded.labels = pictures.classes;
  loaded.source = pictures.form;
  loaded.scene = scene_of(training);
  const data::PictureForm form = loaded.form();
  const data::Pictures valid =
      files.valid.empty()
          ? data::Pictures{}
          : data::make_scenes(data::read_pictures_as(files.valid, loaded.source, loaded.labels), loaded.scene,
                              kTestScenes);
  const RunFolder folder(
      files.out,
      run_identity<GlimpseTraining>({training, settings.options, settings.model}, fingerprint_of(pictures),
                                    counted(pictures.count(), "picture")),
      observer);
  loaded.config = models::model_config<models::GlimpseClassifiers>(
      training.model, settings.model,
      Json{{"classes", static_cast<int64_t>(loaded.labels.size())}, {"channels", form.channels}});
  Rng rng(settings.options.seed);
  loaded.network = models::make_model<models::GlimpseClassifiers>(training.model, loaded.config, rng);
  observer.on_note(message(pictures.count(), " pictures, ", training.scene, " scenes of ", form.height, " x ",
                           form.width, ", ", loaded.labels.size(), " classes, ",
                           loaded.network->parameter_count(), " parameters"));

  TrainingPlan plan;
  plan.network = loaded.network.get();
  plan.rule = train::AdamW{.learning_rate = training.learning_rate, .weight_decay = training.weight_decay};
  plan.schedule = schedule_of(training.schedule, training.warmup);
  plan.options = settings.options;
  plan.passes = 40;
  plan.sizes.assign(static_cast<size_t>(pictures.count()), {1, 0});
  plan.batch_size = *training.batch;
  plan.batch_unit = plan.unit = "pictures";
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    const Tensor scenes = data::draw_scenes(pictures, chosen, loaded.scene, context.next_seed());
    std::vector<int32_t> labels;
    for (const int64_t i : chosen) labels.push_back(pictures.labels[static_cast<size_t>(i)]);
    return train::BatchLoss{loaded.network->loss(scenes, labels, context),
                            static_cast<double>(labels.size())};
  };
  if (valid.count() > 0)
    plan.validate = [&] { return validation_of(classify_scenes(loaded, valid), valid.labels); };
  plan.score_name = "accuracy";
  plan.score_unit = "%";
  plan.should_stop = should_stop;
  plan.save_config = [&](const std::filesystem::path& out) { save_glimpse_config(out, loaded); };
  plan.save_model = [&](const std::filesystem::path& out) {
    save_glimpse_classifier(out, loaded);
    save_examples(out / "scenes",
                  valid.count() > 0 ? valid : data::make_scenes(pictures, loaded.scene, kTestScenes));
  };
  plan.card = card_text(files, loaded);
  plan.command = command;
  return run_training(folder, plan, observer);
}

}  // namespace fovea::tasks
