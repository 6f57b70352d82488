#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace fovea::cli {
namespace {

using ::testing::HasSubstr;

train::StepReport report(int64_t step, bool logged = false) {
  return {.step = step,
          .steps = 1000,
          .loss = 0.5,
          .gradient_norm = 1.25,
          .learning_rate = 3e-3,
          .items_per_second = 12345,
          .unit = "tokens",
          .seconds_left = 67,
          .logged = logged};
}

TEST(Progress, TellsStepLossNormRateThroughputAndTime) {
  EXPECT_EQ(progress_text(report(120)),
            "step 120/1000  loss 0.5000  |g| 1.25  rate 3.00e-03  12.3k tokens/s  1:07 left");
  train::StepReport endless = report(120);
  endless.steps = train::kAnySteps;
  EXPECT_EQ(progress_text(endless),
            "step 120  loss 0.5000  |g| 1.25  rate 3.00e-03  12.3k tokens/s  1:07 left");
  EXPECT_EQ(clock_text(3 * 3600 + 2 * 60 + 15), "3:02:15");
}

TEST(Progress, PlainLinesShowWhatIsLogged) {
  std::ostringstream out;
  {
    Progress progress(out, 0);
    progress.on_resume(9);
    progress.on_step(report(10));
    progress.on_step(report(20, true));
    progress.on_validation({20, {.value = 0.75, .details = {{"bleu", 31.5}}}, true});
  }
  EXPECT_EQ(out.str(), "resuming after step 9\n" + progress_text(report(20)) +
                           "\nstep 20  validation 0.7500  best so far  bleu 31.5\n");
}

TEST(Progress, OneLineChangesOnATerminalAndNeverWraps) {
  for (const int columns : {20, 80, 200}) {
    std::ostringstream out;
    {
      Progress progress(out, columns);
      progress.on_step(report(10));
      progress.on_step(report(1000));
    }
    const std::string text = out.str();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\r'), 2);
    size_t width = 0, widest = 0;
    for (const char c : text) {
      if (c == '\r' || c == '\n' || c == '\x1b') width = 0;
      widest = std::max(widest, width += (c & 0xC0) != 0x80 ? 1 : 0);
    }
    EXPECT_LE(widest, static_cast<size_t>(columns) + 1) << columns;  // the \r itself was counted
  }
}

}  // namespace
}  // namespace fovea::cli
