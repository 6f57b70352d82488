// The golden models of the BERT family, as Hugging Face folders: what tests/golden/make_bert.py ("bert"),
// make_encoders.py ("encoders") and make_long.py ("long") made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/file.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "models/bert.h"
#include "models/golden_folder.h"

namespace fovea::models {

class GoldenBerts {
 public:
  explicit GoldenBerts(const std::string& name = "bert")
      : file_(std::string(FOVEA_GOLDEN "/") + name + ".safetensors"),
        list_(load_json(std::string(FOVEA_GOLDEN "/") + name + ".json")) {
    for (size_t i = 0; i < list_["batch"]["texts"].size(); ++i) {
      for (const Json& id : list_["batch"]["texts"][i]) ids_.push_back(id.get<int32_t>());
      for (const Json& type : list_["batch"]["types"][i]) types_.push_back(type.get<int32_t>());
      lengths_.push_back(static_cast<int32_t>(list_["batch"]["texts"][i].size()));
    }
  }

  size_t size() const { return list_["cases"].size(); }
  std::string name(size_t i) const { return list_["cases"][i]["class"].get<std::string>(); }
  const Json& config(size_t i) const { return list_["cases"][i]["config"]; }
  // The choice of global tokens, where the model has one; "t7" is the token of id 7.
  std::string global(size_t i) const { return list_["cases"][i].value("global", ""); }
  size_t find(const std::string& name_wanted) const {
    for (size_t i = 0; i < size(); ++i)
      if (name(i) == name_wanted) return i;
    return size();
  }
  Tensor tensor(size_t i, const std::string& name) const {
    return file_->tensor(std::to_string(i) + "/" + name);
  }
  bool contains(size_t i, const std::string& name) const {
    return file_->contains(std::to_string(i) + "/" + name);
  }

  // The batch: packed texts and the kinds of their tokens.
  Sentences texts() const { return {ids_, lengths_}; }
  // Kinds count only where the model was given them.
  std::span<const int32_t> types(const BertConfig& config) const {
    return config.type_vocab_size > 1 ? std::span<const int32_t>(types_) : std::span<const int32_t>();
  }
  std::vector<int32_t> labels() const { return list_["batch"]["labels"].get<std::vector<int32_t>>(); }
  std::vector<int32_t> words() const { return list_["batch"]["words"].get<std::vector<int32_t>>(); }
  // Where the tokens stand that words() are of: the first one or two of each text.
  std::vector<int32_t> first_tokens() const {
    std::vector<int32_t> places;
    const auto each = static_cast<int32_t>(words().size() / lengths_.size());
    int32_t begin = 0;
    for (const int32_t length : lengths_) {
      for (int32_t i = 0; i < each; ++i) places.push_back(begin + i);
      begin += length;
    }
    return places;
  }

  // Writes model i as a folder.
  void write(
      size_t i, const std::filesystem::path& folder,
      const ChangeTensor& change = [](TensorToWrite&) { return true; }) const {
    write_golden_folder(file_, i, config(i), folder, change);
  }

 private:
  SafetensorsFile file_;
  Json list_;
  std::vector<int32_t> ids_, types_, lengths_;
};

}  // namespace fovea::models
