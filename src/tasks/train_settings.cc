// Joins preset, config file and single values into the settings of a training, and lists every setting with its
// default.
#include "tasks/train_settings.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <map>
#include <optional>

#include "models/registry.h"
#include "tasks/bert_classifier.h"
#include "tasks/pretrain.h"
#include "tasks/train_caption.h"
#include "tasks/train_classify.h"
#include "tasks/train_clip.h"
#include "tasks/train_glimpse.h"
#include "tasks/train_image.h"
#include "tasks/train_partition.h"
#include "tasks/train_series.h"
#include "tasks/train_translate.h"

namespace fovea::tasks {
namespace {

bool contains(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <class T>
struct TypeOf;
template <std::integral T>
struct TypeOf<T> {
  static constexpr SettingType value = SettingType::integer;
};
template <>
struct TypeOf<bool> {
  static constexpr SettingType value = SettingType::truth;
};
template <std::floating_point T>
struct TypeOf<T> {
  static constexpr SettingType value = SettingType::number;
};
template <>
struct TypeOf<std::string> {
  static constexpr SettingType value = SettingType::text;
};
template <class T>
struct TypeOf<std::optional<T>> : TypeOf<T> {};

std::vector<std::string> split_choices(std::string_view text) {
  std::vector<std::string> choices;
  while (!text.empty()) {
    const size_t comma = text.find(", ");
    choices.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 2);
  }
  return choices;
}

template <class Training>
std::vector<std::string> choices_of(std::string_view setting) {
  for (const Choices& choices : Training::kChoices)
    if (setting == choices.setting) return split_choices(choices.names);
  return {};
}

// What is used where nothing is given and the value depends on other settings.
template <class Training>
Json conditional_default(std::string_view setting) {
  if constexpr (requires { Training::kDefaults; })
    for (const auto& [name, text] : Training::kDefaults)
      if (setting == name) return text;
  return nullptr;
}

template <class Owner, class Value>
Setting setting_of(const Field<Owner, Value>& field, const Json& standard, const char* group) {
  return {.name = field.name,
          .type = TypeOf<Value>::value,
          .meaning = field.meaning,
          .group = group,
          .standard = standard};
}

template <class Training>
bool from_folder(const Training& training) {
  if constexpr (requires { training.from; }) return !training.from.empty();
  return false;
}

// The names of sizes.
template <class Training>
std::vector<std::string> presets() {
  if constexpr (requires { Training::kPresets; })
    return {Training::kPresets.begin(), Training::kPresets.end()};
  return {"tiny", "small", "base"};
}

// Whether a folder to train on is an encoder of which something can be chosen.
template <class Training>
constexpr bool takes_encoder_choices() {
  return std::is_same_v<Training, ClassifyTraining>;
}
// What can be chosen of a folder to train on.
template <class Training>
std::vector<std::string_view> folder_settings() {
  if (!takes_encoder_choices<Training>()) return {};
  const auto names = field_names<EncoderChoices>();
  return {names.begin(), names.end()};
}
EncoderChoices encoder_choices(const Json& values, const std::string& where) {
  EncoderChoices choices;
  fields_from_json(values, choices, where);
  return choices;
}

// Whether a folder to train on brings the setting with it.
template <class Training>
bool comes_from_folder(std::string_view setting) {
  if constexpr (requires { Training::kFromFolder; }) return contains(Training::kFromFolder, setting);
  return false;
}

// Preset and model: what all other defaults depend on.
template <class Training>
TrainSettings<Training> chosen(const TrainRequest& request) {
  TrainSettings<Training> settings;
  std::string preset = request.preset.empty() ? default_preset<Training>() : request.preset;
  const std::string file = request.file_name.empty() ? "config" : request.file_name;
  require(request.file.is_object(), file, ": wanted an object of named options");
  if (request.file.contains("preset")) value_from_json(request.file["preset"], preset, file + ": preset");
  check_choice(preset, presets<Training>(), "preset");
  const auto take = [&](const char* name, std::string& value) {
    for (const Json* said : {&request.file, &request.values})
      if (said->contains(name)) value_from_json((*said)[name], value, name);
  };
  take("model", settings.training.model);
  if constexpr (requires { settings.training.from; }) take("from", settings.training.from);
  if (from_folder(settings.training)) {
    for (const std::string_view name : field_names<Training>())
      if (comes_from_folder<Training>(name))
        require(!request.file.contains(std::string(name)) && !request.values.contains(std::string(name)),
                "from: a pretrained model brings its own ", name, "; leave out ", flag_name(name));
  } else {
    models::model_settings<typename Training::Models>(settings.training.model);  // a known model
  }
  apply_preset(preset, settings.training, settings.model);
  return settings;
}

// The models that have a setting: "transformer or han".
template <class Training>
std::string models_with(const std::string& setting) {
  std::string names;
  Training::Models::for_each([&](const auto& entry) {
    if (contains(models::model_settings<typename Training::Models>(entry.name), setting))
      names += (names.empty() ? "" : " or ") + std::string(entry.name);
  });
  return names;
}

// Sets named values on whichever struct has the name.
template <class Training>
void apply(const Json& values, TrainSettings<Training>& settings, const std::string& where) {
  using Models = typename Training::Models;
  const auto training = field_names<Training>(), options = field_names<train::TrainOptions>();
  const std::string& model = settings.training.model;
  const bool tuned = from_folder(settings.training);
  const auto own = tuned ? folder_settings<Training>() : models::model_settings<Models>(model);
  std::vector<std::string_view> known = own;
  known.insert(known.end(), training.begin(), training.end());
  known.insert(known.end(), options.begin(), options.end());
  for (const auto& item : values.items()) {
    const Json one = {{item.key(), item.value()}};
    if (item.key() == "preset") continue;
    if (contains(training, item.key())) {
      fields_from_json(one, settings.training, where);
    } else if (contains(options, item.key())) {
      fields_from_json(one, settings.options, where);
    } else if (contains(own, item.key())) {
      if (tuned)
        encoder_choices(one, where);
      else
        models::model_config<Models>(model, one, Json::object(), where);
      settings.model[item.key()] = item.value();
    } else if (tuned) {
      // An option that exists is not to be taken for a typing error.
      require(
          models_with<Training>(item.key()).empty(), where, ": ", flag_name(item.key()),
          " does not apply with --from: the model keeps its own sizes, attention and pooling; leave it out");
      fail(where, ": unknown option ", in_quotes(item.key()), " with --from: the model keeps its own sizes",
           name_hint(item.key(), known));
    } else {
      const std::string others = models_with<Training>(item.key());
      require(others.empty(), where, ": ", in_quotes(item.key()), " is an option of --model ", others,
              "; the model is ", model);
      fail(where, ": unknown option ", in_quotes(item.key()), " for the model ", model,
           name_hint(item.key(), known));
    }
  }
}

template <class Training>
void check_choices(const Training& training) {
  for_each_field<Training>([&](const auto& field) {
    using Value = std::remove_cvref_t<decltype(training.*field.member)>;
    const auto choices = choices_of<Training>(field.name);
    if constexpr (std::same_as<Value, std::string>)
      check_choice(training.*field.member, choices, field.name);
    else if constexpr (std::same_as<Value, std::optional<std::string>>)
      if (training.*field.member) check_choice(*(training.*field.member), choices, field.name);
  });
}

// A setting that means something only where another one has one of these values.
struct Dependence {
  std::string_view setting, on;
  std::string_view values;     // separated by ", "
  std::string_view task = {};  // empty: every task that has both
};
constexpr Dependence kDependences[] = {
    {"score", "pooling", "attention", "classify"},
    {"score", "pooling", "attention, auto", "series"},
    {"selection", "pooling", "attention", "classify"},
    {"selection", "pooling", "attention, auto", "series"},
    {"selection", "pooling", "gated, additive, dot", "clip"},
    {"attention_width", "pooling", "attention"},
    {"attention_width", "score", "additive, gated, concat"},
    {"max_positions", "positions", "learned"},
    {"window", "locality", "local_m, local_p"},
    {"reduction", "gate", "se, cbam, sk"},
    {"hidden", "pooling", "gated, additive", "clip"},
    {"entropy", "attention", "hard", "caption"},
    {"soft_share", "attention", "hard", "caption"},
    {"baseline_decay", "attention", "hard", "caption"},
    {"min_count", "tokenizer", "words", "caption"},
};

// Refuses a value that was given and that another setting makes meaningless. A file may hold it: files list all settings.
template <class Training>
void check_dependences(const Json& given, const TrainSettings<Training>& settings) {
  const Json all = settings_json(settings);
  for (const Dependence& rule : kDependences) {
    const std::string on(rule.on);
    if (!given.contains(std::string(rule.setting)) || !all.contains(on) || !all[on].is_string() ||
        (!rule.task.empty() && rule.task != Training::kTask))
      continue;
    const auto value = all[on].get<std::string>();
    require(contains(split_choices(rule.values), value), flag_name(rule.setting), " does not apply with ",
            flag_name(on), " ", value, "; it needs ", rule.values);
  }
}

}  // namespace

template <class Training>
std::vector<Setting> settings_of(const TrainRequest& request) {
  using Models = typename Training::Models;
  const TrainSettings<Training> chosen_settings = chosen<Training>(request);
  const Training& training = chosen_settings.training;
  const bool tuned = from_folder(training);
  std::vector<Setting> all;
  for_each_field<Training>([&](const auto& field) {
    if (tuned && comes_from_folder<Training>(field.name)) return;
    const Json value = value_to_json(training.*field.member);
    all.push_back(
        setting_of(field, value.is_null() ? conditional_default<Training>(field.name) : value, "Task"));
    all.back().choices = choices_of<Training>(field.name);
  });
  for_each_field<train::TrainOptions>([&](const auto& field) {
    all.push_back(setting_of(field, value_to_json(chosen_settings.options.*field.member), "Training"));
  });
  if (tuned) {
    if constexpr (takes_encoder_choices<Training>()) {
      const EncoderChoices choices = encoder_choices(chosen_settings.model, "from");
      for_each_field<EncoderChoices>([&](const auto& field) {
        all.push_back(setting_of(field, value_to_json(choices.*field.member), "Model"));
      });
    }
    return all;
  }
  const Json config = models::model_config<Models>(training.model, chosen_settings.model);
  Models::for_each([&]<class Entry>(const Entry& entry) {
    if (training.model != entry.name) return;
    const auto own = models::model_settings<Models>(entry.name);
    for_each_field<typename Entry::Config>([&](const auto& field) {
      if (contains(own, field.name)) all.push_back(setting_of(field, config[field.name], "Model"));
    });
  });
  return all;
}

template <class Training>
std::vector<Setting> all_settings() {
  std::vector<Setting> all = settings_of<Training>({});
  std::erase_if(all, [](const Setting& setting) { return setting.group == "Model"; });
  const size_t shared = all.size();
  const auto add = [&](const char* name, const TrainRequest& request) {
    for (Setting& setting : settings_of<Training>(request)) {
      if (setting.group != "Model") continue;
      auto found = std::find_if(all.begin() + static_cast<std::ptrdiff_t>(shared), all.end(),
                                [&](const Setting& other) { return other.name == setting.name; });
      if (found == all.end()) found = all.insert(all.end(), setting);
      found->models.emplace_back(name);
    }
  };
  Training::Models::for_each([&](const auto& entry) {
    add(entry.name, {.values = {{"model", entry.name}}});
  });
  if constexpr (requires(Training training) { training.from; }) add("--from", {.values = {{"from", "DIR"}}});
  return all;
}

template <class Training>
void check_settings(const TrainSettings<Training>& settings) {
  train::check_options(settings.options);
  check_choices(settings.training);
  check_training(settings.training, settings.model);
  if (from_folder(settings.training)) {
    if (takes_encoder_choices<Training>())
      check_encoder_choices(encoder_choices(settings.model, "from"));
    else
      require(settings.model.empty(), "from: the model keeps its own sizes; got ", settings.model.dump());
  } else
    models::check_settings<typename Training::Models>(settings.training.model, settings.model);
}

template <class Training>
TrainSettings<Training> settle(const TrainRequest& request) {
  TrainSettings<Training> settings = chosen<Training>(request);
  apply(request.file, settings, request.file_name.empty() ? "config" : request.file_name);
  apply(request.values, settings, "flags");
  check_settings(settings);
  check_dependences(request.values, settings);
  return settings;
}

template <class Training>
Json settings_json(const TrainSettings<Training>& settings) {
  using Models = typename Training::Models;
  Json all = fields_to_json(settings.training);
  if (from_folder(settings.training))
    for (const std::string_view name : field_names<Training>())
      if (comes_from_folder<Training>(name)) all.erase(std::string(name));
  all.update(fields_to_json(settings.options));
  if (from_folder(settings.training)) {
    if (takes_encoder_choices<Training>())
      all.update(fields_to_json(encoder_choices(settings.model, "from")));
    return all;
  }
  const Json model = models::model_config<Models>(settings.training.model, settings.model);
  for (const std::string_view name : models::model_settings<Models>(settings.training.model))
    all[std::string(name)] = model[std::string(name)];
  return all;
}

template <class Training>
RunIdentity run_identity(const TrainSettings<Training>& settings, uint64_t data, std::string examples) {
  RunIdentity identity{.task = Training::kTask,
                       .data = data,
                       .examples = std::move(examples),
                       .settings = settings_json(settings),
                       .fixed = {Training::kFixed.begin(), Training::kFixed.end()}};
  // A run continues if more of these are given: that is not worth a note.
  for (const char* name : {"steps", "minutes", "log_every"}) identity.settings.erase(name);
  if (from_folder(settings.training)) {
    for (const std::string_view name : folder_settings<Training>()) identity.fixed.emplace_back(name);
    return identity;
  }
  for (const std::string_view name :
       models::model_settings<typename Training::Models>(settings.training.model))
    if (name.find("dropout") == std::string_view::npos) identity.fixed.emplace_back(name);
  return identity;
}

#define FOVEA_TRAINING(Training)                                            \
  template std::vector<Setting> settings_of<Training>(const TrainRequest&); \
  template std::vector<Setting> all_settings<Training>();                   \
  template TrainSettings<Training> settle<Training>(const TrainRequest&);   \
  template void check_settings<Training>(const TrainSettings<Training>&);   \
  template Json settings_json<Training>(const TrainSettings<Training>&);    \
  template RunIdentity run_identity<Training>(const TrainSettings<Training>&, uint64_t, std::string)
FOVEA_TRAINING(CaptionTraining);
FOVEA_TRAINING(ClassifyTraining);
FOVEA_TRAINING(ClipTraining);
FOVEA_TRAINING(GlimpseTraining);
FOVEA_TRAINING(ImageTraining);
FOVEA_TRAINING(PretrainTraining);
FOVEA_TRAINING(SeriesTraining);
FOVEA_TRAINING(PartitionTraining);
FOVEA_TRAINING(TranslateTraining);
#undef FOVEA_TRAINING

}  // namespace fovea::tasks
