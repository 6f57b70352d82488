// Cuts text into the pieces of a published SentencePiece model, with the same result for every version of the library.
#include "data/piece_model.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "data/replacement_table.h"
#include "data/sentencepiece_library.h"
#include "data/text.h"
#include "data/wire_format.h"

namespace fovea::data {
namespace {

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

// What a message says in a field of numbers.
uint64_t number_in(std::string_view message, uint64_t field, uint64_t otherwise) {
  uint64_t found = otherwise;
  visit_fields(
      message, [](uint64_t, std::string_view) {},
      [&](uint64_t one, uint64_t value) {
        if (one == field) found = value;
      });
  return found;
}

}  // namespace

// A verbatim model does without the library, whose search tree would take most of the time to open a large vocabulary.
struct PieceModel::Processor {
  sentencepiece::SentencePieceProcessor library;
  bool verbatim = false;
  std::span<const std::string> pieces;  // of a verbatim model
  std::vector<int32_t> unused;
  int32_t unknown = -1;
  // Of a unigram model; empty: the library cuts.
  std::unordered_map<std::string_view, int32_t> places;
  std::vector<float> scores;
  size_t longest = 0;        // piece, in bytes
  double unknown_score = 0;  // of one unknown character

  bool add(std::string_view piece, int32_t id) {
    longest = std::max(longest, piece.size());
    return places.emplace(piece, id).second;
  }
  void score_unknown(float least) {
    constexpr float kUnknownPenalty = 10;
    unknown_score = least - kUnknownPenalty;
  }
};

// The library cuts text of a unigram model in an order of its own where two ways have the same score, and that order has
// changed between its versions. The published ids are those of its newer versions and of `tokenizers`: from left to
// right, an end is reached from the earliest start that is best.
void PieceModel::take_pieces() {
  // Fields and values of SentencePiece's ModelProto.
  constexpr uint64_t kPiece = 1, kTrainer = 2, kType = 3, kNormal = 1, kUserDefined = 4, kModelType = 3,
                     kUnigram = 1;
  bool simple = true;
  visit_bytes(bytes_, [&](uint64_t field, std::string_view bytes) {
    if (field == kPiece) simple &= number_in(bytes, kType, kNormal) != kUserDefined;
    if (field == kTrainer) simple &= number_in(bytes, kModelType, kUnigram) == kUnigram;
  });
  const auto& library = processor_->library;
  processor_->unknown = library.unk_id();
  if (!simple) return;
  float least = 0;
  bool any = false;
  processor_->places.reserve(static_cast<size_t>(library.GetPieceSize()));
  for (int32_t id = 0; id < library.GetPieceSize(); ++id) {
    processor_->scores.push_back(library.GetScore(id));
    if (library.IsByte(id)) simple = false;
    if (library.IsUnknown(id) || library.IsControl(id)) continue;
    least = any ? std::min(least, library.GetScore(id)) : library.GetScore(id);
    any = true;
    if (!library.IsUnused(id)) processor_->add(library.IdToPiece(id), id);
  }
  if (!simple || library.unk_id() < 0) processor_->places.clear();
  processor_->score_unknown(least);
}

// The best way to cut `text`, which is normalised already: unknown characters side by side are one piece. Scores are
// summed in double precision as in `tokenizers`, or in float as in the library.
template <class Sum>
std::vector<PieceModel::Cut> PieceModel::best_cut(std::string_view text) const {
  struct End {
    Sum score = 0;
    int64_t start = -1;
    int32_t id = 0;
  };
  const Processor& model = *processor_;
  const int32_t unknown = model.unknown;
  std::vector<End> ends(text.size() + 1);
  const auto reach = [&](size_t end, Sum score, size_t start, int32_t id) {
    if (ends[end].start < 0 || score > ends[end].score) ends[end] = {score, static_cast<int64_t>(start), id};
  };
  for (size_t start = 0; start < text.size();) {
    std::string_view rest = text.substr(start);
    next_character(rest);
    const size_t character = text.size() - start - rest.size();
    bool single = false;
    for (size_t length = character; length <= std::min(model.longest, text.size() - start);) {
      const auto found = model.places.find(text.substr(start, length));
      if (found != model.places.end()) {
        reach(start + length,
              ends[start].score + static_cast<Sum>(model.scores[static_cast<size_t>(found->second)]), start,
              found->second);
        single |= length == character;
      }
      if (start + length == text.size()) break;
      std::string_view more = text.substr(start + length);
      const size_t before = more.size();
      next_character(more);
      length += before - more.size();
    }
    if (!single)
      reach(start + character, ends[start].score + static_cast<Sum>(model.unknown_score), start, unknown);
    start += character;
  }
  std::vector<Cut> cuts;
  for (size_t end = text.size(); end > 0; end = static_cast<size_t>(ends[end].start)) {
    const auto start = static_cast<size_t>(ends[end].start);
    if (ends[end].id == unknown && !cuts.empty() && cuts.back().id == unknown) {
      cuts.back().text = text.substr(start, cuts.back().text.size() + end - start);
      continue;
    }
    cuts.push_back({ends[end].id, text.substr(start, end - start)});
  }
  std::reverse(cuts.begin(), cuts.end());
  return cuts;
}

PieceModel::PieceModel() : processor_(std::make_unique<Processor>()) {}
PieceModel::PieceModel(std::string_view bytes, const std::string& name)
    : bytes_(bytes), processor_(std::make_unique<Processor>()) {
  check_replacements(bytes_, name);
  load_model(processor_->library, bytes_, name);
  take_pieces();
}
PieceModel::PieceModel(PieceModel&&) noexcept = default;
PieceModel::~PieceModel() = default;

PieceModel PieceModel::verbatim(std::span<const std::string> pieces, std::span<const float> scores,
                                int32_t unknown, std::span<const int32_t> unused, const std::string& name) {
  FOVEA_ASSERT(pieces.size() == scores.size());
  PieceModel made;
  Processor& own = *made.processor_;
  own.verbatim = true;
  own.pieces = pieces;
  own.scores.assign(scores.begin(), scores.end());
  own.unused.assign(unused.begin(), unused.end());
  own.unknown = unknown;
  own.places.reserve(pieces.size());
  float least = 0;
  bool any = false;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    require(!pieces[i].empty() && pieces[i].find('\0') == std::string::npos, name,
            ": not a SentencePiece model (a piece is empty or contains a zero byte)");
    if (id == unknown) continue;
    least = any ? std::min(least, scores[i]) : scores[i];
    any = true;
    if (std::find(unused.begin(), unused.end(), id) != unused.end()) continue;
    require(own.add(pieces[i], id), name, ": not a SentencePiece model (piece ", id, " stands twice)");
  }
  own.score_unknown(least);
  return made;
}

std::string PieceModel::bytes() const {
  if (!processor_->verbatim) return bytes_;
  // Fields and values of SentencePiece's ModelProto.
  constexpr uint64_t kPiece = 1, kTrainer = 2, kNormalizer = 3;
  constexpr uint64_t kText = 1, kScore = 2, kType = 3, kNormal = 1, kUnknown = 2, kUnused = 5;
  const auto& [pieces, unused, scores] = std::tie(processor_->pieces, processor_->unused, processor_->scores);
  std::string model;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const bool never = std::find(unused.begin(), unused.end(), id) != unused.end();
    std::string piece;
    append_field(piece, kText, pieces[i]);
    append_number(piece, kScore << 3 | 5);  // four bytes
    piece.append(reinterpret_cast<const char*>(&scores[i]), sizeof(float));
    append_field(piece, kType, id == processor_->unknown ? kUnknown : never ? kUnused : kNormal);
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
  return model;
}

int32_t PieceModel::size() const {
  return processor_->verbatim ? static_cast<int32_t>(processor_->pieces.size())
                              : processor_->library.GetPieceSize();
}

const std::string& PieceModel::piece(int32_t id) const {
  require(id >= 0 && id < size(), "token id ", id, " is outside the vocabulary of ", size());
  return processor_->verbatim ? processor_->pieces[static_cast<size_t>(id)]
                              : processor_->library.IdToPiece(id);
}

int32_t PieceModel::unknown() const {
  return processor_->unknown;
}
int32_t PieceModel::begin() const {
  return processor_->verbatim ? -1 : processor_->library.bos_id();
}
int32_t PieceModel::end() const {
  return processor_->verbatim ? -1 : processor_->library.eos_id();
}
bool PieceModel::is_byte(int32_t id) const {
  return !processor_->verbatim && processor_->library.IsByte(id);
}

std::vector<std::string> PieceModel::library_pieces(std::string_view text) const {
  std::vector<std::string> pieces;
  const auto status = processor_->library.Encode({text.data(), text.size()}, &pieces);
  require_ok(status, "cannot tokenise");
  return pieces;
}

template <class Take>
void PieceModel::for_each_piece(std::string_view text, Take&& take) const {
  if (processor_->verbatim) {
    // Bytes that are not UTF-8 become U+FFFD, as in the library.
    std::string valid;
    if (!is_utf8(text)) {
      for (std::string_view rest = text; !rest.empty();) {
        const size_t good = valid_utf8_prefix(rest);
        valid += rest.substr(0, good);
        rest.remove_prefix(good);
        if (rest.empty()) break;
        valid += "\uFFFD";
        rest.remove_prefix(1);
      }
      text = valid;
    }
    for (const Cut& cut : best_cut<double>(text)) take(cut.id, cut.text);
    return;
  }
  const std::vector<std::string> pieces = library_pieces(text);
  if (processor_->places.empty()) {
    for (const std::string& piece : pieces) take(processor_->library.PieceToId(piece), piece);
    return;
  }
  // Together the pieces are the text as the model normalises it.
  std::string normal;
  for (const std::string& piece : pieces) normal += piece;
  for (const Cut& cut : best_cut<float>(normal)) take(cut.id, cut.text);
}

std::vector<PieceModel::Place> PieceModel::places(std::string_view text) const {
  std::string normal;
  std::vector<Place> sources;  // of each byte of `normal`
  const auto add = [&](std::string_view bytes, size_t begin, size_t end, bool one_by_one) {
    for (size_t i = 0; i < bytes.size(); ++i)
      sources.push_back(one_by_one ? Place{0, begin + i, begin + i + 1} : Place{0, begin, end});
    normal += bytes;
  };
  std::vector<Place> found;
  if (processor_->verbatim) {
    add(text, 0, text.size(), true);
  } else {
    const auto encoded = processor_->library.EncodeAsImmutableProto({text.data(), text.size()});
    for (const auto& piece : encoded.pieces()) {
      size_t begin = piece.begin();
      const size_t end = piece.end();
      std::string_view written = piece.piece();
      if (begin < end && text[begin] == ' ') ++begin;
      if (written.starts_with(kWordMark)) {
        add(kWordMark, begin, begin, false);
        written.remove_prefix(kWordMark.size());
      }
      add(written, begin, end, written == text.substr(begin, end - begin));
      found.push_back({static_cast<int32_t>(piece.id()), begin, end});
    }
    if (processor_->places.empty()) return found;
    found.clear();
  }
  size_t at = 0;
  for (const Cut& cut : processor_->verbatim ? best_cut<double>(normal) : best_cut<float>(normal)) {
    const size_t last = at + cut.text.size();
    if (cut.text.starts_with(kWordMark)) at += kWordMark.size();
    const size_t edge = at < sources.size() ? sources[at].begin : text.size();
    found.push_back({cut.id, edge, at < last ? sources[last - 1].end : edge});
    at = last;
  }
  return found;
}

std::vector<int32_t> PieceModel::ids(std::string_view text) const {
  std::vector<int32_t> ids;
  for_each_piece(text, [&](int32_t id, std::string_view) { ids.push_back(id); });
  return ids;
}

std::vector<std::string> PieceModel::pieces(std::string_view text) const {
  std::vector<std::string> pieces;
  for_each_piece(text, [&](int32_t, std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

std::string PieceModel::join(const std::vector<std::string>& pieces) const {
  FOVEA_ASSERT(!processor_->verbatim);
  std::string text;
  const auto status = processor_->library.Decode(pieces, &text);
  require_ok(status, "cannot join tokens");
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
