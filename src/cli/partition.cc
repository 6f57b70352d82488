// fovea partition: pictures in, ships out.
#include <iostream>

#include "base/error.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "tasks/open.h"
#include "tasks/output_file.h"
#include "tasks/partition.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(Prints a line of JSON for each picture: its file and its ships, the surest first, each with its middle, length and width
in pixels, angle (degrees; 0 points right, 90 down), score, bow, stern and the corners of its box. A picture that cannot be read
is named on standard error, the others are answered, and the exit status is 2.

--test prints precision, recall and F1 at an overlap (IoU) of 0.5, and how far bow and stern lie from the true ones, in
pixels of pictures fitted to the model's size: on --scenes drawn by the program (a fixed series that no training uses; `fovea
scene` draws one), or on a folder of HRSC2016's form.

  fovea scene 1 --out harbour.png
  fovea partition model harbour.png --out boxes.json
  fovea partition model --test scenes)help";

struct Flags {
  std::string folder, out, test;
  std::vector<std::string> pictures;
  int64_t scenes = 500;
  bool json = false;
};

void run_test(const Flags& flags) {
  require(flags.pictures.empty() && flags.out.empty(),
          "--test prints scores only: a list of pictures and --out do not apply");
  const infer::DetectionCounts counts =
      tasks::evaluate_partition(flags.folder, {flags.test, flags.scenes, tasks::kTestHarbours});
  std::cout << (flags.json ? tasks::to_json(counts).dump() + "\n" : tasks::to_text(counts));
}

void run_pictures(const Flags& flags) {
  require(!flags.pictures.empty(), "name pictures, as in fovea partition ", flags.folder,
          " picture.png; or use --test scenes");
  const auto model = tasks::open(flags.folder, {.purpose = tasks::Ability::partition});
  std::string lines;
  bool bad = false;
  for (const std::string& picture : flags.pictures) {
    std::string error;
    try {
      const tasks::Input input = tasks::read_input(picture, tasks::InputForm::picture);
      const tasks::Answer answer = model->answer({&input, 1}, {})[0];
      error = answer.error;
      if (error.empty()) lines += model->to_json(input, answer).dump() + "\n";
    } catch (const Error& fault) {
      error = fault.what();
    }
    if (!error.empty()) std::cerr << "fovea: " << error << '\n';
    bad |= !error.empty();
    if (!flags.out.empty()) continue;
    std::cout << lines;
    lines.clear();
    if (!flush_output()) break;
  }
  if (!flags.out.empty() && !lines.empty()) tasks::write_output(flags.out, lines);
  if (bad) throw CLI::RuntimeError(2);
}

}  // namespace

void add_partition(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("partition", "find ships, their bows and sterns in pictures");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("pictures", flags->pictures, ".png, .jpg and .bmp files to search")->type_name("FILE");
  verb->add_option("--out", flags->out, "write the lines to this file instead of printing them")
      ->type_name("FILE");
  verb->add_option("--test", flags->test,
                   "print scores on labelled ships: scenes, or a folder in the form of HRSC2016")
      ->type_name("PATH");
  verb->add_option("--scenes", flags->scenes,
                   "--test scenes: number of scenes (default " + std::to_string(flags->scenes) + ")");
  verb->add_flag("--json", flags->json, "--test: print one line of JSON");
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags, verb] {
    require(!flags->test.empty() || !(given(*verb, "--scenes") || flags->json),
            given(*verb, "--scenes") ? "--scenes" : "--json", " applies to --test only",
            flags->json ? "; without it every line is JSON" : "");
    require(flags->test.empty() || flags->test == tasks::kDrawnScenes || !given(*verb, "--scenes"),
            "--scenes applies to --test scenes only; got --test ", flags->test);
    if (!flags->test.empty()) return run_test(*flags);
    run_pictures(*flags);
  });
}

}  // namespace fovea::cli
