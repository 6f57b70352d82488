// Any text as a checkpoint's state.json: refused with an Error, or a run that goes on from it for a few steps.
#include <cstdlib>

#include "autograd/ops.h"
#include "base/error.h"
#include "data/batches.h"
#include "folder.h"
#include "io/file.h"
#include "train/trainer.h"

namespace {

using namespace fovea;

// One weight that is to become small.
class Weight : public nn::Module {
 public:
  Weight() : value(add_parameter("value", Tensor::zeros({2}))) {}
  Var value;
};

// Trains in `folder`; at most a few steps, whatever the state says.
void train_a_little(const std::filesystem::path& folder, int64_t steps) {
  Weight model;
  data::BatchOrder order({{3, 0}, {5, 0}, {2, 0}}, 17, {.max_tokens = 10, .seed = 1});
  int left = 4;
  train::Job job;
  job.next_loss = [&](nn::Context&) {
    order.next();
    return train::BatchLoss{sum(model.value * model.value), 1};
  };
  job.position = [&] { return Json(order.position().text()); };
  job.seek = [&](const Json& json) {
    std::string position;
    value_from_json(json, position, "position");
    order.seek(data::BatchPosition::parse(position));
  };
  job.should_stop = [&] { return --left <= 0; };
  job.identity = Json{{"task", "fuzz"}};
  train::Trainer trainer(model, train::Adam{}, {}, {.steps = steps}, job);
  train::Observer observer;
  trainer.run(folder, observer);
  if (trainer.step() < 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const FuzzFolder folder;
  static const bool ready = [] {
    train_a_little(folder.path() / "good", 2);
    return true;
  }();
  if (!ready) std::abort();
  const std::filesystem::path run = folder.path() / "run";
  std::filesystem::remove_all(run);
  std::filesystem::copy(
      folder.path() / "good", run,
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  const std::string state = "run/checkpoints/" +
                            std::filesystem::read_symlink(run / "checkpoints" / "last").string() +
                            "/state.json";
  folder.write(state, as_text(bytes, size));
  try {
    train_a_little(run, 1 << 20);
  } catch (const Error&) {
  }
  return 0;
}
