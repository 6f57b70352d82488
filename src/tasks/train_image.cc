// Labelled pictures, moved and mirrored by chance, a network that learns their classes, and its folder.
#include "tasks/train_image.h"

#include <algorithm>

#include "data/images.h"
#include "tasks/picture_files.h"
#include "tasks/train_settings.h"

namespace fovea::tasks {
namespace {

// A batch of pictures, each moved and mirrored by chance.
struct PictureBatch {
  Tensor x;  // [batch, height, width, channels]
  std::vector<int32_t> labels;
};

PictureBatch draw_batch(const data::Pictures& pictures, const data::PixelMoments& moments,
                        const ImageTraining& training, std::span<const int64_t> chosen, Rng& rng) {
  const data::PictureForm& form = pictures.form;
  const data::RandomCrop crop{form.height, form.width, training.shift, training.flip};
  const auto count = static_cast<int64_t>(chosen.size());
  PictureBatch batch{Tensor({count, form.height, form.width, form.channels}), {}};
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = chosen[static_cast<size_t>(i)];
    const Tensor whole = data::normalised(pictures.picture(place), form, moments);
    const Tensor one =
        training.shift > 0 || training.flip ? data::random_crop(whole, crop, rng).contiguous() : whole;
    std::copy_n(one.data(), one.count(), batch.x.data() + i * one.count());
    batch.labels.push_back(pictures.labels[static_cast<size_t>(place)]);
  }
  return batch;
}

CardText card_text(const ImageFiles& files, const LoadedImageClassifier& loaded) {
  return {.title = "An image classifier made with Fovea",
          .about = message("Classifies pictures of ", loaded.form.height, " x ", loaded.form.width,
                           loaded.form.channels == 1 ? " pixels, grey," : " pixels, in colour,", " into ",
                           loaded.labels.size(), " classes.\n"),
          .train = "`" + files.train[0] + "`",
          .valid = files.valid.empty() ? "" : "`" + files.valid[0] + "`",
          .use = "fovea classify " + files.out.string() + " picture.png"};
}

train::Rule rule_of(const ImageTraining& training) {
  if (training.optimizer == "sgd")
    return train::Sgd{.learning_rate = training.learning_rate,
                      .weight_decay = training.weight_decay,
                      .momentum = 0.9,
                      .nesterov = true};
  return train::AdamW{.learning_rate = training.learning_rate, .weight_decay = training.weight_decay};
}

// Batches of nearly the same size: none is left with a single picture, which batch norm could not use.
int64_t even_batch(int64_t pictures, int64_t batch) {
  const int64_t batches = (pictures + batch - 1) / batch;
  return (pictures + batches - 1) / batches;
}

}  // namespace

void apply_preset(const std::string& name, ImageTraining& training, Json& settings) {
  const bool tiny = name == "tiny", base = name == "base";
  if (training.model == "vit") {
    const int64_t width = tiny ? 64 : base ? 256 : 128;
    settings = {{"width", width},
                {"heads", tiny   ? 2
                          : base ? 8
                                 : 4},
                {"hidden", 2 * width},
                {"layers", tiny   ? 2
                           : base ? 8
                                  : 6}};
    training.learning_rate = base ? 5e-4 : 1e-3;
    return;
  }
  settings = {{"depth", tiny ? 8 : base ? 56 : 20}, {"width", tiny ? 8 : 16}};
  training.learning_rate = base ? 1e-3 : 2e-3;
}

void check_training(const ImageTraining& training, const Json&) {
  check_rates(training.learning_rate, training.warmup, training.smoothing, training.weight_decay);
  require(training.schedule != "one_cycle" || training.warmup < 1, "warmup: got ", training.warmup,
          ", wanted a share of the run below 1, such as 0.3, with the schedule one_cycle");
  require(!training.batch || *training.batch >= 2, "batch: got ", training.batch.value_or(0),
          ", wanted at least 2");
  require(training.size >= 8 && training.size <= 1024, "size: got ", training.size, ", wanted 8 to 1024");
  require(training.shift >= 0 && training.shift <= 64, "shift: got ", training.shift, ", wanted 0 to 64");
}

TrainingOutcome train_image(const ImageFiles& files, const TrainSettings<ImageTraining>& settings,
                            const std::string& command, RunObserver& observer,
                            const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  check_settings(settings);
  // The side of pictures in folders and archives is known before they are read.
  if (files.train.size() == 1)
    models::check_settings<models::ImageClassifiers>(
        settings.training.model, settings.model, "model settings",
        models::classes_and_size(2, 3, settings.training.size, settings.training.size));
  observer.on_note("reading " + files.train[0]);
  const data::Pictures pictures = data::read_pictures(files.train, settings.training.size);
  note_left_out(files.train, observer);
  require_two_classes(pictures, files.train.back());
  ImageTraining training = settings.training;
  if (!training.batch) training.batch = batch_for(pictures.count(), 16, 64);
  LoadedImageClassifier loaded;
  loaded.model = training.model;
  loaded.labels = pictures.classes;
  loaded.form = pictures.form;
  const data::Pictures valid = files.valid.empty()
                                   ? data::Pictures{}
                                   : data::read_pictures_as(files.valid, loaded.form, loaded.labels);
  const RunFolder folder(
      files.out,
      run_identity<ImageTraining>({training, settings.options, settings.model}, fingerprint_of(pictures),
                                  counted(pictures.count(), "picture")),
      observer);
  loaded.moments = data::pixel_moments(pictures);
  loaded.config = models::model_config<models::ImageClassifiers>(
      training.model, settings.model,
      models::classes_and_size(static_cast<int64_t>(loaded.labels.size()), loaded.form.channels,
                               loaded.form.height, loaded.form.width));
  Rng rng(settings.options.seed);
  loaded.network = models::make_model<models::ImageClassifiers>(training.model, loaded.config, rng);
  observer.on_note(message(pictures.count(), " pictures of ", loaded.form.height, " x ", loaded.form.width,
                           " x ", loaded.form.channels, ", ", loaded.labels.size(), " classes, ",
                           loaded.network->parameter_count(), " parameters"));

  TrainingPlan plan;
  plan.network = loaded.network.get();
  plan.rule = rule_of(training);
  plan.schedule = schedule_of(training.schedule, training.warmup);
  plan.options = settings.options;
  plan.passes = 10;
  plan.sizes.assign(static_cast<size_t>(pictures.count()), {1, 0});
  plan.batch_size = even_batch(pictures.count(), *training.batch);
  plan.batch_unit = plan.unit = "pictures";
  plan.loss = [&](std::span<const int64_t> chosen, nn::Context& context) {
    const PictureBatch batch = draw_batch(pictures, loaded.moments, training, chosen, context.rng);
    return train::BatchLoss{loaded.network->loss(Var(batch.x), batch.labels, training.smoothing, context),
                            static_cast<double>(batch.labels.size())};
  };
  if (valid.count() > 0)
    plan.validate = [&] { return validation_of(classify_pictures(loaded, valid), valid.labels); };
  plan.score_name = "accuracy";
  plan.score_unit = "%";
  plan.should_stop = should_stop;
  plan.save_config = [&](const std::filesystem::path& out) { save_image_classifier_config(out, loaded); };
  plan.save_model = [&](const std::filesystem::path& out) { save_image_classifier(out, loaded); };
  plan.card = card_text(files, loaded);
  plan.command = command;
  return run_training(folder, plan, observer);
}

}  // namespace fovea::tasks
