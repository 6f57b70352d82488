#include "tasks/demo.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>

#include "explain/heatmap.h"
#include "io/file.h"
#include "nn/attention.h"
#include "nn/init.h"
#include "nn/weights.h"
#include "tasks/learning_curve.h"

namespace fovea::tasks {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kLetters = 26, kMarks = 4, kLength = 16, kWidth = 32, kBatch = 32;
constexpr int32_t kNoMark = kMarks;
constexpr std::array<const char*, kMarks> kMarkSigns = {"▲", "●", "■", "◆"};
constexpr int64_t kValidationRows = 128, kFreshRows = 1024, kShownRows = 3;

// Streams of the run's one seed.
enum Stream : uint64_t { kWeights = 1, kTrainingRows = 2, kValidationStream = 3, kFreshStream = 4 };

// Rows, one after the other.
struct Rows {
  std::vector<int32_t> letters;  // [rows, kLength]
  std::vector<int32_t> marks;    // [rows, kLength], kNoMark where there is none
  std::vector<int32_t> answers;  // [rows, kMarks]: the letter that wears each mark
};

Rows make_rows(int64_t count, Rng& rng) {
  Rows rows;
  for (int64_t r = 0; r < count; ++r) {
    std::array<int32_t, kLength> letters, marks;
    for (int32_t& letter : letters) letter = static_cast<int32_t>(rng.below(kLetters));
    marks.fill(kNoMark);
    for (int32_t mark = 0; mark < kMarks;) {
      const auto place = static_cast<size_t>(rng.below(kLength));
      if (marks[place] != kNoMark) continue;
      marks[place] = mark++;
      rows.answers.push_back(letters[place]);
    }
    rows.letters.insert(rows.letters.end(), letters.begin(), letters.end());
    rows.marks.insert(rows.marks.end(), marks.begin(), marks.end());
  }
  return rows;
}

// Embeddings of letters, marks and questions; one head of attention from questions to the row; a letter out.
class CopyNetwork : public nn::Module {
 public:
  explicit CopyNetwork(Rng rng)
      : attention_({.width = kWidth, .heads = 1}, rng), output_(kWidth, kLetters, rng) {
    letters_ = add_parameter("letters", nn::normal({kLetters, kWidth}, 0, 1, rng));
    marks_ = add_parameter("marks", nn::normal({kMarks + 1, kWidth}, 0, 1, rng));
    questions_ = add_parameter("questions", nn::normal({kMarks, kWidth}, 0, 1, rng));
    add_child("attention", attention_);
    add_child("output", output_);
  }

  // -> logits [rows * kMarks, kLetters]
  Var operator()(const Rows& rows, nn::Context& context) const {
    const int64_t count = static_cast<int64_t>(rows.letters.size()) / kLength;
    std::vector<int32_t> asked(static_cast<size_t>(count * kMarks));
    for (size_t i = 0; i < asked.size(); ++i) asked[i] = static_cast<int32_t>(i % kMarks);
    const Var row = embedding(letters_, rows.letters) + embedding(marks_, rows.marks);
    const Var questions = reshape(embedding(questions_, asked), {count, kMarks, kWidth});
    const Var seen =
        attention_.cross(questions, reshape(row, {count, kLength, kWidth}), context, {.name = "attention"});
    return output_(reshape(seen, {count * kMarks, kWidth}));
  }

 private:
  Var letters_, marks_, questions_;
  nn::MultiHeadAttention attention_;
  nn::Linear output_;
};

std::vector<int32_t> answers_of(const Var& logits) {
  std::vector<int32_t> answers;
  const std::vector<float> values = logits.value().to_vector();
  for (auto row = values.begin(); row != values.end(); row += kLetters)
    answers.push_back(static_cast<int32_t>(std::max_element(row, row + kLetters) - row));
  return answers;
}

double accuracy_of(const std::vector<int32_t>& got, const std::vector<int32_t>& wanted) {
  int64_t right = 0;
  for (size_t i = 0; i < wanted.size(); ++i) right += got[i] == wanted[i];
  return static_cast<double>(right) / static_cast<double>(wanted.size());
}

// Keeps the weights of every call.
class Watcher : public AttentionObserver {
 public:
  Wish wish(const Call& call) override {
    Wish all{{0}, std::vector<int32_t>(static_cast<size_t>(call.queries))};
    std::iota(all.rows.begin(), all.rows.end(), 0);
    return all;
  }
  void see(const Call&, const Wish&, const Sight& sight) override { weights = sight.weights; }
  Tensor weights;  // [B, 1, kMarks, kLength]
};

char letter_sign(int32_t letter) {
  return static_cast<char>('a' + letter);
}

// "k▲": a letter and the mark it wears.
std::string cell(const Rows& rows, size_t place) {
  const int32_t mark = rows.marks[place];
  return letter_sign(rows.letters[place]) +
         std::string(mark == kNoMark ? " " : kMarkSigns[static_cast<size_t>(mark)]);
}

HeatMap map_of(const Rows& rows, int64_t row, const std::vector<int32_t>& answers, const Tensor& weights) {
  HeatMap map;
  map.row_count = kMarks;
  map.column_count = kLength;
  for (int64_t m = 0; m < kMarks; ++m) {
    map.rows.push_back(kMarkSigns[static_cast<size_t>(m)] + std::string(" ") +
                       letter_sign(answers[static_cast<size_t>(row * kMarks + m)]));
  }
  const float* first = weights.contiguous().data() + row * kMarks * kLength;
  map.weights.assign(first, first + kMarks * kLength);
  for (int64_t i = 0; i < kLength; ++i)
    map.columns.push_back(cell(rows, static_cast<size_t>(row * kLength + i)));
  return map;
}

// The letters stand right above their blocks, which takes the place of numbered columns.
std::string text_of(HeatMap map) {
  std::string header = "    ";
  for (const std::string& column : map.columns) header += column;
  map.columns.clear();
  return header + "\n" + shade(map);
}

void show(const CopyNetwork& network, const Rows& fresh, const std::vector<int32_t>& answers,
          DemoResult& result, const fs::path& picture) {
  Rows shown;
  shown.letters.assign(fresh.letters.begin(), fresh.letters.begin() + kShownRows * kLength);
  shown.marks.assign(fresh.marks.begin(), fresh.marks.begin() + kShownRows * kLength);
  Watcher watcher;
  {
    const ObserveAttention observe(watcher);
    nn::Context context;
    network(shown, context);
  }
  Figure figure{.title = "Where the network looks for each mark", .panels = {}, .across = 1};
  for (int64_t row = 0; row < kShownRows; ++row) {
    const HeatMap map = map_of(shown, row, answers, watcher.weights);
    int right = 0;
    for (int64_t m = 0; m < kMarks; ++m) {
      const auto place = static_cast<size_t>(row * kMarks + m);
      right += answers[place] == fresh.answers[place];
    }
    result.examples.push_back({text_of(map), right});
    figure.panels.push_back(map);
  }
  write_atomically(picture, draw(figure, PictureFormat::svg));
}

}  // namespace

DemoResult run_demo(const DemoOptions& options, train::Observer& observer,
                    const std::function<bool()>& should_stop) {
  const Rng root(options.seed);
  const CopyNetwork network(root.split(kWeights));
  Rng training_rows = root.split(kTrainingRows), validation_stream = root.split(kValidationStream);
  const Rows validation = make_rows(kValidationRows, validation_stream);

  train::Job job{.next_loss =
                     [&](nn::Context& context) {
                       const Rows rows = make_rows(kBatch, training_rows);
                       return train::BatchLoss{cross_entropy(network(rows, context), rows.answers),
                                               static_cast<double>(rows.answers.size())};
                     },
                 .position =
                     [&] {
                       return Json{{"drawn", training_rows.state().drawn}};
                     },
                 .seek =
                     [&](const Json& position) {
                       uint64_t drawn = 0;
                       value_from_json(position.value("drawn", Json()), drawn, "position: drawn");
                       training_rows = Rng(Rng::State{training_rows.state().key, drawn});
                     },
                 .validate =
                     [&] {
                       nn::Context context;
                       return train::Validation{
                           accuracy_of(answers_of(network(validation, context)), validation.answers)};
                     },
                 .higher_is_better = true,
                 .should_stop = should_stop,
                 .identity = {{"task", "demo"}, {"seed", options.seed}}};
  const train::TrainOptions train_options{.steps = options.steps,
                                          .clip_norm = 1,
                                          .log_every = 20,
                                          .validate_every = 100,
                                          .save_every = 100,
                                          .seed = options.seed};
  train::Trainer trainer(network, train::Adam{.learning_rate = 3e-3}, {.name = "constant", .warmup = 20},
                         train_options, job);

  DemoResult result;
  const fs::path out = options.out;
  result.outcome = trainer.run(out, observer);
  result.step = trainer.step();
  result.parameters = network.parameter_count();
  if (result.outcome == train::Outcome::interrupted) return result;

  const NoGrad no_grad;
  Rng fresh_stream = root.split(kFreshStream);
  const Rows fresh = make_rows(kFreshRows, fresh_stream);
  nn::Context context;
  const std::vector<int32_t> answers = answers_of(network(fresh, context));
  result.asked = static_cast<int64_t>(answers.size());
  result.accuracy = accuracy_of(answers, fresh.answers);
  show(network, fresh, answers, result, out / "attention.svg");
  write_curve(out);
  save_json(out / "config.json",
            {{"model", "demo"}, {"width", kWidth}, {"letters", kLetters}, {"marks", kMarks}});
  nn::save_weights(network, out / "model.safetensors");
  return result;
}

}  // namespace fovea::tasks
