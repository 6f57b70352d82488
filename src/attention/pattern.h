// Which keys a query may attend to, independent of the numbers: a value that composes with | and &.
//
//   causal() & window(256, 0)          window(256, 256) | global({0})          heads({window(8, 0), full()})
//
// Query i is at position i + keys - queries (the last query at the last key), unless a pattern is aligned
// top_left, where it is at position i. Windows, strides, blocks and global tokens all count positions.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

namespace fovea {

// Where query 0 stands when there are more or fewer keys than queries. bottom_right is the default
// everywhere: it is what decoding with a cache needs.
enum class Align { bottom_right, top_left };

class Pattern;

// The members of the pattern axis. Made by the functions below; the structs are for those who take a pattern
// apart.
namespace patterns {

struct Full {
  friend bool operator==(const Full&, const Full&) = default;
};
// key <= position
struct Causal {
  Align align = Align::bottom_right;
  friend bool operator==(const Causal&, const Causal&) = default;
};
// key = position + t * dilation for -left <= t <= right: inclusive on both sides
struct Window {
  int64_t left = 0, right = 0, dilation = 1;
  Align align = Align::bottom_right;
  friend bool operator==(const Window&, const Window&) = default;
};
// (position - key) is a multiple of stride
struct Strided {
  int64_t stride = 1;
  Align align = Align::bottom_right;
  friend bool operator==(const Strided&, const Strided&) = default;
};
// the same block of `stride`, or one of the last `summary` keys of any block
struct Fixed {
  int64_t stride = 1, summary = 1;
  friend bool operator==(const Fixed&, const Fixed&) = default;
};
// key's block is within `left` blocks before and `right` blocks after the position's block
struct BlockWindow {
  int64_t block = 1, left = 0, right = 0;
  friend bool operator==(const BlockWindow&, const BlockWindow&) = default;
};
// positions first .. last, both included
struct TokenRange {
  int64_t first = 0, last = 0;
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};
// the tokens see every key, and every query sees the tokens
struct Global {
  std::vector<TokenRange> tokens;  // sorted, apart
  friend bool operator==(const Global&, const Global&) = default;
};
// every query sees the tokens, which themselves see no more than the others do
struct GlobalKeys {
  std::vector<TokenRange> tokens;  // sorted, apart
  friend bool operator==(const GlobalKeys&, const GlobalKeys&) = default;
};
// each block of positions sees `count` blocks of keys, drawn without repetition; a function of seed and block
// alone
struct RandomBlocks {
  int64_t block = 1, count = 1, seed = 0;
  friend bool operator==(const RandomBlocks&, const RandomBlocks&) = default;
};
// rows[query / block][key / block] == '1'
struct Layout {
  int64_t block = 1;
  std::vector<std::string> rows;
  friend bool operator==(const Layout&, const Layout&) = default;
};
// key < keys[batch]
struct Lengths {
  std::vector<int64_t> keys;  // [B]
  friend bool operator==(const Lengths&, const Lengths&) = default;
};
// query < queries[batch]: the rows beyond see nothing and give 0
struct QueryLengths {
  std::vector<int64_t> queries;  // [B]
  friend bool operator==(const QueryLengths&, const QueryLengths&) = default;
};
// query and key are in the same document; documents follow one another without gaps
struct Documents {
  std::vector<int64_t> queries, keys;  // tokens of each document; the same number of documents
  friend bool operator==(const Documents&, const Documents&) = default;
};
// Of a packed batch, each document sees itself alone, through parts[0], whose positions begin again at the
// document's first token: what a model of single texts needs to run on packed ones. Or through a pattern of its
// own: parts has one for all, or one for each document
struct Within {
  Documents documents;
  std::vector<Pattern> parts;
  const Pattern& part(size_t document) const;
};
// any function of (head, query, key): the one pattern whose compilation asks about every pair. Equal by name.
struct Predicate {
  std::string name;
  std::function<bool(int64_t head, int64_t query, int64_t key)> sees;
  friend bool operator==(const Predicate& a, const Predicate& b) { return a.name == b.name; }
};
struct AnyOf {
  std::vector<Pattern> parts;
};
struct AllOf {
  std::vector<Pattern> parts;
};
// head h takes parts[h % size]
struct PerHead {
  std::vector<Pattern> parts;
};

using Node = std::variant<Full, Causal, Window, Strided, Fixed, BlockWindow, Global, GlobalKeys, RandomBlocks,
                          Layout, Lengths, QueryLengths, Documents, Within, Predicate, AnyOf, AllOf, PerHead>;

}  // namespace patterns

class Pattern {
 public:
  Pattern() = default;  // full
  // Throws Error when a number makes no sense: a negative window, a stride of 0, an empty list.
  explicit Pattern(patterns::Node node);
  const patterns::Node& node() const { return node_; }
  friend bool operator==(const Pattern& a, const Pattern& b);

 private:
  patterns::Node node_;
};

Pattern full();
Pattern causal(Align align = Align::bottom_right);
Pattern window(int64_t left, int64_t right, int64_t dilation = 1, Align align = Align::bottom_right);
Pattern strided(int64_t stride, Align align = Align::bottom_right);
Pattern fixed(int64_t stride, int64_t summary);
Pattern block_window(int64_t block, int64_t left, int64_t right);
Pattern global(std::vector<int64_t> tokens);
Pattern global_range(int64_t first, int64_t last);
Pattern global_keys(std::vector<patterns::TokenRange> tokens);
Pattern random_blocks(int64_t block, int64_t count, int64_t seed);
Pattern layout(int64_t block, std::vector<std::string> rows);
Pattern lengths(std::vector<int64_t> keys);
Pattern query_lengths(std::vector<int64_t> queries);
Pattern documents(std::vector<int64_t> tokens);
Pattern documents(std::vector<int64_t> queries, std::vector<int64_t> keys);
Pattern within(std::vector<int64_t> tokens, Pattern pattern);
Pattern within(std::vector<int64_t> tokens, std::vector<Pattern> patterns);  // one for each document
Pattern predicate(std::string name, std::function<bool(int64_t head, int64_t query, int64_t key)> sees);
Pattern heads(std::vector<Pattern> parts);

Pattern operator|(Pattern a, Pattern b);
Pattern operator&(Pattern a, Pattern b);

// "causal & window(256,0)"; parse_pattern reads it back.
std::string to_string(const Pattern& pattern);
std::ostream& operator<<(std::ostream& out, const Pattern& pattern);

// One pair of a batch of attention problems of equal size.
struct PatternPlace {
  int64_t queries = 0, keys = 0;
  int64_t batch = 0, head = 0;
  int64_t query = 0, key = 0;
};

// Whether the query sees the key: the definition, evaluated directly. The compiler is tested against it.
bool allowed(const Pattern& pattern, const PatternPlace& place);

// Where a key stands: counted from the first key, or from the first of its document where the pattern has
// documents (or within).
int64_t key_place(const Pattern& pattern, int64_t key);

// The key blocks that random_blocks gives to one block of positions: sorted, distinct, min(count, key_blocks)
// of them.
std::vector<int64_t> random_choice(const patterns::RandomBlocks& random, int64_t position_block,
                                   int64_t key_blocks);

}  // namespace fovea
