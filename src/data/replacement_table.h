// SentencePiece's table of character replacements (precompiled_charsmap): what NFKC and other rules turn
// characters into, as a double-array trie over bytes and a list of texts.
//
// The libraries that use such a table follow it without looking where it leads, so every table from outside
// is checked here before anything uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::data {

class ReplacementTable {
 public:
  // bytes: the trie's size in bytes, the trie, and texts that end with a zero. Throws Error, beginning with
  // `name`, when a walk through the trie could leave it or a text could leave the list.
  ReplacementTable(std::string_view bytes, const std::string& name);

  // What the shortest beginning of `text` that the table knows becomes; empty: it knows none.
  std::optional<std::string_view> replacement(std::string_view text) const;

  // The whole text as Hugging Face's `tokenizers` replaces it: a cluster of at most 5 bytes that a reader
  // takes for one character at once, then character by character.
  // sources: if not null, gets for each byte of the result the bytes [first, second) of `text` that became it; text must
  // be UTF-8 then.
  std::string replace_clusters(std::string_view text,
                               std::vector<std::pair<size_t, size_t>>* sources = nullptr) const;

 private:
  void check(const std::string& name) const;

  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace fovea::data
