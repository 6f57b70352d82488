// The kinds of opened folders, for open().
#pragma once

#include <memory>

#include "tasks/open.h"

namespace fovea::tasks {

std::unique_ptr<OpenFolder> open_translator(FolderContents contents, const OpenOptions& options);
std::unique_ptr<OpenFolder> open_text_classifier(FolderContents contents, const OpenOptions& options);
std::unique_ptr<OpenFolder> open_image_classifier(FolderContents contents, const OpenOptions& options);
std::unique_ptr<OpenFolder> open_series(FolderContents contents, const OpenOptions& options);
std::unique_ptr<OpenFolder> open_partition(FolderContents contents, const OpenOptions& options);
std::unique_ptr<OpenFolder> open_glimpse_classifier(FolderContents contents, const OpenOptions& options);
std::unique_ptr<OpenFolder> open_clip_classifier(FolderContents contents, const OpenOptions& options);
std::unique_ptr<OpenFolder> open_captioner(FolderContents contents, const OpenOptions& options);
// For embed and fill.
std::unique_ptr<OpenFolder> open_embedder(FolderContents contents, const OpenOptions& options);
std::unique_ptr<OpenFolder> open_mask_filler(FolderContents contents, const OpenOptions& options);
// For rerank.
std::unique_ptr<OpenFolder> open_reranker(FolderContents contents, const OpenOptions& options);

// What a folder that says nothing of it is computed with.
inline std::string compute_of(const OpenOptions& options) {
  return options.compute.empty() ? "float32" : options.compute;
}

// What makes a text useless to any model; empty: nothing.
std::string text_fault(const Input& input);

// Answers the inputs that have no fault by answer(texts of those), the others by their fault. fault: (const
// Input& text) -> std::string, empty for none, of texts that any model could read. answer:
// (std::span<const std::string>) -> std::vector<Answer>
template <class Fault, class AnswerTexts>
std::vector<Answer> answer_usable(std::span<const Input> inputs, Fault fault, AnswerTexts answer_texts) {
  std::vector<Answer> answers(inputs.size());
  std::vector<std::string> texts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    answers[i].error = text_fault(inputs[i]);
    if (answers[i].error.empty()) answers[i].error = fault(inputs[i]);
    if (answers[i].error.empty()) texts.push_back(inputs[i].content);
  }
  std::vector<Answer> found = answer_texts(std::span<const std::string>(texts));
  size_t next = 0;
  for (Answer& answer : answers)
    if (answer.error.empty()) answer = std::move(found[next++]);
  return answers;
}
template <class AnswerTexts>
std::vector<Answer> answer_usable(std::span<const Input> inputs, AnswerTexts answer_texts) {
  return answer_usable(
      inputs, [](const Input&) { return std::string(); }, answer_texts);
}

}  // namespace fovea::tasks
