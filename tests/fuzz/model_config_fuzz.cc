// Any text as the config.json of a Fovea model folder whose other files are whole: refused with an Error, or a model
// that its weights fit, without memory or time beyond what the weights file warrants. The first byte chooses the folder.
#include <memory>
#include <vector>

#include "base/error.h"
#include "folder.h"
#include "tasks/open.h"
#include "tasks/untrained_captioner.h"
#include "tasks/untrained_classifiers.h"
#include "tasks/untrained_series.h"
#include "tasks/untrained_translator.h"
#include "tasks/untrained_vision.h"

namespace {

// A folder of each kind, made once.
struct Folders {
  Folders() {
    using namespace fovea;
    const Json recurrent{{"width", 8}, {"embedding", 8}};
    tasks::save_translation(all.path() / "0", tasks::untrained_translator());
    tasks::save_translation(all.path() / "1", tasks::untrained_translator("words", "bahdanau", recurrent));
    tasks::save_translation(all.path() / "2", tasks::untrained_translator("words", "luong", recurrent));
    tasks::save_classifier(all.path() / "3", tasks::untrained_classifier());
    tasks::save_classifier(all.path() / "4", tasks::untrained_classifier("han"));
    tasks::save_classifier(
        all.path() / "5",
        tasks::untrained_classifier("transformer",
                                    Json{{"width", 8}, {"heads", 2}, {"hidden", 16}, {"layers", 2}}));
    tasks::save_image_classifier(all.path() / "6", tasks::untrained_image_classifier());
    tasks::save_captioner(all.path() / "7", tasks::untrained_captioner());
    tasks::save_glimpse_classifier(all.path() / "8", tasks::untrained_glimpse_classifier("ram"));
    tasks::save_glimpse_classifier(all.path() / "9", tasks::untrained_glimpse_classifier("soft"));
    tasks::save_clip_classifier(all.path() / "10", tasks::untrained_clip_classifier());
    tasks::save_partition(all.path() / "11", tasks::untrained_partition());
    tasks::save_series(all.path() / "12", tasks::untrained_series(tasks::SeriesGoal::forecast));
    tasks::save_series(all.path() / "13", tasks::untrained_series(tasks::SeriesGoal::classify, "lstm"));
    tasks::save_series(all.path() / "14", tasks::untrained_series(tasks::SeriesGoal::regress));
    tasks::save_image_classifier(all.path() / "15", tasks::untrained_vit());
  }
  FuzzFolder all;
};
constexpr unsigned kFolders = 16;  // '0' to '?' as the first byte

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const Folders folders;
  if (size == 0) return 0;
  const std::string name = std::to_string(bytes[0] % kFolders);
  folders.all.write(name + "/config.json", as_text(bytes + 1, size - 1));
  try {
    fovea::tasks::open(folders.all.path() / name);
  } catch (const fovea::Error&) {
  }
  return 0;
}
