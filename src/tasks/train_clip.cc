// Clips read from files or made of labelled pictures, a network that weighs their frames, and its folder.
#include "tasks/train_clip.h"

#include <algorithm>

#include "data/png_writer.h"
#include "tasks/train_settings.h"

namespace fovea::tasks {
namespace {

bool is_made(const ClipFiles& files) {
  return files.train.size() == 2;
}

// What applies to clips that are made, and what to clips from files.
void check_source(const ClipFiles& files, const ClipTraining& training) {
  const auto refuse = [](bool given, const char* name, const char* why) {
    require(!given, name, " does not apply: ", why);
  };
  if (is_made(files)) {
    // The defaults are no request: a config file lists them whatever the data is.
    const ClipTraining standard;
    const char* const why = "pictures of IDX files have their own size and are grey";
    refuse(training.size && training.size != standard.size, "size", why);
    refuse(training.grey && training.grey != standard.grey, "grey", why);
    refuse(training.target.has_value() && training.make == "clips", "target",
           "it says what makes a bag positive");
    return;
  }
  const char* const why = "the clips come from files; they are made of two IDX files, pictures and labels";
  refuse(training.make.has_value(), "make", why);
  refuse(training.clips.has_value(), "clips", why);
  refuse(training.test_clips.has_value(), "test_clips", why);
  refuse(training.target.has_value(), "target", why);
}

// What is empty, and what the run's identity needs to be complete.
ClipTraining settled(const ClipFiles& files, const ClipTraining& requested) {
  ClipTraining training = requested;
  if (is_made(files)) {
    const MadeClips usual;
    training.make = training.make.value_or(usual.kind);
    training.clips = training.clips.value_or(usual.count);
    training.test_clips = training.test_clips.value_or(usual.test_count);
    if (training.make == "bags") training.target = training.target.value_or(usual.target);
    training.size.reset();
    training.grey.reset();
  } else {
    const ClipTraining standard;
    if (!training.size) training.size = standard.size;
    if (!training.grey) training.grey = standard.grey;
  }
  return training;
}

data::Clips read_training(const ClipFiles& files, const ClipTraining& training, uint64_t seed,
                          LoadedClipClassifier& loaded) {
  if (is_made(files)) {
    loaded.made =
        MadeClips{*training.make, *training.clips, *training.test_clips, training.target.value_or("9")};
    return loaded.made->make(data::read_pictures(files.train, 0), loaded.made->count, seed);
  }
  return data::read_clips(files.train[0], {*training.size, *training.size, *training.grey ? 1 : 3});
}

uint64_t fingerprint_of(const data::Clips& clips) {
  DataFingerprint print;
  for (const uint8_t value : clips.pixels) print.add(uint64_t{value});
  for (const int64_t start : clips.starts) print.add(static_cast<uint64_t>(start));
  for (const int32_t label : clips.labels) print.add(static_cast<uint64_t>(label));
  return print.value();
}

// The frames of chosen clips, one clip after the other.
struct ClipBatch {
  Tensor frames;
  std::vector<int64_t> lengths;
  std::vector<int32_t> labels;
};

ClipBatch make_batch(const data::Clips& clips, std::span<const int64_t> chosen) {
  ClipBatch batch;
  int64_t frames = 0;
  for (const int64_t c : chosen) {
    batch.lengths.push_back(clips.length(c));
    batch.labels.push_back(clips.labels[static_cast<size_t>(c)]);
    frames += clips.length(c);
  }
  batch.frames = Tensor({frames, clips.form.height, clips.form.width, clips.form.channels});
  float* out = batch.frames.data();
  for (const int64_t c : chosen) {
    const Tensor one = frame_values(clips, clips.starts[static_cast<size_t>(c)], clips.length(c));
    out = std::copy_n(one.data(), one.count(), out);
  }
  return batch;
}

train::Validation validate(const LoadedClipClassifier& loaded, const data::Clips& clips) {
  const ClipPredictions found = classify_clips(loaded, clips);
  train::Validation result = validation_of(found.clips, clips.labels);
  if (const auto share = weight_on_keys(clips, found.weights))
    result.details.emplace_back("weight_on_keys", *share);
  return result;
}

// The first ten clips as folders of frames: clips/0/00.png.
void save_examples(const std::filesystem::path& folder, const data::Clips& clips) {
  constexpr int64_t kExamples = 10;
  for (int64_t c = 0; c < std::min(kExamples, clips.count()); ++c) {
    const std::filesystem::path one = folder / std::to_string(c);
    make_directories(one);
    for (int64_t t = 0; t < clips.length(c); ++t)
      write_atomically(one / message(t < 10    ? "00"
                                     : t < 100 ? "0"
                                               : "",
                                     t, ".png"),
                       data::encode_png(clips.frame(clips.starts[static_cast<size_t>(c)] + t), clips.form));
  }
}

CardText card_text(const ClipFiles& files, const LoadedClipClassifier& loaded) {
  return {.title = "A clip classifier made with Fovea",
          .about = message("Classifies clips and bags of pictures of ", loaded.form.height, " x ",
                           loaded.form.width, " pixels into ", loaded.labels.size(), " classes, with ",
                           loaded.network->config().pooling, " pooling over their frames.\n"),
          .train = "`" + files.train[0] + "`",
          .valid = files.valid.empty() ? "" : "`" + files.valid[0] + "`",
          .use = "fovea classify " + files.out.string() + " " + (files.out / "clips" / "1").string()};
}

}  // namespace

void apply_preset(const std::string& name, ClipTraining&, Json& settings) {
  const bool tiny = name == "tiny", base = name == "base";
  settings = {{"features", tiny ? 64 : base ? 500 : 128}, {"hidden", tiny ? 32 : base ? 128 : 64}};
}

void check_training(const ClipTraining& training, const Json&) {
  check_rates(training.learning_rate, training.warmup, 0, training.weight_decay);
  const auto within = [](const std::optional<int64_t>& value, const char* name, int64_t low, int64_t high) {
    require(!value || (*value >= low && *value <= high), name, ": got ", value.value_or(0), ", wanted ", low,
            " to ", high);
  };
  within(training.clips, "clips", 2, 1'000'000);
  within(training.test_clips, "test_clips", 2, 1'000'000);
  within(training.size, "size", 16, 512);
  within(training.batch, "batch", 1, 100'000);
}

TrainingOutcome train_clip(const ClipFiles& files, const TrainSettings<ClipTraining>& settings,
                           const std::string& command, RunObserver& observer,
                           const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  check_settings(settings);
  check_source(files, settings.training);
  observer.on_note("reading " + files.train[0]);
  ClipTraining training = settled(files, settings.training);
  LoadedClipClassifier loaded;
  const data::Clips clips = read_training(files, training, settings.options.seed, loaded);
  require_classes(clips.classes, "clip", files.train[0]);
  if (!training.batch) training.batch = batch_for(clips.count(), 4, 16);
  loaded.model = training.model;
  loaded.labels = clips.classes;
  loaded.form = clips.form;
  const data::Clips valid = files.valid.empty() ? data::Clips{} : read_test_clips(loaded, files.valid);
  const RunFolder folder(files.out,
                         run_identity<ClipTraining>({training, settings.options, settings.model},
                                                    fingerprint_of(clips), counted(clips.count(), "clip")),
                         observer);
  loaded.config = models::model_config<models::ClipClassifiers>(
      training.model, settings.model,
      Json{{"classes", static_cast<int64_t>(loaded.labels.size())},
           {"channels", loaded.form.channels},
           {"height", loaded.form.height},
           {"width", loaded.form.width}});
  Rng rng(settings.options.seed);
  loaded.network = models::make_model<models::ClipClassifiers>(training.model, loaded.config, rng);
  observer.on_note(message(clips.count(), " clips with ", clips.frames(), " frames of ", clips.form.height,
                           " x ", clips.form.width, " x ", clips.form.channels, ", ", loaded.labels.size(),
                           " classes, ", loaded.network->parameter_count(), " parameters"));

  TrainingPlan plan;
  plan.network = loaded.network.get();
  plan.rule = train::AdamW{.learning_rate = training.learning_rate, .weight_decay = training.weight_decay};
  plan.schedule = schedule_of(training.schedule, training.warmup);
  plan.options = settings.options;
  plan.passes = 40;
  plan.sizes.assign(static_cast<size_t>(clips.count()), {1, 0});
  plan.batch_size = *training.batch;
  plan.batch_unit = plan.unit = "clips";
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    const ClipBatch batch = make_batch(clips, chosen);
    return train::BatchLoss{loaded.network->loss(batch.frames, batch.lengths, batch.labels, context),
                            static_cast<double>(batch.labels.size())};
  };
  if (valid.count() > 0) plan.validate = [&] { return validate(loaded, valid); };
  plan.score_name = "accuracy";
  plan.score_unit = "%";
  plan.should_stop = should_stop;
  plan.save_config = [&](const std::filesystem::path& out) { save_clip_config(out, loaded); };
  plan.save_model = [&](const std::filesystem::path& out) {
    save_clip_classifier(out, loaded);
    save_examples(out / "clips", valid.count() > 0 ? valid : clips);
  };
  plan.card = card_text(files, loaded);
  plan.command = command;
  return run_training(folder, plan, observer);
}

}  // namespace fovea::tasks
