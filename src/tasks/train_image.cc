#include "tasks/train_image.h"

#include <algorithm>
#include <sstream>

#include "data/images.h"
#include "models/registry.h"
#include "train/shuffled_order.h"

namespace fovea::tasks {
namespace {

// A batch of pictures, each moved and mirrored by chance.
struct PictureBatch {
  Tensor x;  // [batch, height, width, channels]
  std::vector<int32_t> labels;
};

PictureBatch draw_batch(const data::Pictures& pictures, const data::PixelMoments& moments,
                        const ImageTraining& training, train::ShuffledOrder& order, Rng& rng) {
  const data::PictureForm& form = pictures.form;
  const data::RandomCrop crop{form.height, form.width, training.shift, training.flip};
  PictureBatch batch{Tensor({training.batch, form.height, form.width, form.channels}), {}};
  for (int64_t i = 0; i < training.batch; ++i) {
    const int64_t place = order.next();
    const Tensor whole = data::normalised(pictures.picture(place), form, moments);
    const Tensor one =
        training.shift > 0 || training.flip ? data::random_crop(whole, crop, rng).contiguous() : whole;
    std::copy_n(one.data(), one.count(), batch.x.data() + i * one.count());
    batch.labels.push_back(pictures.labels[static_cast<size_t>(place)]);
  }
  return batch;
}

// Tells collections apart: a run is not continued on other pictures.
uint64_t fingerprint(const data::Pictures& pictures) {
  uint64_t hash = 0xcbf29ce484222325ull;
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3ull; };
  for (const uint8_t value : pictures.pixels) add(value);
  for (const int32_t label : pictures.labels) add(static_cast<uint64_t>(label));
  return hash;
}

std::string model_card(const ImageFiles& files, const ImageClassifierParts& parts,
                       const TrainingOutcome& outcome, const std::string& command) {
  std::ostringstream card;
  card << "# An image classifier made with Fovea\n\n"
       << "Tells " << parts.labels.size() << " classes of pictures of " << parts.form.height << " x "
       << parts.form.width << (parts.form.channels == 1 ? ", grey.\n" : ", in colour.\n") << "Trained on `"
       << files.train[0] << "`, " << outcome.step << " steps, " << outcome.parameters << " parameters.\n";
  if (outcome.best >= 0) card << "Accuracy on `" << files.valid[0] << "`: " << outcome.best << " %.\n";
  card << weights_note(outcome) << "\n    " << command << "\n\nUse it:\n\n    fovea classify "
       << files.out.string() << " picture.png\n";
  return card.str();
}

}  // namespace

void apply_preset(const std::string& name, ImageTraining& training, Json& settings) {
  require(name == "tiny" || name == "small" || name == "base", "preset: got ", in_quotes(name),
          ", wanted tiny, small or base");
  const bool tiny = name == "tiny", base = name == "base";
  settings = {{"depth", tiny ? 8 : base ? 56 : 20}, {"width", tiny ? 8 : 16}};
  training.learning_rate = base ? 1e-3 : 2e-3;
}

TrainingOutcome train_image(const ImageFiles& files, const ImageTraining& training,
                            const Json& model_settings, const train::TrainOptions& options,
                            const std::string& command, RunObserver& observer,
                            const std::function<bool()>& should_stop) {
  require(!files.out.empty(), "out: no directory was given for the model");
  models::check_settings<models::ImageClassifiers>(training.model, model_settings);
  require(training.batch >= 2, "batch: got ", training.batch, ", wanted at least 2");
  require(training.shift >= 0 && training.shift <= 64, "shift: got ", training.shift, ", wanted 0 to 64");
  observer.on_note("reading " + files.train[0]);
  const data::Pictures pictures = data::read_pictures(files.train, training.size);
  ImageClassifierParts parts;
  parts.model = training.model;
  parts.labels = pictures.classes;
  parts.form = pictures.form;
  const data::Pictures valid =
      files.valid.empty() ? data::Pictures{} : data::read_pictures_as(files.valid, parts.form, parts.labels);
  parts.moments = data::pixel_moments(pictures);
  parts.config = models::model_config<models::ImageClassifiers>(
      training.model, model_settings,
      Json{{"classes", static_cast<int64_t>(parts.labels.size())}, {"channels", parts.form.channels}});
  Rng rng(options.seed);
  parts.network = models::make_model<models::ImageClassifiers>(training.model, parts.config, rng);
  observer.on_note(message(pictures.count(), " pictures of ", parts.form.height, " x ", parts.form.width,
                           " x ", parts.form.channels, ", ", parts.labels.size(), " classes, ",
                           parts.network->parameter_count(), " parameters"));

  train::ShuffledOrder order(pictures.count(), options.seed);
  train::Job job;
  job.next_loss = [&](nn::Context& context) {
    const PictureBatch batch = draw_batch(pictures, parts.moments, training, order, context.rng);
    return train::BatchLoss{parts.network->loss(Var(batch.x), batch.labels, training.smoothing, context),
                            static_cast<double>(training.batch)};
  };
  job.position = [&] { return fields_to_json(order.position()); };
  job.seek = [&](const Json& json) {
    train::ShuffledOrder::Position position;
    fields_from_json(json, position, "checkpoint: the place in the data");
    order.seek(position);
  };
  job.save_more = [&](const std::filesystem::path& folder) { save_image_classifier_config(folder, parts); };
  if (valid.count() > 0)
    job.validate = [&] { return validation_of(classify_pictures(parts, valid), valid.labels); };
  job.should_stop = should_stop;
  job.identity = Json{{"task", "image"},
                      {"model", parts.model},
                      {"settings", parts.config},
                      {"labels", parts.labels},
                      {"pictures", fingerprint(pictures)},
                      {"batch", training.batch},
                      {"smoothing", training.smoothing},
                      {"seed", options.seed}};

  const train::ScheduleOptions schedule{.name = "inverse_sqrt", .warmup = training.warmup};
  const TrainingOutcome outcome = run_training(
      {.out = files.out,
       .network = *parts.network,
       .rule = train::AdamW{.learning_rate = training.learning_rate, .weight_decay = training.weight_decay},
       .schedule = schedule,
       .options = options,
       .job = job,
       .score_name = "accuracy"},
      observer);
  if (outcome.outcome == train::Outcome::interrupted) return outcome;
  save_image_classifier(files.out, parts);
  finish_folder(files.out, model_card(files, parts, outcome, command));
  return outcome;
}

}  // namespace fovea::tasks
