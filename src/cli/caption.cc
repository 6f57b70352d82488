// fovea caption: pictures in, sentences out, in the same order.
#include <iomanip>
#include <iostream>

#include "cli/fields_flags.h"
#include "cli/flags.h"
#include "cli/picture_answers.h"
#include "cli/verbs.h"

namespace fovea::cli {
namespace {

constexpr const char* kFooter =
    R"help(Prints a line for each picture: its file name, a tab and its caption. A picture that cannot be read is named on
standard error, the others are answered, and the exit status is 2.

--scores prints the score and a tab before the caption. --n-best N with N above 1 prints N lines for each picture, best
first, with scores. --json makes each line an object with file, caption and score (and n_best).

--images and --list caption the pictures of a collection, such as the test part of Flickr8k:
  fovea caption model --images images.tar --list Flickr_8k.testImages.txt | cut -f 2 > captions.txt
  fovea score --captions --ref test.reference0 --ref test.reference1 --hyp captions.txt)help";

struct Flags {
  std::string folder, compute, images, list;
  std::vector<std::string> pictures;
  bool scores = false, json = false;
  tasks::AnswerOptions options;
  PictureFlags answers;
};

void print(const Flags& flags, const tasks::OpenFolder& model, const tasks::Input& input,
           const tasks::Answer& answer) {
  if (flags.json) {
    std::cout << model.to_json(input, answer).dump() << '\n';
    return;
  }
  const bool several = flags.options.caption.n_best > 1;
  if (!answer.error.empty()) std::cout << input.name << "\t\n";
  for (const tasks::Caption& caption : answer.captions) {
    std::cout << input.name << '\t';
    if (flags.scores || several) std::cout << caption.score << '\t';
    std::cout << caption.text << '\n';
  }
}

void run(const Flags& flags) {
  require(flags.images.empty() == flags.list.empty(),
          "--images and --list belong together: a collection, and the names "
          "of its pictures to caption");
  require(flags.images.empty() || flags.pictures.empty(), "got --images and the picture '",
          flags.pictures.empty() ? "" : flags.pictures[0], "', wanted one of the two");
  const auto model =
      tasks::open(flags.folder, {.purpose = tasks::Ability::caption, .compute = flags.compute});
  require(!flags.images.empty() || !flags.pictures.empty(), flags.folder,
          " is a captioner: name pictures, as in fovea caption ", flags.folder, " picture.jpg");
  std::cout << std::fixed << std::setprecision(4);
  const tasks::PictureSource source = flags.images.empty()
                                          ? tasks::PictureSource::files(flags.pictures)
                                          : tasks::PictureSource::collection(flags.images, flags.list);
  answer_pictures(
      *model, flags.options, source, flags.answers,
      [&](const tasks::Input& input, const tasks::Answer& answer) { print(flags, *model, input, answer); });
}

}  // namespace

void add_caption(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("caption", "describe pictures in a sentence with a trained model");
  const auto flags = std::make_shared<Flags>();
  add_folder(*verb, flags->folder);
  verb->add_option("pictures", flags->pictures, ".png and .jpg files to caption")->type_name("FILE");
  verb->add_option("--images", flags->images,
                   "folder or uncompressed tar with the pictures that --list names")
      ->type_name("PATH");
  verb->add_option("--list", flags->list, "file with the names of the pictures to caption, one per line")
      ->type_name("FILE");
  add_fields(*verb, flags->options.caption);
  verb->add_flag("--scores", flags->scores, "print the score of each caption before it");
  verb->add_flag("--json", flags->json, "print a JSON object for each picture");
  add_picture_errors(*verb, flags->answers);
  verb->add_option(
          "--compute", flags->compute,
          "arithmetic of the decoder's matrix products: float32, or int8 (faster, slightly less exact) (default "
          "float32)")
      ->type_name("FORM");
  add_threads(*verb);
  verb->footer(kFooter);
  verb->callback([flags, verb] {
    flags->answers.chosen = given(*verb, "--on-error");
    run(*flags);
  });
}

}  // namespace fovea::cli
