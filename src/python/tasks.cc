// The bindings of opened model folders: answers, explanations and scores from Python arguments.
#include "python/tasks.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/interruptible.h"
#include "python/options.h"
#include "tasks/folder_kinds.h"
#include "tasks/open.h"
#include "tasks/output_file.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using tasks::Ability;
using tasks::OpenFolder;

// Keyword arguments of a call: the options of `purpose`, and those of every model.
tasks::AnswerOptions answer_options(const nb::dict& given, Ability purpose,
                                    const tasks::FolderContents& contents) {
  tasks::AnswerOptions options;
  options.translate.scores = true;  // the JSON has them
  const bool captions = purpose == Ability::caption;
  const auto needs = [&](const std::string& name, Ability wanted, const char* model) {
    require(purpose == wanted, "option '", name, "' needs ", model, "; ", contents.description());
  };
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == "alignment") {
      options.alignment = option_value<std::string>(name, value);
      needs(name, Ability::translate, "a translator");
    } else if (name == "words") {
      options.words = option_value<bool>(name, value);
      needs(name, Ability::classify, "a text classifier");
    } else if (name == "top") {
      options.top = option_value<int64_t>(name, value);
      needs(name, Ability::fill, "an encoder that fills masked places");
    } else if (name == "query") {
      options.query = option_value<std::string>(name, value);
      needs(name, Ability::rerank, "a cross-encoder that ranks texts");
    } else if (name == "threads") {
      options.threads = option_value<int>(name, value);
    } else if (captions ? set_field(options.caption, name, value)
                        : set_field(options.translate, name, value)) {
      // Only what writes text has hypotheses to choose from.
      require(captions || purpose == Ability::translate, "option '", name,
              "' needs a model that writes text; ", contents.description());
    } else {
      std::vector<std::string_view> known =
          captions ? field_names<tasks::CaptionOptions>() : field_names<tasks::TranslateOptions>();
      known.insert(known.end(), {"alignment", "words", "top", "query", "threads"});
      refuse_name(name, known);
    }
  }
  return options;
}

template <HasFields T>
T fields_of(const nb::dict& given) {
  T options;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (!set_field(options, name, value)) refuse_name(name, field_names<T>());
  }
  return options;
}

// Keyword arguments of opening: global, pairs, rollouts, and those of embeddings.
tasks::OpenOptions open_options(const std::optional<std::string>& purpose, const std::string& compute,
                                const nb::dict& given) {
  tasks::OpenOptions options{
      .purpose = purpose ? std::optional(tasks::ability_of_verb(*purpose)) : std::nullopt,
      .compute = compute};
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == "global") {
      options.global = option_value<std::string>(name, value);
    } else if (name == "pairs") {
      options.pairs = option_value<bool>(name, value);
    } else if (name == "rollouts") {
      options.rollouts = option_value<int64_t>(name, value);
    } else if (!set_field(options.embed, name, value)) {
      std::vector<std::string_view> known = field_names<tasks::EmbedOptions>();
      known.insert(known.end(), {"global", "pairs", "rollouts"});
      refuse_name(name, known);
    }
  }
  return options;
}

// (content, name): bytes, a text or a list of a clip's frames, and what messages call it. A name alone: a file to read.
tasks::Input input_of(const nb::tuple& given) {
  require(given.size() == 2, "an input is a pair of content and name");
  tasks::Input input;
  if (!given[1].is_none()) input.name = nb::cast<std::string>(given[1]);
  if (given[0].is_none()) return tasks::read_input(input.name);
  const auto text_of = [](const nb::bytes& bytes) { return std::string(bytes.c_str(), bytes.size()); };
  if (nb::isinstance<nb::bytes>(given[0])) {
    input.content = text_of(nb::cast<nb::bytes>(given[0]));
  } else if (nb::isinstance<nb::list>(given[0])) {
    for (const nb::handle frame : nb::cast<nb::list>(given[0]))
      input.frames.push_back(text_of(nb::cast<nb::bytes>(frame)));
    require(!input.frames.empty(), "clip: got no frames, wanted at least one");
  } else {
    input.content = nb::cast<std::string>(given[0]);
  }
  return input;
}

class Folder {
 public:
  Folder(const std::string& path, const std::optional<std::string>& purpose, const std::string& compute,
         const nb::dict& given) {
    const tasks::OpenOptions options = open_options(purpose, compute, given);
    const nb::gil_scoped_release release;
    folder_ = tasks::open(path, options);
    purpose_ = options.purpose.value_or(tasks::record_of(folder_->contents().kind).ability);
  }

  std::string info() const { return tasks::to_json(folder_->contents()).dump(); }
  // "text", "picture", "clip" or "numbers"
  const char* input() const {
    switch (folder_->contents().input()) {
      case tasks::InputForm::text:
        return "text";
      case tasks::InputForm::picture:
        return "picture";
      case tasks::InputForm::clip:
        return "clip";
      case tasks::InputForm::numbers:
        return "numbers";
    }
    return "";
  }

  // For each input (JSON or None, error): an input that cannot be used has an error and no JSON.
  std::vector<std::pair<std::string, std::string>> answer(const std::vector<nb::tuple>& given,
                                                          const nb::dict& options) const {
    const tasks::AnswerOptions chosen = answer_options(options, purpose_, folder_->contents());
    std::vector<tasks::Input> inputs;
    for (const nb::tuple& input : given) inputs.push_back(input_of(input));
    return interruptible([&] {
      folder_->check(chosen);
      std::vector<std::pair<std::string, std::string>> predictions;
      const std::vector<tasks::Answer> answers = folder_->answer(inputs, chosen);
      for (size_t i = 0; i < answers.size(); ++i)
        predictions.emplace_back(
            answers[i].error.empty() ? folder_->to_json(inputs[i], answers[i]).dump() : "", answers[i].error);
      return predictions;
    });
  }

  // A row for each text.
  nb::ndarray<nb::numpy, float> vectors(const std::vector<nb::tuple>& given, const nb::dict& options) const {
    const tasks::AnswerOptions chosen = answer_options(options, purpose_, folder_->contents());
    std::vector<tasks::Input> inputs;
    for (const nb::tuple& input : given) inputs.push_back(input_of(input));
    size_t width = 0;
    std::unique_ptr<float[]> rows = interruptible([&] {
      folder_->check(chosen);
      const std::vector<tasks::Answer> answers = folder_->answer(inputs, chosen);
      if (!answers.empty()) width = answers[0].vector.size();
      for (size_t i = 0; i < answers.size(); ++i)
        require(answers[i].error.empty() && answers[i].vector.size() == width, "input ", i, ": ",
                answers[i].error);
      auto values = std::make_unique_for_overwrite<float[]>(answers.size() * width);
      for (size_t i = 0; i < answers.size(); ++i)
        std::copy(answers[i].vector.begin(), answers[i].vector.end(), values.get() + i * width);
      return values;
    });
    float* data = rows.release();
    const nb::capsule owner(data, [](void* memory) noexcept { delete[] static_cast<float*>(memory); });
    return nb::ndarray<nb::numpy, float>(data, {inputs.size(), width}, owner);
  }

  // Throws Error for an option of explain() that is wrong, or that no form takes.
  void check_explain(const nb::dict& options) const {
    const auto all = fields_of<tasks::ExplainOptions>(options);
    folder_->contents().require_can(Ability::explain);
    std::set<std::string_view> taken;
    for (const char* form : {"", ".txt", ".html", ".png"}) {
      const tasks::ExplainOptions some = taken_by(form, all);
      for_each_field<tasks::ExplainOptions>([&](const auto& field) {
        if (some.*field.member == all.*field.member) taken.insert(field.name);
      });
    }
    for_each_field<tasks::ExplainOptions>([&](const auto& field) {
      if (taken.contains(field.name)) return;
      tasks::ExplainOptions refused = taken_by(".png", all);
      refused.*field.member = all.*field.member;
      tasks::check_explain(folder_->contents(), refused, ".png");
    });
  }

  // (title, a file's bytes, tokens read or 0). Options that choose what is shown hold for the forms that take them.
  nb::tuple explain(const nb::tuple& given, const nb::dict& options, const std::string& form,
                    size_t columns) const {
    const auto all = fields_of<tasks::ExplainOptions>(options);
    const tasks::Input input = input_of(given);
    const tasks::Explanation shown =
        interruptible([&] { return folder_->explain(input, taken_by(form, all), form, columns); });
    return nb::make_tuple(shown.title, nb::bytes(shown.content.data(), shown.content.size()), shown.cut_to);
  }

  std::string evaluate(const std::vector<std::string>& paths, const std::string& label_column,
                       const std::string& text_column, const std::string& pair_column) const {
    return interruptible([&] {
      return tasks::to_json(folder_->evaluate({.paths = paths,
                                               .label_column = label_column,
                                               .text_column = text_column,
                                               .pair_column = pair_column}))
          .dump();
    });
  }

 private:
  // The options without those that this form does not take: a .json file holds every layer, so none is chosen for it.
  tasks::ExplainOptions taken_by(const std::string& form, const tasks::ExplainOptions& all) const {
    tasks::ExplainOptions taken{.target = all.target, .beam = all.beam};
    tasks::check_explain(folder_->contents(), taken, form);
    for_each_field<tasks::ExplainOptions>([&](const auto& field) {
      if (taken.*field.member == all.*field.member) return;
      tasks::ExplainOptions more = taken;
      more.*field.member = all.*field.member;
      try {
        tasks::check_explain(folder_->contents(), more, form);
        taken = std::move(more);
      } catch (const Error&) {
      }
    });
    return taken;
  }

  std::unique_ptr<OpenFolder> folder_;
  Ability purpose_;
};

}  // namespace

void add_tasks(nb::module_& module) {
  nb::class_<Folder>(module, "Folder")
      .def(nb::init<const std::string&, const std::optional<std::string>&, const std::string&,
                    const nb::dict&>(),
           nb::arg("path"), nb::arg("purpose").none(), nb::arg("compute"), nb::arg("options"))
      .def_prop_ro("info", &Folder::info)
      .def_prop_ro("input", &Folder::input)
      .def("answer", &Folder::answer, nb::arg("inputs"), nb::arg("options"))
      .def("vectors", &Folder::vectors, nb::arg("inputs"), nb::arg("options"))
      .def("check_explain", &Folder::check_explain, nb::arg("options"))
      .def("explain", &Folder::explain, nb::arg("input"), nb::arg("options"), nb::arg("form"),
           nb::arg("columns"))
      .def("evaluate", &Folder::evaluate, nb::arg("paths"), nb::arg("label_column"), nb::arg("text_column"),
           nb::arg("pair_column"));
  module.def("look_into", [](const std::string& path) {
    const nb::gil_scoped_release release;
    return tasks::to_json(tasks::look_into(path)).dump();
  });
  module.def("write_file", [](const std::string& path, const nb::bytes& bytes) {
    tasks::write_output(path, {bytes.c_str(), bytes.size()});
  });
}

}  // namespace fovea::python
