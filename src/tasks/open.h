// A model folder opened for use, whatever it holds: the one way in for the command line, a server and
// bindings.
//
//   const auto model = tasks::open("model");
//   const tasks::Input inputs[] = {{"a film of rare beauty"}};
//   for (const tasks::Answer& answer : model->answer(inputs, {})) use(model->to_json(inputs[0], answer));
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "infer/rotated_boxes.h"
#include "io/json.h"
#include "tasks/captioner.h"
#include "tasks/encoder.h"
#include "tasks/evaluation.h"
#include "tasks/explain.h"
#include "tasks/folder_contents.h"
#include "tasks/prediction.h"
#include "tasks/translator.h"

namespace fovea::tasks {

// One text, one picture, one clip or one series.
struct Input {
  // UTF-8 text, the bytes of a PNG or JPEG file (for ships of a BMP file too), or of a series the text of a table or of a case.
  std::string content;
  std::string name = {};  // for messages and JSON: the name of a picture's file or a clip's folder
  // Of a clip: the bytes of its picture files, in order; content is then empty.
  std::vector<std::string> frames = {};
  std::vector<std::string> frame_names =
      {};  // of a clip that was read from a folder: the names of those files
};
// A file as an input, or a folder of frames as a clip. Throws FileError naming the file when it cannot be read, or when it
// is a folder and `form` is not clip.
Input read_input(const std::filesystem::path& path, InputForm form = InputForm::clip);

struct OpenOptions {
  std::optional<Ability> purpose = {};  // empty: what the folder is for
  std::string compute = {};             // "float32" or "int8"; empty: as the folder says
  std::string global = {};              // Longformer and BigBird: global tokens; empty: as the folder says
  // Published text classifiers: lines are pairs of texts. Cross-encoders and what Fovea trained on pairs say so themselves.
  bool pairs = false;
  EmbedOptions embed = {};
  // Glimpse classifier: paths drawn for each picture, whose probabilities are averaged; 0: the path of the means.
  int64_t rollouts = 0;
};

struct AnswerOptions {
  TranslateOptions translate = {};
  CaptionOptions caption = {};
  std::string alignment = "none";  // of a translation: none, hard (pairs of words) or soft (weights)
  bool words = false;              // of a classified text: what each word weighs
  bool scores = false;             // of a classified input: to_line() gives probabilities too
  int64_t top = 5;                 // candidates for each masked place
  std::string query = {};          // rerank: what texts are compared to
  int threads = 0;                 // of this call; 0: as set_num_threads() says
  // Called now and then on the calling thread; once it returns true, the call ends with Interrupted. See base/stop_check.h.
  std::function<bool()> should_stop = {};
};

struct AnsweredTranslation {
  Translation translation;
  std::optional<Alignment> alignment = {};
};

// A model's answer for one input. Which member is filled depends on the kind of model and the options.
struct Answer {
  std::string error = {};  // why the input cannot be used; nothing else is then filled
  int64_t cut_to = 0;      // tokens read of an input that has more; 0: all
  std::vector<AnsweredTranslation> translations = {};  // translate: n_best, best first
  Prediction prediction = {};                          // classify
  std::vector<Caption> captions = {};                  // caption: n_best, best first
  std::optional<std::vector<std::pair<std::string, float>>> words =
      {};                                              // classify, with AnswerOptions::words
  std::vector<int64_t> unknown = {};                   // places in `words` of those that the vocabulary lacks
  float score = 0;                                     // rerank
  std::vector<float> vector = {};                      // embed
  std::vector<EmbeddedSpan> spans = {};                // embed, with EmbedOptions::tokens or chunks
  std::vector<std::vector<MaskCandidate>> masks = {};  // fill: candidates for each masked place
  std::vector<float> numbers = {};           // predict: a number, or of a forecast [steps, target columns]
  std::vector<infer::FoundShip> ships = {};  // partition
};

struct Explanation {
  std::string title;    // the translation, or label and probability
  std::string content;  // a file's bytes, or text for a terminal
  int64_t cut_to = 0;   // as in Answer
};

// Thread safety: answer(), explain() and evaluate() may be called by several threads at once; they share one
// pool of worker threads. An answer has the same bits whatever the number of threads and the other inputs of the call are,
// but for convolutional classifiers of pictures and clips, whose probabilities may differ in their last bits beside others.
class OpenFolder {
 public:
  explicit OpenFolder(FolderContents contents) : contents_(std::move(contents)) {}
  virtual ~OpenFolder() = default;
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  const FolderContents& contents() const { return contents_; }

  // Throws Error when options make no sense, or ask for what this model cannot do: before any input is read.
  virtual void check(const AnswerOptions& options) const;
  // One answer for each input, in order. An input that cannot be used gets an answer with `error`. Throws Interrupted
  // where options.should_stop ended it; the object can be used as before.
  std::vector<Answer> answer(std::span<const Input> inputs, const AnswerOptions& options) const;
  // A classifier's answer as one line without its end: the label, labels or number. Throws Error for other models.
  virtual std::string to_line(const Answer& answer, const AnswerOptions& options) const;
  // The answer to `input`.
  virtual Json to_json(const Input& input, const Answer& answer) const = 0;

  // What the model attends to. form: the ending of the file to make (".png", ".svg", ".pdf", ".html", ".json",
  // ".txt"), or empty for text `columns` wide. Throws Error on an input or options that cannot be used: none
  // is ignored.
  virtual Explanation explain(const Input& input, const ExplainOptions& options, const std::string& form,
                              size_t columns = 100) const;
  // How well a classifier does on labelled texts or pictures.
  virtual Evaluation evaluate(const TestFiles& files) const;

 private:
  virtual std::vector<Answer> answer_inputs(std::span<const Input> inputs,
                                            const AnswerOptions& options) const = 0;

  FolderContents contents_;
};

// Throws FileError when there is no such folder, ModelError when it is damaged, Error when it cannot do what
// options.purpose asks.
std::unique_ptr<OpenFolder> open(const std::filesystem::path& folder, const OpenOptions& options = {});

// {text, score}, with source, target and weights where there is an alignment.
Json to_json(const AnsweredTranslation& translation);

// The vectors as one NumPy file of float32, a row each; an empty one is a row of NaN. width: of a vector.
std::string npy_file(std::span<const std::vector<float>> vectors, int64_t width);

}  // namespace fovea::tasks
