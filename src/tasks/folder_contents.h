// What a model folder holds and what can be done with it, found without reading its weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace fovea::tasks {

// What the folder's model is.
enum class FolderKind {
  translator,
  text_classifier,
  image_classifier,
  series,  // a model of number sequences
  partition,
  glimpse_classifier,  // sees a picture in several glimpses
  clip_classifier,
  captioner,
  encoder,  // of the BERT family, without a classifier
};
// "translator", "text classifier", "image classifier", "captioner", "encoder of the BERT family"
std::string_view name_of(FolderKind kind);

// What a model reads.
enum class InputForm { text, picture, clip, numbers };

// What a folder can be used for.
enum class Ability { translate, classify, caption, partition, predict, explain, rerank, embed, fill };
// The verb: "translate"
std::string_view name_of(Ability ability);

struct FolderContents {
  std::filesystem::path folder;
  FolderKind kind = FolderKind::translator;
  std::string model;                        // "transformer", "lstm", "bert"
  std::string compute;                      // form of the stored weights: "float32" or "int8"
  int64_t parameters = 0;                   // as training counts them: without buffers
  std::vector<std::string> labels;          // of a classifier
  std::vector<Ability> abilities;           // in the order of the enum
  bool pretrained = false;                  // in Hugging Face's format rather than Fovea's
  Json settings = Json::object();           // of the model
  std::vector<std::string> languages = {};  // target languages of a multilingual translator: ">>fra<<"
  std::vector<std::string> lacks = {};      // what would make more of it possible, for people

  InputForm input() const;
  // "DIR is an image classifier"
  std::string description() const;
  // An example of how an ability is used: "fovea classify DIR picture.png"
  std::string command(Ability ability) const;
  bool can(Ability ability) const;
  // Throws Error, saying what the folder is and what to use instead, unless it can.
  void require_can(Ability ability) const;
};

// Throws FileError when there is no such folder, ModelError when it is no model folder or a damaged one.
FolderContents look_into(const std::filesystem::path& folder);

Json to_json(const FolderContents& contents);

}  // namespace fovea::tasks
