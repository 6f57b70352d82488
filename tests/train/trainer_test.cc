#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <limits>

#include "base/error_of.h"
#include "base/parallel.h"
#include "io/temporary_directory.h"
#include "train/checkpoint.h"
#include "train/toy_run.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Recorder : public Observer {
 public:
  void on_resume(int64_t step) override { resumed_at = step; }
  void on_step(const StepReport& report) override { steps.push_back(report); }
  void on_validation(const ValidationReport& report) override { validations.push_back(report); }
  void on_save(int64_t step) override { saves.push_back(step); }
  int64_t resumed_at = -1;
  std::vector<StepReport> steps;
  std::vector<ValidationReport> validations;
  std::vector<int64_t> saves;
};

std::vector<Json> log_lines(const fs::path& run) {
  std::vector<Json> lines;
  std::istringstream text(read_text(run / "train.jsonl"));
  for (std::string line; std::getline(text, line);) lines.push_back(parse_json(line, "line"));
  return lines;
}

TEST(Trainer, LearnsReportsAndSaves) {
  const TemporaryDirectory directory;
  ToyRun run({.steps = 100, .clip_norm = 1, .log_every = 20, .validate_every = 50, .save_every = 30});
  Recorder recorder;
  EXPECT_EQ(run.run(directory.path(), recorder), Outcome::finished);
  ASSERT_EQ(recorder.steps.size(), 100u);
  EXPECT_LT(recorder.steps.back().loss, 0.5 * recorder.steps.front().loss);
  EXPECT_NEAR(recorder.steps[0].learning_rate, 3e-3 / 5, 1e-9);
  EXPECT_GT(recorder.steps[0].gradient_norm, 0);
  EXPECT_GT(recorder.steps[0].items_per_second, 0);
  EXPECT_EQ(recorder.steps[99].seconds_left, 0);
  EXPECT_THAT(recorder.saves, ::testing::ElementsAre(30, 50, 60, 90, 100));
  ASSERT_EQ(recorder.validations.size(), 2u);
  EXPECT_TRUE(recorder.validations[1].is_best);
  EXPECT_EQ(fs::read_symlink(directory / "checkpoints/last"), "step-000100");
  EXPECT_EQ(fs::read_symlink(directory / "checkpoints/best"), "step-000100");
  EXPECT_EQ(entry_count(directory / "checkpoints"), 3u);
  const std::vector<Json> lines = log_lines(directory.path());
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0]["event"], "step");
  EXPECT_EQ(lines[0]["step"], 20);
  EXPECT_EQ(lines[2]["event"], "validation");
  EXPECT_EQ(lines[2]["examples"], 100);
}

// Trains 60 steps, stopping as `stops` says after each run's number of steps, and gives the final bytes.
size_t train_with_stops(std::vector<int64_t> stops, TrainOptions options, Rule rule = AdamW{},
                        ScheduleOptions schedule = {.name = "cosine", .warmup = 5, .steps = 60}) {
  const TemporaryDirectory directory;
  options.steps = 60;
  for (const int64_t stop : stops) {
    ToyRun run(options, rule, schedule);
    int64_t done = 0;
    run.job.should_stop = [&] { return ++done == stop; };
    EXPECT_EQ(run.run(directory.path()), Outcome::interrupted);
  }
  ToyRun run(options, rule, schedule);
  EXPECT_EQ(run.run(directory.path()), Outcome::finished);
  return last_bytes(directory.path());
}

TEST(Trainer, ResumesBitIdentically) {
  const TrainOptions options{.accumulate = 2, .clip_norm = 0.5, .validate_every = 7};
  const size_t straight = train_with_stops({}, options);
  EXPECT_EQ(train_with_stops({1}, options), straight);
  EXPECT_EQ(train_with_stops({13, 7, 21}, options), straight);
  EXPECT_NE(train_with_stops({}, {.accumulate = 2, .clip_norm = 0.5, .seed = 2}), straight);
}

TEST(Trainer, ResumesEveryOptimiserAndPlateauBitIdentically) {
  for (const char* name : {"sgd", "adam", "adadelta", "adagrad", "rmsprop"}) {
    const TrainOptions options{.ema = 0.9, .validate_every = 5};
    const ScheduleOptions plateau{.name = "plateau", .factor = 0.5, .patience = 1};
    const Rule rule = rule_from_name(name);
    EXPECT_EQ(train_with_stops({13, 22}, options, rule, plateau),
              train_with_stops({}, options, rule, plateau))
        << name;
  }
}

TEST(Trainer, SameBytesForAnyNumberOfThreads) {
  const int before = num_threads();
  std::vector<size_t> bytes;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    bytes.push_back(train_with_stops({}, {.clip_norm = 0.5}));
  }
  set_num_threads(before);
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_EQ(bytes[0], bytes[2]);
}

// The steps and the bytes of what is kept for an average.
std::pair<std::string, size_t> kept_for_average(const fs::path& run) {
  std::string names, bytes;
  for (const fs::path& file : RecentWeights(run, 100).files()) {
    names += file.stem().string() + " ";
    bytes += read_text(file);
  }
  return {names, std::hash<std::string>()(bytes)};
}

TEST(Trainer, KeepsTheWeightsOfTheLastRegularCheckpointsForAnAverage) {
  const auto kept_after = [](std::vector<int64_t> stops, TrainOptions options) {
    const TemporaryDirectory directory;
    for (const int64_t stop : stops) {
      ToyRun run(options);
      int64_t done = 0;
      run.job.should_stop = [&] { return ++done == stop; };
      EXPECT_EQ(run.run(directory.path()), Outcome::interrupted);
    }
    ToyRun run(options);
    EXPECT_EQ(run.run(directory.path()), Outcome::finished);
    return kept_for_average(directory.path());
  };
  const TrainOptions saved{.steps = 57, .average = 3, .validate_every = 4, .save_every = 10};
  const auto straight = kept_after({}, saved);
  EXPECT_EQ(straight.first, "step-000030 step-000040 step-000050 ");
  EXPECT_EQ(kept_after({1, 22, 8, 19}, saved), straight) << "stops at 1, 23, 31 and 50";
  EXPECT_EQ(kept_after({}, {.steps = 20, .average = 3, .validate_every = 7}).first,
            "step-000007 step-000014 ");
  EXPECT_EQ(kept_after({}, {.steps = 20, .average = 1, .save_every = 5}).first, "");
}

TEST(Trainer, WeightsKeptAfterTheCheckpointAreForgotten) {
  const TemporaryDirectory directory;
  ToyRun first({.steps = 20, .average = 2, .save_every = 10});
  first.run(directory.path());
  const auto kept = kept_for_average(directory.path());
  // As if the run had been killed after it kept the weights of step 30 and before it saved step 30.
  fs::copy_file(directory / "checkpoints/recent/step-000010.safetensors",
                directory / "checkpoints/recent/step-000030.safetensors");
  ToyRun again({.steps = 25, .average = 2, .save_every = 10});
  again.run(directory.path());
  EXPECT_EQ(kept_for_average(directory.path()).first, "step-000020 ")
      << "step 10 was too many beside 20 and 30";
  ToyRun none({.steps = 26, .average = 0, .save_every = 10});
  none.run(directory.path());
  EXPECT_FALSE(fs::exists(directory / "checkpoints/recent"));
}

TEST(Trainer, AveragedWeightsAreSavedAndComeBack) {
  const TemporaryDirectory straight, resumed;
  const TrainOptions options{.steps = 40, .ema = 0.9, .validate_every = 10};
  ToyRun(options).run(straight.path());
  ToyRun first(options);
  int64_t done = 0;
  first.job.should_stop = [&] { return ++done == 15; };
  first.run(resumed.path());
  ToyRun(options).run(resumed.path());
  const fs::path file = "checkpoints/last/ema.safetensors";
  EXPECT_TRUE(read_text(straight.path() / file) == read_text(resumed.path() / file));
}

TEST(Trainer, BuffersAreSavedAveragedAndLeftAloneByTheOptimiser) {
  const TemporaryDirectory directory;
  ToyRun run({.steps = 12, .ema = 0.9, .average = 2, .validate_every = 6, .save_every = 6});
  run.run(directory.path());
  const fs::path last = directory / "checkpoints/last";
  const SafetensorsFile model(last / "model.safetensors"), ema(last / "ema.safetensors"),
      optimizer(last / "optimizer.safetensors");
  const std::string name = "norm.running_mean";
  EXPECT_EQ(model->read(name), run.network.norm.running_mean.value().to_vector());
  EXPECT_NE(model->read(name), std::vector<float>(kHidden, 0.0f)) << "it followed the batches";
  EXPECT_NE(ema->read(name), model->read(name));
  EXPECT_FALSE(optimizer->contains(name + ".step"));
  for (const fs::path& kept : RecentWeights(directory.path(), 2).files())
    EXPECT_TRUE(SafetensorsFile(kept)->contains(name)) << kept;
}

TEST(Trainer, ABrokenBufferIsNeverSaved) {
  const TemporaryDirectory directory;
  ToyRun run({.steps = 2});
  run.job.should_stop = [&] {
    run.network.norm.running_var.value().data()[3] = NAN;
    return false;
  };
  run.job.validate = {};
  EXPECT_THAT(error_of([&] { run.run(directory.path()); }),
              HasSubstr("the weight 'norm.running_var' is not finite"));
  EXPECT_FALSE(fs::exists(directory / "checkpoints/last"));
}

TEST(Trainer, LogsTheMeanLossSinceTheLastLineAlsoAcrossAStop) {
  const TemporaryDirectory directory;
  TrainOptions options{.steps = 40, .log_every = 10, .save_every = 5};
  const auto steps_of = [](const fs::path& run) {
    std::vector<double> losses;
    for (const Json& line : log_lines(run))
      if (line["event"] == "step") losses.push_back(line["loss"].get<double>());
    return losses;
  };
  ToyRun begun(options);
  int64_t done = 0;
  begun.job.should_stop = [&] { return ++done == 15; };
  EXPECT_EQ(begun.run(directory.path()), Outcome::interrupted);
  EXPECT_EQ(ToyRun(options).run(directory.path()), Outcome::finished);
  const TemporaryDirectory each;
  options.log_every = 1;
  ToyRun(options).run(each.path());
  const std::vector<double> means = steps_of(directory.path()), losses = steps_of(each.path());
  ASSERT_EQ(means.size(), 4u);
  ASSERT_EQ(losses.size(), 40u);
  for (size_t line = 0; line < 4; ++line) {
    double mean = 0;
    for (size_t i = 0; i < 10; ++i) mean += losses[10 * line + i] / 10;
    EXPECT_NEAR(means[line], mean, 1e-6 * mean) << "line " << line;
  }
}

TEST(Trainer, LogContinuesExactlyAfterALostTail) {
  const TemporaryDirectory directory;
  ToyRun first({.steps = 60, .log_every = 1, .save_every = 20});
  first.job.next_loss = [&, calls = 0](nn::Context& context) mutable -> BatchLoss {
    if (++calls == 35) fail("the process dies here");
    return first.next_loss(context);
  };
  EXPECT_EQ(error_of([&] { first.run(directory.path()); }), "the process dies here");
  EXPECT_EQ(log_lines(directory.path()).size(), 34u);
  ToyRun second({.steps = 60, .log_every = 1, .save_every = 20});
  Recorder recorder;
  second.run(directory.path(), recorder);
  EXPECT_EQ(recorder.resumed_at, 20);
  int64_t expected = 0;
  for (const Json& line : log_lines(directory.path()))
    if (line["event"] == "step") {
      EXPECT_EQ(line["step"], ++expected);
    }
  EXPECT_EQ(expected, 60);
}

TEST(Trainer, FinishedRunSaysSoAndTrainsOnWithMoreSteps) {
  const TemporaryDirectory directory;
  const ScheduleOptions constant{};
  EXPECT_EQ(ToyRun({.steps = 20}, Adam{}, constant).run(directory.path()), Outcome::finished);
  ToyRun again({.steps = 20}, Adam{}, constant);
  Recorder recorder;
  EXPECT_EQ(again.run(directory.path(), recorder), Outcome::already_finished);
  EXPECT_TRUE(recorder.steps.empty());
  ToyRun more({.steps = 30}, Adam{}, constant);
  EXPECT_EQ(more.run(directory.path(), recorder), Outcome::finished);
  EXPECT_EQ(recorder.resumed_at, 20);
  EXPECT_EQ(recorder.steps.size(), 10u);
  const TemporaryDirectory straight;
  ToyRun({.steps = 30}, Adam{}, constant).run(straight.path());
  EXPECT_EQ(last_bytes(directory.path()), last_bytes(straight.path()));
}

TEST(Trainer, FinishedRunLeavesItsWeightsInTheModel) {
  const TemporaryDirectory directory;
  ToyRun first({.steps = 20}), again({.steps = 20});
  first.run(directory.path());
  again.run(directory.path());
  EXPECT_EQ(first.network.second.weight.value().to_vector(), again.network.second.weight.value().to_vector());
}

TEST(Trainer, StopsEarlyAndGoesOnWhenGivenMoreSteps) {
  const TemporaryDirectory directory;
  const auto stuck = [](int64_t steps) {
    auto run = std::make_unique<ToyRun>(TrainOptions{.steps = steps, .validate_every = 5, .patience = 3});
    run->job.validate = [] { return Validation{1.0}; };
    return run;
  };
  Recorder recorder;
  EXPECT_EQ(stuck(1000)->run(directory.path(), recorder), Outcome::stopped_early);
  EXPECT_EQ(recorder.steps.size(), 20u);
  EXPECT_EQ(stuck(1000)->run(directory.path(), recorder), Outcome::already_finished);
  EXPECT_EQ(stuck(2000)->run(directory.path(), recorder), Outcome::stopped_early);
  EXPECT_EQ(recorder.steps.size(), 35u);
}

TEST(Trainer, BestIsKeptApartFromLast) {
  const TemporaryDirectory directory;
  ToyRun run({.steps = 40, .validate_every = 10});
  run.job.higher_is_better = true;
  run.job.validate = [calls = 0]() mutable { return Validation{++calls == 2 ? 0.9 : 0.1}; };
  run.run(directory.path());
  EXPECT_EQ(fs::read_symlink(directory / "checkpoints/best"), "step-000020");
  EXPECT_EQ(fs::read_symlink(directory / "checkpoints/last"), "step-000040");
}

TEST(Trainer, StopsWhenTheMinutesAreOver) {
  const TemporaryDirectory directory;
  ToyRun run({.steps = 1'000'000'000, .minutes = 0.2 / 60});
  EXPECT_EQ(run.run(directory.path()), Outcome::out_of_time);
  EXPECT_EQ(ToyRun({.steps = 1'000'000'000, .minutes = 0.2 / 60}).run(directory.path()),
            Outcome::already_finished);
}

TEST(Trainer, TheLastWeightsAreValidatedAndCompeteWhenTheMinutesAreOver) {
  const TemporaryDirectory directory;
  ToyRun run({.minutes = 0.2 / 60, .validate_every = 1'000'000});
  run.job.higher_is_better = true;
  run.job.validate = [] { return Validation{0.5}; };
  Recorder recorder;
  EXPECT_EQ(run.run(directory.path(), recorder), Outcome::out_of_time);
  ASSERT_EQ(recorder.validations.size(), 1u);
  EXPECT_EQ(recorder.validations[0].step, recorder.steps.back().step);
  EXPECT_EQ(fs::read_symlink(directory / "checkpoints/best"),
            fs::read_symlink(directory / "checkpoints/last"));
}

TEST(Trainer, ValidatesAFixedNumberOfTimesInARunOfAnyLength) {
  for (const int64_t steps : {8, 23, 60}) {
    const TemporaryDirectory directory;
    ToyRun run({.steps = steps, .validations = 8});
    Recorder recorder;
    run.run(directory.path(), recorder);
    EXPECT_EQ(recorder.validations.size(), 8u) << steps;
    EXPECT_EQ(recorder.validations.back().step, steps);
    EXPECT_EQ(recorder.saves.size(), 8u) << "each is saved";
  }
  const TemporaryDirectory directory;
  ToyRun timed({.minutes = 3.0 / 60, .validations = 8});
  Recorder recorder;
  timed.run(directory.path(), recorder);
  ASSERT_FALSE(recorder.validations.empty());
  EXPECT_EQ(recorder.validations.back().step, recorder.steps.back().step);
  EXPECT_LE(recorder.validations.size(), 9u);
  // A busy machine may make fewer steps than there are validations.
  if (recorder.steps.size() > 40) {
    EXPECT_GE(recorder.validations.size(), 6u);
  }
}

TEST(Trainer, ARateThatKnowsTheBudgetRisesAndEndsNearZero) {
  const ScheduleOptions budget{.name = "budget", .warmup_share = 0.1};
  const TemporaryDirectory by_steps, by_time;
  Recorder counted, timed;
  ToyRun({.steps = 60}, Adam{.learning_rate = 1}, budget).run(by_steps.path(), counted);
  ToyRun({.minutes = 2.0 / 60}, Adam{.learning_rate = 1e-3}, budget).run(by_time.path(), timed);
  EXPECT_NEAR(counted.steps[0].learning_rate, 0.5 / 60 / 0.1, 1e-3);
  EXPECT_GT(counted.steps[10].learning_rate, 0.9);
  EXPECT_LT(counted.steps[59].learning_rate, 0.001);
  // The rate of a step is that of the time at which it began, however long the others took.
  if (timed.steps.size() > 20) {
    EXPECT_LT(timed.steps.back().learning_rate, 0.3e-3);
  }
}

TEST(Trainer, ABudgetOfStepsResumesBitIdentically) {
  const ScheduleOptions budget{.name = "budget", .warmup_share = 0.1};
  const TrainOptions options{.average = 2, .validations = 7};
  EXPECT_EQ(train_with_stops({13, 7, 21}, options, AdamW{}, budget),
            train_with_stops({}, options, AdamW{}, budget));
}

TEST(Trainer, MoreMinutesGoOnAfterAnEarlyStop) {
  const TemporaryDirectory directory;
  const auto outcome = [&](double minutes) {
    ToyRun run({.minutes = minutes, .validate_every = 5, .patience = 2});
    run.job.validate = [] { return Validation{1.0}; };
    return run.run(directory.path());
  };
  EXPECT_EQ(outcome(10), Outcome::stopped_early);
  EXPECT_EQ(outcome(10), Outcome::already_finished);
  EXPECT_EQ(outcome(30), Outcome::stopped_early);
}

TEST(Trainer, ADamagedStateIsOneClearLine) {
  const TemporaryDirectory directory;
  ToyRun({.steps = 5}).run(directory.path());
  const fs::path state = fs::canonical(directory / "checkpoints/last") / "state.json";
  const std::string whole = read_text(state);
  const auto complaint = [&](const std::string& pointer, const Json& value) {
    Json json = parse_json(whole, "state");
    json[Json::json_pointer(pointer)] = value;
    write_atomically(state, json.dump());
    return error_of([&] { ToyRun({.steps = 9}).run(directory.path()); });
  };
  const Json lowest = std::numeric_limits<int64_t>::min();
  for (const char* name : {"/step", "/seconds", "/steps_wanted", "/minutes_wanted", "/window_steps",
                           "/early_stopping/best_step", "/early_stopping/waited", "/position"})
    for (const Json& value : {lowest, Json("x"), Json(nullptr), Json::array()}) {
      const std::string error = complaint(name, value);
      EXPECT_THAT(error, HasSubstr("state.json: ")) << name << " " << value.dump();
      EXPECT_EQ(error.find('\n'), std::string::npos);
    }
  EXPECT_THAT(complaint("/step", lowest), HasSubstr("state.json: damaged; step is -9223372036854775808"));
  for (const char* name :
       {"identity", "optimizer", "rng", "early_stopping", "position", "schedule", "step"}) {
    EXPECT_NE(complaint(std::string("/") + name, 3.5), "no error") << name;
    Json json = parse_json(whole, "state");
    json.erase(name);
    write_atomically(state, json.dump());
    EXPECT_THAT(error_of([&] { ToyRun({.steps = 9}).run(directory.path()); }),
                HasSubstr(std::string("state.json: damaged; there is no ") + name));
  }
  for (const char* text : {"", "[]", "{", "\xff", "null"}) {
    write_atomically(state, text);
    EXPECT_THAT(error_of([&] { ToyRun({.steps = 9}).run(directory.path()); }),
                AllOf(HasSubstr("state.json"), HasSubstr("remove the folder checkpoints to start again")))
        << text;
  }
  write_atomically(state, whole);
  EXPECT_EQ(ToyRun({.steps = 9}).run(directory.path()), Outcome::finished);
}

TEST(Trainer, AccumulationAveragesTheBatches) {
  // Two batches of half the size, averaged, are one of the whole: the same update but for rounding.
  const auto weights = [](int64_t accumulate, int64_t batch) {
    const TemporaryDirectory directory;
    ToyRun run({.steps = 3, .accumulate = accumulate, .clip_norm = 0.1}, Sgd{.learning_rate = 0.1}, {});
    run.job.next_loss = [&, place = int64_t{0}](nn::Context&) mutable -> BatchLoss {
      nn::Context plain;
      const Tensor x = run.inputs.narrow(0, place, batch), y = run.targets.narrow(0, place, batch);
      place += batch;
      return {squared_error(run.network(Var(x), plain), y), 1};
    };
    run.run(directory.path());
    return run.network.second.bias.value().to_vector();
  };
  const std::vector<float> whole = weights(1, 24), halves = weights(2, 12);
  for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], halves[i], 1e-6);
}

TEST(Trainer, NanInTheLossStopsTheRunNamingTheStep) {
  const TemporaryDirectory directory;
  ToyRun run({.steps = 20, .save_every = 5});
  run.job.next_loss = [&, calls = 0](nn::Context& context) mutable -> BatchLoss {
    BatchLoss batch = run.next_loss(context);
    if (++calls == 8) batch.loss.value().data()[0] = NAN;
    return batch;
  };
  const std::string error = error_of([&] { run.run(directory.path()); });
  EXPECT_THAT(error, HasSubstr("step 8: the loss is nan"));
  EXPECT_THAT(error, HasSubstr("step-000005"));
}

TEST(Trainer, InfInAGradientStopsTheRunNamingTheTensor) {
  const TemporaryDirectory directory;
  ToyRun run({.steps = 20, .save_every = 5});
  run.job.next_loss = [&, calls = 0](nn::Context& context) mutable -> BatchLoss {
    if (++calls == 3) run.network.shift.add_grad(Tensor::full({kHidden}, INFINITY));
    return run.next_loss(context);
  };
  EXPECT_THAT(
      error_of([&] { run.run(directory.path()); }),
      HasSubstr("step 3: the gradient of 'shift' is not finite; training stopped, there is no checkpoint"));
}

TEST(Trainer, BrokenWeightsAreNeverSaved) {
  const TemporaryDirectory directory;
  ToyRun run({.steps = 2}, Sgd{.learning_rate = 1e38}, {});
  const std::string error = error_of([&] { run.run(directory.path()); });
  EXPECT_THAT(error, ::testing::AnyOf(HasSubstr("is not finite"), HasSubstr("the loss is")));
  EXPECT_FALSE(fs::exists(directory / "checkpoints/last"));
}

TEST(Trainer, AnotherRunsDirectoryIsRefused) {
  const TemporaryDirectory directory;
  ToyRun({.steps = 5}).run(directory.path());
  EXPECT_THAT(error_of([&] { ToyRun({.steps = 5, .seed = 2}).run(directory.path()); }),
              HasSubstr("contains a run with seed '1'; got '2'; choose another folder"));
  EXPECT_THAT(error_of([&] { ToyRun({.steps = 5}, Sgd{}).run(directory.path()); }),
              HasSubstr("was trained with the optimizer 'adamw', got 'sgd'"));
}

TEST(Trainer, TwoRunsInOneDirectoryAreRefused) {
  const TemporaryDirectory directory;
  ToyRun outer({.steps = 1});
  outer.job.save_more = [&](const fs::path&) {
    EXPECT_THAT(error_of([&] { ToyRun({.steps = 1}).run(directory.path()); }), HasSubstr("another process"));
  };
  outer.run(directory.path());
}

TEST(Trainer, FullDiskGivesOneErrorAndTheLastCheckpointStands) {
  const TemporaryDirectory directory;
  const TrainOptions options{.steps = 20, .save_every = 5};
  ToyRun run(options);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  run.job.save_more = [&, calls = 0](const fs::path&) mutable {
    if (++calls != 2) return;
    const rlimit small{50'000, before.rlim_max};  // the third checkpoint does not fit
    setrlimit(RLIMIT_FSIZE, &small);
  };
  const std::string error = error_of([&] { run.run(directory.path()); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_THAT(error, HasSubstr("cannot write"));
  EXPECT_EQ(fs::read_symlink(directory / "checkpoints/last"), "step-000010");
  EXPECT_EQ(entry_count(directory / "checkpoints"), 2u);  // the set and the link to it
  EXPECT_EQ(ToyRun(options).run(directory.path()), Outcome::finished);
  const TemporaryDirectory straight;
  ToyRun(options).run(straight.path());
  EXPECT_EQ(last_bytes(directory.path()), last_bytes(straight.path()));
}

TEST(Trainer, ADirectoryThatCannotBeMadeIsOneError) {
  const TemporaryDirectory directory;
  write_atomically(directory / "file", "x");
  EXPECT_THAT(error_of([&] { ToyRun({.steps = 1}).run(directory / "file/run"); }),
              HasSubstr("cannot make the directory"));
}

TEST(Trainer, NonsenseIsRefused) {
  EXPECT_THAT(error_of([] { ToyRun({.accumulate = 0}).run("/nowhere"); }),
              HasSubstr("accumulate: got 0, wanted 1 to"));
  EXPECT_THAT(error_of([] { ToyRun({.steps = -1}).run("/nowhere"); }),
              HasSubstr("steps: got -1, wanted at least 1"));
  EXPECT_THAT(error_of([] { ToyRun({.minutes = -3}).run("/nowhere"); }), HasSubstr("minutes: got -3"));
}

}  // namespace
}  // namespace fovea::train
