// fovea pattern: draws which keys each query sees.
#include <iostream>

#include "cli/verbs.h"
#include "tasks/output_file.h"
#include "tasks/pattern_picture.h"

namespace fovea::cli {
namespace {

struct Flags {
  tasks::PatternOptions options;
  std::string out;
};

void run(const Flags& flags) {
  const tasks::PatternPicture picture = tasks::draw_pattern(flags.options, flags.out);
  if (flags.out.empty())
    std::cout << picture.content;
  else
    tasks::write_output(flags.out, picture.content);
  std::cout << picture.summary << '\n';
}

}  // namespace

void add_pattern(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("pattern", "draw which keys each query may attend to");
  const auto flags = std::make_shared<Flags>();
  tasks::PatternOptions& options = flags->options;
  verb->add_option("spec", options.spec,
                   "a pattern or a whole attention spec, such as \"causal & window(16,0)\"")
      ->type_name("SPEC")
      ->required();
  verb->add_option("--n", options.queries, "number of queries, and of keys without --nk (default 64)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  verb->add_option("--nk", options.keys, "number of keys (default: as many as queries)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  verb->add_option("--heads", options.heads,
                   "number of heads; each head whose pattern differs gets a picture of its own (default 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 64));
  verb->add_option("--out", flags->out, "write a .png, .svg or .pdf file instead of printing blocks")
      ->type_name("FILE");
  verb->footer(
      "Rows are queries, columns are keys; a dark cell is a pair that attention computes. Printed blocks show two rows on a "
      "line.\nThe last line counts the pairs, and the pieces in which the kernels compute them.\n\n"
      "  fovea pattern \"window(8,8) | global(0)\" --n 64 --out pattern.png\n"
      "  fovea pattern \"heads(causal; window(4,4))\" --heads 2 --n 32");
  verb->callback([flags] { run(*flags); });
}

}  // namespace fovea::cli
