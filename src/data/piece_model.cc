#include "data/piece_model.h"

#include <sentencepiece_processor.h>

#include <algorithm>

#include "base/error.h"
#include "data/replacement_table.h"
#include "data/text.h"
#include "data/wire_format.h"

namespace fovea::data {
namespace {

// SentencePiece writes messages over several lines, and ours are one.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

void check_replacements(std::string_view model, const std::string& name) {
  constexpr uint64_t kNormalizer = 3, kDenormalizer = 5, kTable = 2;
  bool well_formed = true;
  well_formed &= visit_bytes(model, [&](uint64_t field, std::string_view bytes) {
    if (field != kNormalizer && field != kDenormalizer) return;
    well_formed &= visit_bytes(bytes, [&](uint64_t inner, std::string_view table) {
      if (inner == kTable && !table.empty()) ReplacementTable(table, name);
    });
  });
  require(well_formed, name, ": not a SentencePiece model");
}

}  // namespace

struct PieceModel::Processor {
  sentencepiece::SentencePieceProcessor library;
};

PieceModel::PieceModel(std::string_view bytes, const std::string& name)
    : bytes_(bytes), processor_(std::make_unique<Processor>()) {
  check_replacements(bytes_, name);
  const auto status = processor_->library.LoadFromSerializedProto({bytes_.data(), bytes_.size()});
  require(status.ok(), name, ": not a SentencePiece model (", one_line(status.ToString()), ")");
}
PieceModel::PieceModel(PieceModel&&) noexcept = default;
PieceModel::~PieceModel() = default;

PieceModel PieceModel::verbatim(std::span<const std::string> pieces, std::span<const float> scores,
                                int32_t unknown, std::span<const int32_t> unused, const std::string& name) {
  // Fields and values of SentencePiece's ModelProto.
  constexpr uint64_t kPiece = 1, kTrainer = 2, kNormalizer = 3;
  constexpr uint64_t kText = 1, kScore = 2, kType = 3, kNormal = 1, kUnknown = 2, kUnused = 5;
  std::string model;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const bool never = std::find(unused.begin(), unused.end(), id) != unused.end();
    std::string piece;
    append_field(piece, kText, pieces[i]);
    append_number(piece, kScore << 3 | 5);  // four bytes
    piece.append(reinterpret_cast<const char*>(&scores[i]), sizeof(float));
    append_field(piece, kType, id == unknown ? kUnknown : never ? kUnused : kNormal);
    append_field(model, kPiece, std::string_view(piece));
  }
  std::string trainer, normalizer;
  constexpr uint64_t kModelType = 3, kUnigram = 1;
  append_field(trainer, kModelType, kUnigram);
  constexpr uint64_t kDummyPrefix = 3, kRemoveWhite = 4, kEscapeWhite = 5;
  for (const uint64_t habit : {kDummyPrefix, kRemoveWhite, kEscapeWhite})
    append_field(normalizer, habit, uint64_t{0});
  append_field(model, kTrainer, std::string_view(trainer));
  append_field(model, kNormalizer, std::string_view(normalizer));
  return PieceModel(model, name);
}

int32_t PieceModel::size() const {
  return processor_->library.GetPieceSize();
}

const std::string& PieceModel::piece(int32_t id) const {
  require(id >= 0 && id < size(), "token id ", id, " is outside the vocabulary of ", size());
  return processor_->library.IdToPiece(id);
}

int32_t PieceModel::unknown() const {
  return processor_->library.unk_id();
}
int32_t PieceModel::begin() const {
  return processor_->library.bos_id();
}
int32_t PieceModel::end() const {
  return processor_->library.eos_id();
}
bool PieceModel::is_byte(int32_t id) const {
  return processor_->library.IsByte(id);
}

std::vector<int32_t> PieceModel::ids(std::string_view text) const {
  std::vector<int> ids;
  const auto status = processor_->library.Encode({text.data(), text.size()}, &ids);
  require(status.ok(), "cannot tokenise: ", one_line(status.ToString()));
  return {ids.begin(), ids.end()};
}

std::vector<std::string> PieceModel::pieces(std::string_view text) const {
  std::vector<std::string> pieces;
  const auto status = processor_->library.Encode({text.data(), text.size()}, &pieces);
  require(status.ok(), "cannot tokenise: ", one_line(status.ToString()));
  return pieces;
}

std::string PieceModel::join(const std::vector<std::string>& pieces) const {
  std::string text;
  const auto status = processor_->library.Decode(pieces, &text);
  require(status.ok(), "cannot join tokens: ", one_line(status.ToString()));
  return text;
}

std::vector<int32_t> words_of(std::span<const PieceOfText> pieces) {
  std::vector<int32_t> words;
  int32_t word = -1;
  // Of the piece before. A mark that stands alone belongs to the piece after it.
  bool special_before = true, ideograph_before = false, lone_mark_before = false;
  for (const PieceOfText& piece : pieces) {
    std::string_view inner = piece.text;
    const bool marked = inner.starts_with(kWordMark);
    if (marked) inner.remove_prefix(kWordMark.size());
    const std::u32string spelled = piece.special || piece.byte ? U"" : characters(inner);
    const bool ideograph = !spelled.empty() && (is_ideograph(spelled.front()) || ideograph_before);
    word += piece.special || special_before || (!lone_mark_before && (marked || ideograph));
    words.push_back(word);
    special_before = piece.special;
    ideograph_before = !spelled.empty() && is_ideograph(spelled.back());
    lone_mark_before = marked && inner.empty();
  }
  return words;
}

}  // namespace fovea::data
