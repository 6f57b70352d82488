#include <limits>

#include "base/error_kinds.h"
#include "base/stop_check.h"
#include "io/npy.h"
#include "tasks/open_kinds.h"

namespace fovea::tasks {
namespace {

LoadedEncoder load(const FolderContents& contents, const models::BertHeads& heads,
                   const OpenOptions& options) {
  LoadedEncoder loaded =
      errors_as<ModelError>([&] { return open_encoder(contents.folder, heads, compute_of(options)); });
  if (!options.global.empty()) loaded.network->choose_global(options.global, *loaded.tokenizer);
  return loaded;
}

class OpenEmbedder : public OpenFolder {
 public:
  OpenEmbedder(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)),
        model_(load(this->contents(), {}, options)),
        embedder_(model_, options.embed) {}

  std::vector<Answer> answer_inputs(std::span<const Input> inputs, const AnswerOptions&) const override {
    return answer_usable(inputs, [&](std::span<const std::string> texts) {
      if (embedder_.of_spans()) return answer_spans(texts);
      const Embeddings found = embedder_.embed(texts);
      const auto width = static_cast<size_t>(embedder_.width());
      std::vector<Answer> answers(texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        const auto row = found.rows.span().subspan(i * width, width);
        answers[i].vector.assign(row.begin(), row.end());
        answers[i].cut_to = found.cut[i] ? embedder_.max_tokens() : 0;
      }
      return answers;
    });
  }

  Json to_json(const Input& input, const Answer& answer) const override {
    if (!answer.error.empty()) return {{"error", answer.error}};
    if (!embedder_.of_spans()) return {{"text", input.content}, {"embedding", value_to_json(answer.vector)}};
    Json list = Json::array();
    for (const EmbeddedSpan& span : answer.spans) {
      list.push_back(Json::object());
      if (!span.token.empty()) list.back()["token"] = span.token;
      list.back().update(
          Json{{"begin", span.begin}, {"end", span.end}, {"embedding", value_to_json(span.vector)}});
    }
    const char* const name = embedder_.of_tokens() ? "tokens" : "chunks";
    return {{"text", input.content}, {name, std::move(list)}};
  }

 private:
  std::vector<Answer> answer_spans(std::span<const std::string> texts) const {
    Embedder::SpanEmbeddings found = embedder_.embed_spans(texts);
    std::vector<Answer> answers(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      answers[i].spans = std::move(found.lines[i]);
      answers[i].cut_to = found.cut[i] ? embedder_.max_tokens() : 0;
    }
    return answers;
  }

  LoadedEncoder model_;
  Embedder embedder_;
};

class OpenMaskFiller : public OpenFolder {
 public:
  OpenMaskFiller(FolderContents contents, const OpenOptions& options)
      : OpenFolder(std::move(contents)),
        model_(load(this->contents(), kMaskedHead, options)),
        filler_(model_) {}

  void check(const AnswerOptions& options) const override {
    require(options.top >= 1, "--top: got ", options.top, ", wanted 1 or more");
  }

  std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                    const AnswerOptions& options) const override {
    check(options);
    return answer_usable(inputs, [&](std::span<const std::string> texts) {
      std::vector<Answer> answers(texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        check_stop();
        try {
          answers[i].masks = filler_.fill(texts[i], options.top);
        } catch (const Error& error) {  // no masked place, or too long
          answers[i].error = error.what();
        }
      }
      return answers;
    });
  }

  Json to_json(const Input& input, const Answer& answer) const override {
    if (!answer.error.empty()) return {{"error", answer.error}};
    Json json{{"text", input.content}, {"masks", Json::array()}};
    for (const auto& candidates : answer.masks) {
      Json list = Json::array();
      for (const MaskCandidate& candidate : candidates)
        list.push_back(
            {{"token", candidate.text}, {"id", candidate.token}, {"probability", candidate.probability}});
      json["masks"].push_back(std::move(list));
    }
    return json;
  }

 private:
  LoadedEncoder model_;
  MaskFiller filler_;
};

}  // namespace

std::unique_ptr<OpenFolder> open_embedder(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenEmbedder>(std::move(contents), options);
}

std::unique_ptr<OpenFolder> open_mask_filler(FolderContents contents, const OpenOptions& options) {
  return std::make_unique<OpenMaskFiller>(std::move(contents), options);
}

std::string npy_file(std::span<const std::vector<float>> vectors, int64_t width) {
  std::string bytes = npy_header(static_cast<int64_t>(vectors.size()), width);
  const std::vector<float> none(static_cast<size_t>(width), std::numeric_limits<float>::quiet_NaN());
  for (const std::vector<float>& vector : vectors) {
    const std::vector<float>& row = vector.empty() ? none : vector;
    bytes.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
  }
  return bytes;
}

}  // namespace fovea::tasks
