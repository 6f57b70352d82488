// Makes BERT pre-training examples from documents: pairs of spans, and masked, replaced or kept words.
#include "data/pretraining.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/lines.h"
#include "data/text.h"

namespace fovea::data {
namespace {

constexpr size_t kLongestSentence = size_t{1} << 20;

// Tokens [begin, end) of all sentences.
struct Span {
  int64_t begin, end;
  int64_t length() const { return end - begin; }
};

// Takes tokens off the longer span, at its beginning or its end by chance, until both fit.
void cut_to(Span& a, Span& b, int64_t most, Rng& rng) {
  while (a.length() + b.length() > most) {
    Span& longer = a.length() > b.length() ? a : b;
    if (rng.uniform() < 0.5f)
      ++longer.begin;
    else
      --longer.end;
  }
}

class PairMaker {
 public:
  PairMaker(const TokenDocuments& documents, const PairOptions& options, Rng& rng)
      : documents_(documents), options_(options), rng_(rng) {}

  std::vector<SpanPair> run() {
    for (int64_t d = 0; d < documents_.size(); ++d) add_document(d);
    return std::move(pairs_);
  }

 private:
  int64_t length(int64_t sentence) const { return documents_.sentences.length(sentence); }
  int64_t begin(int64_t sentence) const { return documents_.sentences.starts[static_cast<size_t>(sentence)]; }
  int64_t first(int64_t document) const { return documents_.starts[static_cast<size_t>(document)]; }
  int64_t end(int64_t document) const { return documents_.starts[static_cast<size_t>(document) + 1]; }

  int64_t draw_target() {
    const int64_t most = options_.max_tokens - 3;
    const bool is_short = static_cast<double>(rng_.uniform()) < options_.short_share;
    return is_short ? 2 + rng_.below(most - 1) : most;
  }

  // Sentences are gathered until they have the length wanted, and cut into two.
  void add_document(int64_t document) {
    int64_t target = draw_target(), gathered = 0;
    int64_t chunk = first(document);
    for (int64_t s = chunk; s < end(document); ++s) {
      gathered += length(s);
      if (gathered < target && s + 1 < end(document)) continue;
      s = add_pair(document, chunk, s + 1, target);
      chunk = s + 1;
      gathered = 0;
      target = draw_target();
    }
  }

  // Sentences [chunk, chunk_end). Gives the last sentence that was used.
  int64_t add_pair(int64_t document, int64_t chunk, int64_t chunk_end, int64_t target) {
    const int64_t count = chunk_end - chunk;
    const int64_t cut = chunk + (count >= 2 ? 1 + rng_.below(count - 1) : 1);
    Span a{begin(chunk), begin(cut)}, b{begin(cut), begin(chunk_end)};
    bool follows = true;
    int64_t used = chunk_end - 1;
    if (documents_.size() > 1 && (count == 1 || rng_.uniform() < 0.5f)) {
      follows = false;
      b = from_another(document, target - a.length());
      used = cut - 1;
    } else if (count == 1) {
      return used;  // a single sentence of a single document has no second part
    }
    cut_to(a, b, options_.max_tokens - 3, rng_);
    if (a.length() < 1 || b.length() < 1) return used;
    pairs_.push_back(
        {a.begin, b.begin, static_cast<int32_t>(a.length()), static_cast<int32_t>(b.length()), follows});
    return used;
  }

  Span from_another(int64_t document, int64_t wanted) {
    int64_t other = rng_.below(documents_.size() - 1);
    other += other >= document;
    const int64_t start = first(other) + rng_.below(end(other) - first(other));
    Span span{begin(start), begin(start)};
    for (int64_t s = start; s < end(other); ++s) {
      span.end += length(s);
      if (span.length() >= wanted) break;
    }
    return span;
  }

  const TokenDocuments& documents_;
  PairOptions options_;
  Rng& rng_;
  std::vector<SpanPair> pairs_;
};

// What is masked together: single tokens, or the pieces of a word.
std::vector<std::vector<int32_t>> candidates(const MarkedText& text, const MarkedTokenizer& tokenizer,
                                             bool whole_words) {
  const Marks& marks = tokenizer.marks();
  const std::vector<int32_t> words = whole_words ? tokenizer.words(text.ids) : std::vector<int32_t>();
  std::vector<std::vector<int32_t>> all;
  for (size_t i = 0; i < text.ids.size(); ++i) {
    if (text.ids[i] == marks.begin || text.ids[i] == marks.end) continue;
    const auto place = static_cast<int32_t>(i);
    const bool goes_on = whole_words && i > 0 && words[i] == words[i - 1] && !all.empty();
    if (goes_on)
      all.back().push_back(place);
    else
      all.push_back({place});
  }
  return all;
}

}  // namespace

void read_documents(std::span<const std::string> paths,
                    const std::function<void(const std::string&)>& sentence,
                    const std::function<void()>& end_document) {
  for (const std::string& path : paths) {
    LineReader lines(path, kLongestSentence, kMaxStreamBytes);
    for (std::string line; lines.next(line);) {
      require(lines.fault() == LineFault::none, lines.fault_text());
      if (strip(line).empty())
        end_document();
      else
        sentence(line);
    }
    end_document();
  }
}

std::vector<SpanPair> make_pairs(const TokenDocuments& documents, const PairOptions& options, Rng& rng) {
  require(options.max_tokens >= 8, "max_tokens: got ", options.max_tokens, ", wanted at least 8");
  return PairMaker(documents, options, rng).run();
}

MaskedPair mask_pair(const TokenDocuments& documents, const SpanPair& pair, const MarkedTokenizer& tokenizer,
                     const MaskOptions& options, Rng& rng) {
  const auto span = [&](int64_t begin, int32_t length) {
    return std::span(documents.sentences.tokens)
        .subspan(static_cast<size_t>(begin), static_cast<size_t>(length));
  };
  MaskedPair masked;
  masked.text =
      tokenizer.mark(span(pair.first_begin, pair.first_length), span(pair.second_begin, pair.second_length));
  std::vector<std::vector<int32_t>> groups = candidates(masked.text, tokenizer, options.whole_words);
  const auto wanted = static_cast<size_t>(std::clamp<int64_t>(
      std::llround(static_cast<double>(masked.text.ids.size()) * options.share), 1, options.most));
  // Drawn one after the other (Fisher and Yates), until enough are chosen.
  for (size_t i = 0; i < groups.size() && masked.places.size() < wanted; ++i) {
    std::swap(groups[i], groups[i + static_cast<size_t>(rng.below(static_cast<int64_t>(groups.size() - i)))]);
    if (masked.places.size() + groups[i].size() > wanted) continue;  // a word that is too long to be whole
    masked.places.insert(masked.places.end(), groups[i].begin(), groups[i].end());
  }
  std::sort(masked.places.begin(), masked.places.end());
  for (const int32_t place : masked.places) {
    int32_t& id = masked.text.ids[static_cast<size_t>(place)];
    masked.tokens.push_back(id);
    const float chance = rng.uniform();
    if (chance < 0.8f)
      id = tokenizer.marks().mask;
    else if (chance >= 0.9f)
      id = static_cast<int32_t>(rng.below(tokenizer.size()));
  }
  return masked;
}

}  // namespace fovea::data
