// fovea scene: a harbour with ships, as `fovea train partition --train scenes` learns from.
#include <iostream>

#include "cli/flags.h"
#include "cli/verbs.h"
#include "tasks/output_file.h"
#include "tasks/scene_picture.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(The same number and size give the same scene. The scenes are those of `fovea partition --test scenes`; no training uses them.
--labels draws beside the picture what a network learns from: the coarse map, the fine map and the true boxes.

  fovea scene 1 --out harbour.png
  fovea scene 1 --labels --out labels.svg)help";

struct Flags {
  int64_t number = 0, size = 128;
  std::string out;
  bool labels = false;
};

}  // namespace

void add_scene(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("scene", "draw a harbour with ships, to train and to test on");
  const auto flags = std::make_shared<Flags>();
  verb->add_option("number", flags->number, "which scene, counted from 0")->required()->type_name("N");
  verb->add_option("--out", flags->out, "file to write: .png, .svg or .pdf")->required()->type_name("FILE");
  verb->add_option("--size", flags->size, "side in pixels, 64 to 2048, a multiple of 8 (default 128)")
      ->type_name("N");
  verb->add_flag("--labels", flags->labels, "draw the label maps and true boxes beside the picture");
  verb->footer(kFooter);
  verb->callback([flags] {
    const tasks::ScenePicture picture =
        tasks::scene_picture(flags->number, flags->size, flags->labels, flags->out);
    tasks::write_output(flags->out, picture.content);
    std::cout << picture.title << '\n';
  });
}

}  // namespace fovea::cli
