// What each kind of pattern is, one record for one kind: its name, how its text is read and printed, which
// numbers it takes, which keys a query sees, and what the plan compiler needs to know of it.
//
// A kind without a record, or a record without one of the pieces, does not compile: nothing here has a
// default. Joins (|, &, heads, within) hold other patterns; the places that walk through a pattern
// (pattern.cc, row_keys.cc, compile.cc) name them and ask the record for everything else.
#pragma once

#include <algorithm>
#include <ostream>
#include <string_view>

#include "attention/pattern.h"
#include "attention/pattern_pieces.h"
#include "attention/spec_text.h"
#include "base/error.h"

namespace fovea {
namespace patterns {

// Every record has, besides what its bases say:
//   name, signature   its word in a spec, and the arguments it expects, for messages
//   of_positions      whether it speaks of positions alone, and so has a meaning inside within(...)
//   by_head           whether heads may differ
//   by_batch, same    whether batch entries may differ, and whether two of them do not
//   parse, print      from and to text
//   check             throws Error when a number makes no sense
//   fit               throws Error when the pattern does not fit the sizes of a call
//   allowed           the definition: whether a query sees a key
//   row               the keys that a query sees, as intervals
//   one_run, run      whether that is always a single interval, and which
//   cuts, varies      where rows of another behaviour begin, and whether rows between two cuts still differ
//   stride            the residue classes within which its rows are alike
template <class Member>
struct Record;

// One of the values that a pattern holds for each sequence or block.
template <class Values>
const auto& item(const Values& values, int64_t i) {
  require(i >= 0 && i < static_cast<int64_t>(values.size()), "pattern: got sequence or block ", i,
          ", but it was made for ", values.size());
  return values[static_cast<size_t>(i)];
}

template <>
struct Record<Full> : FitsAnyCall, SameForAllBatches, NoStride, NoCuts, SameRows {
  static constexpr std::string_view name = "full", signature = "full";
  static constexpr bool of_positions = true, by_head = false;
  static Full parse(SpecText&) { return {}; }
  static void print(std::ostream& out, const Full&) { out << name; }
  static void check(Full&) {}
  static bool allowed(const Full&, const PatternPlace&) { return true; }
  static RowSet row(const Full&, const RowPlace& at) { return at.one(at.all()); }
  static bool one_run(const Full&) { return true; }
  static Interval run(const Full&, const RowPlace& at) { return at.all(); }
};

template <>
struct Record<Causal> : FitsAnyCall, SameForAllBatches, NoStride, NoCuts, EachRowItsOwn {
  static constexpr std::string_view name = "causal", signature = "causal or causal(top_left)";
  static constexpr bool of_positions = true, by_head = false;
  static Causal parse(SpecText& text) {
    if (text.peek() != '(') return {};
    return {text.bracketed(signature, [&] { return text.align(signature); })};
  }
  static void print(std::ostream& out, const Causal& c) {
    out << (c.align == Align::top_left ? "causal(top_left)" : "causal");
  }
  static void check(Causal&) {}
  static bool allowed(const Causal& c, const PatternPlace& at) { return at.key <= position_of(at, c.align); }
  static RowSet row(const Causal& c, const RowPlace& at) { return at.one(run(c, at)); }
  static bool one_run(const Causal&) { return true; }
  static Interval run(const Causal& c, const RowPlace& at) { return at.clipped(0, at.position(c.align) + 1); }
};

template <>
struct Record<Window> : FitsAnyCall, SameForAllBatches, NoCuts, EachRowItsOwn {
  static constexpr std::string_view name = "window",
                                    signature = "window(left,right[,dilation][,top_left|bottom_right])";
  static constexpr bool of_positions = true, by_head = false;
  static Window parse(SpecText& text) {
    return text.bracketed(signature, [&] {
      Window w{text.integer()};
      w.right = text.next_integer();
      bool more = text.take(',');
      if (more && !text.at_letter()) {
        w.dilation = text.integer();
        more = text.take(',');
      }
      if (more) w.align = text.align(signature);
      return w;
    });
  }
  static void print(std::ostream& out, const Window& w) {
    out << "window(" << w.left << ',' << w.right;
    if (w.dilation != 1) out << ',' << w.dilation;
    out << align_suffix(w.align) << ')';
  }
  static void check(Window& w) {
    require_range(w.left, 0, "window: keys to the left (the window includes the position itself)");
    require_range(w.right, 0, "window: keys to the right (the window includes the position itself)");
    require_range(w.dilation, 1, "window: dilation (1 is a plain window)");
  }
  static bool allowed(const Window& w, const PatternPlace& at) {
    const int64_t distance = at.key - position_of(at, w.align);
    return distance % w.dilation == 0 && distance >= -w.left * w.dilation && distance <= w.right * w.dilation;
  }
  static RowSet row(const Window& w, const RowPlace& at) {
    return at.progression(at.position(w.align), w.dilation, w.left, w.right);
  }
  static bool one_run(const Window& w) { return w.dilation == 1; }
  static Interval run(const Window& w, const RowPlace& at) {
    const int64_t place = at.position(w.align);
    return at.clipped(place - w.left, place + w.right + 1);
  }
  static Stride stride(const Window& w) { return {w.dilation, w.align}; }
};

template <>
struct Record<Strided> : FitsAnyCall, SameForAllBatches, ManyRuns, NoCuts {
  static constexpr std::string_view name = "strided", signature = "strided(stride[,top_left|bottom_right])";
  static constexpr bool of_positions = true, by_head = false;
  static Strided parse(SpecText& text) {
    return text.bracketed(signature, [&] {
      Strided s{text.integer()};
      s.align = text.align_after_comma(signature);
      return s;
    });
  }
  static void print(std::ostream& out, const Strided& s) {
    out << "strided(" << s.stride << align_suffix(s.align) << ')';
  }
  static void check(Strided& s) { require_range(s.stride, 1, "strided: stride"); }
  static bool allowed(const Strided& s, const PatternPlace& at) {
    return (at.key - position_of(at, s.align)) % s.stride == 0;
  }
  static RowSet row(const Strided& s, const RowPlace& at) {
    const int64_t all = at.sizes.keys + at.sizes.queries;
    return at.progression(at.position(s.align), s.stride, all, all);
  }
  static bool varies(const Strided& s, int64_t modulus) { return s.stride > 1 && s.stride != modulus; }
  static Stride stride(const Strided& s) { return {s.stride, s.align}; }
};

template <>
struct Record<Fixed> : FitsAnyCall, SameForAllBatches, ManyRuns, NoStride {
  static constexpr std::string_view name = "fixed", signature = "fixed(stride,summary)";
  static constexpr bool of_positions = true, by_head = false;
  static Fixed parse(SpecText& text) {
    return text.bracketed(signature, [&] {
      Fixed f{text.integer()};
      f.summary = text.next_integer();
      return f;
    });
  }
  static void print(std::ostream& out, const Fixed& f) {
    out << "fixed(" << f.stride << ',' << f.summary << ')';
  }
  static void check(Fixed& f) {
    require_range(f.stride, 1, "fixed: stride");
    require(f.summary >= 0 && f.summary <= f.stride, "fixed: summary keys of a block: got ", f.summary,
            ", wanted 0 to the stride, ", f.stride);
  }
  static bool allowed(const Fixed& f, const PatternPlace& at) {
    return floor_div(position_of(at), f.stride) == at.key / f.stride ||
           at.key % f.stride >= f.stride - f.summary;
  }
  static RowSet row(const Fixed& f, const RowPlace& at) {
    RowSet set;
    const int64_t block = floor_div(at.position(), f.stride);
    for (int64_t first = 0; first < at.sizes.keys; first += f.stride) {
      const int64_t begin = first == block * f.stride ? first : first + f.stride - f.summary;
      append(set.plain, begin, std::min(first + f.stride, at.sizes.keys));
    }
    return set;
  }
  static void cuts(const Fixed& f, RowCuts& cuts) { cuts.grid(f.stride, cuts.shift); }
  static bool varies(const Fixed& f, int64_t) { return f.stride < kFewRows; }
};

template <>
struct Record<BlockWindow> : FitsAnyCall, SameForAllBatches, ManyRuns, NoStride {
  static constexpr std::string_view name = "block_window", signature = "block_window(block,left,right)";
  static constexpr bool of_positions = true, by_head = false;
  static BlockWindow parse(SpecText& text) {
    return text.bracketed(signature, [&] {
      BlockWindow w{text.integer()};
      w.left = text.next_integer();
      w.right = text.next_integer();
      return w;
    });
  }
  static void print(std::ostream& out, const BlockWindow& w) {
    out << "block_window(" << w.block << ',' << w.left << ',' << w.right << ')';
  }
  static void check(BlockWindow& w) {
    require_range(w.block, 1, "block_window: block");
    require_range(w.left, 0, "block_window: blocks to the left");
    require_range(w.right, 0, "block_window: blocks to the right");
  }
  static bool allowed(const BlockWindow& w, const PatternPlace& at) {
    const int64_t distance = at.key / w.block - floor_div(position_of(at), w.block);
    return -w.left <= distance && distance <= w.right;
  }
  static RowSet row(const BlockWindow& w, const RowPlace& at) {
    const int64_t block = floor_div(at.position(), w.block);
    return at.one((block - w.left) * w.block, (block + w.right + 1) * w.block);
  }
  static void cuts(const BlockWindow& w, RowCuts& cuts) { cuts.grid(w.block, cuts.shift); }
  static bool varies(const BlockWindow& w, int64_t) { return w.block < kFewRows; }
};

// What global and global_keys have in common: a set of tokens.
template <class Member>
struct TokenSet : FitsAnyCall, SameForAllBatches, ManyRuns, NoStride, SameRows {
  static constexpr bool of_positions = true, by_head = false;
  static Member parse(SpecText& text) {
    return text.bracketed(Record<Member>::signature, [&] {
      Member set;
      do {
        const int64_t first = text.integer("a token");
        int64_t last = first;
        if (text.take('.')) {
          text.want('.', "'..' between the ends of a range");
          last = text.integer();
        }
        set.tokens.push_back({first, last});
      } while (text.take(','));
      return set;
    });
  }
  static void print(std::ostream& out, const Member& set) {
    out << Record<Member>::name << '(';
    for (size_t i = 0; i < set.tokens.size(); ++i) {
      out << (i ? "," : "") << set.tokens[i].first;
      if (set.tokens[i].last != set.tokens[i].first) out << ".." << set.tokens[i].last;
    }
    out << ')';
  }
  // Sorts and joins what touches, so that equal sets of tokens are equal values.
  static void check(Member& set) {
    constexpr std::string_view name = Record<Member>::name;
    require(!set.tokens.empty(), name, ": got no token, wanted at least one, such as ", name, "(0)");
    const std::string token = std::string(name) + ": token";
    for (const TokenRange& range : set.tokens) {
      require_range(range.first, 0, token.c_str());
      require_range(range.last, 0, token.c_str());
      require(range.first <= range.last, name, ": got the range ", range.first, "..", range.last,
              ", wanted its smaller end first");
    }
    std::sort(set.tokens.begin(), set.tokens.end(),
              [](const TokenRange& a, const TokenRange& b) { return a.first < b.first; });
    std::vector<TokenRange> joined;
    for (const TokenRange& range : set.tokens) {
      if (!joined.empty() && range.first <= joined.back().last + 1)
        joined.back().last = std::max(joined.back().last, range.last);
      else
        joined.push_back(range);
    }
    set.tokens = std::move(joined);
  }
  static bool covers(const Member& set, int64_t place) {
    return std::any_of(set.tokens.begin(), set.tokens.end(),
                       [&](const TokenRange& range) { return range.first <= place && place <= range.last; });
  }
  // The tokens as keys.
  static RowSet keys(const Member& set, const RowPlace& at) {
    RowSet keys;
    for (const TokenRange& range : set.tokens)
      append(keys.plain, range.first, std::min(range.last + 1, at.sizes.keys));
    return keys;
  }
};

template <>
struct Record<Global> : TokenSet<Global> {
  static constexpr std::string_view name = "global", signature = "global(token,first..last,...)";
  static bool allowed(const Global& g, const PatternPlace& at) {
    return covers(g, position_of(at)) || covers(g, at.key);
  }
  static RowSet row(const Global& g, const RowPlace& at) {
    return covers(g, at.position()) ? at.one(at.all()) : keys(g, at);
  }
  static void cuts(const Global& g, RowCuts& cuts) {
    for (const TokenRange& range : g.tokens) {
      cuts.at(range.first - cuts.shift);
      cuts.at(range.last + 1 - cuts.shift);
    }
  }
};

template <>
struct Record<GlobalKeys> : TokenSet<GlobalKeys>, NoCuts {
  static constexpr std::string_view name = "global_keys", signature = "global_keys(token,first..last,...)";
  static bool allowed(const GlobalKeys& g, const PatternPlace& at) { return covers(g, at.key); }
  static RowSet row(const GlobalKeys& g, const RowPlace& at) { return keys(g, at); }
};

template <>
struct Record<RandomBlocks> : FitsAnyCall, SameForAllBatches, ManyRuns, NoStride {
  static constexpr std::string_view name = "random_blocks", signature = "random_blocks(block,count[,seed])";
  static constexpr bool of_positions = true, by_head = false;
  static RandomBlocks parse(SpecText& text) {
    return text.bracketed(signature, [&] {
      RandomBlocks r{text.integer()};
      r.count = text.next_integer();
      if (text.take(',')) r.seed = text.integer();
      return r;
    });
  }
  static void print(std::ostream& out, const RandomBlocks& r) {
    out << "random_blocks(" << r.block << ',' << r.count << ',' << r.seed << ')';
  }
  static void check(RandomBlocks& r) {
    require_range(r.block, 1, "random_blocks: block");
    require_range(r.count, 1, "random_blocks: blocks for each query block");
    require_range(r.seed, 0, "random_blocks: seed");
  }
  static bool allowed(const RandomBlocks& r, const PatternPlace& at) {
    const auto chosen =
        random_choice(r, floor_div(position_of(at), r.block), (at.keys + r.block - 1) / r.block);
    return std::binary_search(chosen.begin(), chosen.end(), at.key / r.block);
  }
  static RowSet row(const RandomBlocks& r, const RowPlace& at) {
    RowSet set;
    const int64_t key_blocks = (at.sizes.keys + r.block - 1) / r.block;
    for (const int64_t block : random_choice(r, floor_div(at.position(), r.block), key_blocks))
      append(set.plain, block * r.block, std::min((block + 1) * r.block, at.sizes.keys));
    return set;
  }
  static void cuts(const RandomBlocks& r, RowCuts& cuts) { cuts.grid(r.block, cuts.shift); }
  static bool varies(const RandomBlocks& r, int64_t) { return r.block < kFewRows; }
};

// The kinds below speak of one batch as it is, not of positions: they have no meaning inside within(...).

template <>
struct Record<Layout> : SameForAllBatches, ManyRuns, NoStride {
  static constexpr std::string_view name = "layout", signature = "layout(block;row,row,...), rows of 0 and 1";
  static constexpr bool of_positions = false, by_head = false;
  static Layout parse(SpecText& text) {
    return text.bracketed(signature, [&] {
      Layout layout{text.integer(), {}};
      text.want(';', "';' between the block and the rows");
      do layout.rows.push_back(text.digits("a row of 0 and 1"));
      while (text.take(','));
      return layout;
    });
  }
  static void print(std::ostream& out, const Layout& l) {
    out << "layout(" << l.block << ';';
    print_list(out, l.rows);
    out << ')';
  }
  static void check(Layout& l) {
    require_range(l.block, 1, "layout: block");
    require(!l.rows.empty(), "layout: got no row, wanted one of 0 and 1 for each query block");
    for (const std::string& row : l.rows) {
      require(!row.empty() && row.find_first_not_of("01") == std::string::npos, "layout: got the row \"", row,
              "\", wanted only 0 and 1");
      require(row.size() == l.rows[0].size(), "layout: got a row of ", row.size(), " blocks after one of ",
              l.rows[0].size(), ", wanted rows of one length");
    }
  }
  static void fit(const Layout& l, const PlanSizes& sizes) {
    const auto rows = static_cast<int64_t>(l.rows.size());
    const auto columns = static_cast<int64_t>(l.rows[0].size());
    require(rows * l.block >= sizes.queries && columns * l.block >= sizes.keys, "layout: got ", rows, " x ",
            columns, " blocks of ", l.block, " for ", sizes.queries, " queries and ", sizes.keys,
            " keys, wanted blocks that cover them");
  }
  static bool allowed(const Layout& l, const PatternPlace& at) {
    return item(item(l.rows, at.query / l.block), at.key / l.block) == '1';
  }
  static RowSet row(const Layout& l, const RowPlace& at) {
    RowSet set;
    const std::string& row = l.rows[at.query / l.block];
    for (size_t block = 0; block < row.size(); ++block)
      if (const auto begin = static_cast<int64_t>(block) * l.block; row[block] == '1')
        append(set.plain, begin, std::min(begin + l.block, at.sizes.keys));
    return set;
  }
  static void cuts(const Layout& l, RowCuts& cuts) { cuts.grid(l.block, 0); }
  static bool varies(const Layout& l, int64_t) { return l.block < kFewRows; }
};

inline void check_lengths(const std::vector<int64_t>& values, const char* name, const char* what) {
  require(!values.empty(), name, ": got none, wanted one for each sequence of the batch");
  for (const int64_t value : values) require_range(value, 0, what);
}
inline void fit_lengths(const std::vector<int64_t>& values, int64_t batch, int64_t most, const char* name,
                        const char* what) {
  require(static_cast<int64_t>(values.size()) == batch, name, ": got ", values.size(), " for a batch of ",
          batch, ", wanted one for each sequence");
  for (const int64_t value : values)
    require(value <= most, name, ": got ", value, " of ", most, " ", what, ", wanted no more than there are");
}

template <>
struct Record<Lengths> : NoStride, NoCuts, SameRows {
  static constexpr std::string_view name = "lengths", signature = "lengths(n,...), one for each sequence";
  static constexpr bool of_positions = false, by_head = false, by_batch = true;
  static Lengths parse(SpecText& text) {
    return {text.bracketed(signature, [&] { return text.integers(); })};
  }
  static void print(std::ostream& out, const Lengths& l) {
    out << "lengths(";
    print_list(out, l.keys);
    out << ')';
  }
  static void check(Lengths& l) { check_lengths(l.keys, "lengths", "lengths: keys of a sequence"); }
  static void fit(const Lengths& l, const PlanSizes& sizes) {
    fit_lengths(l.keys, sizes.batch, sizes.keys, "lengths", "keys");
  }
  static bool same(const Lengths& l, int64_t a, int64_t b) { return l.keys[a] == l.keys[b]; }
  static bool allowed(const Lengths& l, const PatternPlace& at) { return at.key < item(l.keys, at.batch); }
  static RowSet row(const Lengths& l, const RowPlace& at) { return at.one(run(l, at)); }
  static bool one_run(const Lengths&) { return true; }
  static Interval run(const Lengths& l, const RowPlace& at) { return at.clipped(0, l.keys[at.batch]); }
};

template <>
struct Record<QueryLengths> : NoStride, SameRows {
  static constexpr std::string_view name = "query_lengths",
                                    signature = "query_lengths(n,...), one for each sequence";
  static constexpr bool of_positions = false, by_head = false, by_batch = true;
  static QueryLengths parse(SpecText& text) {
    return {text.bracketed(signature, [&] { return text.integers(); })};
  }
  static void print(std::ostream& out, const QueryLengths& l) {
    out << "query_lengths(";
    print_list(out, l.queries);
    out << ')';
  }
  static void check(QueryLengths& l) {
    check_lengths(l.queries, "query_lengths", "query_lengths: queries of a sequence");
  }
  static void fit(const QueryLengths& l, const PlanSizes& sizes) {
    fit_lengths(l.queries, sizes.batch, sizes.queries, "query_lengths", "queries");
  }
  static bool same(const QueryLengths& l, int64_t a, int64_t b) { return l.queries[a] == l.queries[b]; }
  static bool allowed(const QueryLengths& l, const PatternPlace& at) {
    return at.query < item(l.queries, at.batch);
  }
  static RowSet row(const QueryLengths& l, const RowPlace& at) { return at.one(run(l, at)); }
  static bool one_run(const QueryLengths&) { return true; }
  static Interval run(const QueryLengths& l, const RowPlace& at) {
    return at.clipped(0, at.query < l.queries[at.batch] ? at.sizes.keys : 0);
  }
  static void cuts(const QueryLengths& l, RowCuts& cuts) { cuts.at(l.queries[cuts.batch]); }
};

inline void check_documents(const Documents& d, const char* name) {
  require(!d.queries.empty(), name, ": got none, wanted the tokens of each document");
  require(d.queries.size() == d.keys.size(), name, ": got ", d.queries.size(), " for the queries and ",
          d.keys.size(), " for the keys, wanted as many");
  for (const auto* tokens : {&d.queries, &d.keys})
    for (const int64_t count : *tokens)
      require(count >= 0 && count < kLargest, name, ": tokens: got ", count, ", wanted 0 to ", kLargest - 1);
}

// The document that holds a place, or -1 after the last.
inline int64_t document_at(const std::vector<int64_t>& tokens, int64_t place) {
  for (size_t document = 0; document < tokens.size(); ++document) {
    if (place < tokens[document]) return static_cast<int64_t>(document);
    place -= tokens[document];
  }
  return -1;
}

// The document of a row: its tokens, and where they begin among all.
struct DocumentOfRow {
  PlanSizes sizes;
  int64_t query_begin, key_begin;
  size_t number;
};
inline DocumentOfRow document_of(const Documents& d, const RowPlace& at) {
  const std::vector<int64_t>& ends = at.ends->queries;
  const auto document = std::upper_bound(ends.begin(), ends.end(), at.query) - ends.begin();
  PlanSizes sizes = at.sizes;
  sizes.queries = d.queries[document];
  sizes.keys = d.keys[document];
  return {sizes, ends[document] - sizes.queries, at.ends->keys[document] - sizes.keys,
          static_cast<size_t>(document)};
}

template <>
struct Record<Documents> : SameForAllBatches, NoStride, SameRows {
  static constexpr std::string_view name = "documents",
                                    signature = "documents(n,...) or documents(n,...;m,...)";
  static constexpr bool of_positions = false, by_head = false;
  static Documents parse(SpecText& text) {
    return text.bracketed(signature, [&] {
      Documents d{text.integers(), {}};
      d.keys = text.take(';') ? text.integers() : d.queries;
      return d;
    });
  }
  static void print(std::ostream& out, const Documents& d) {
    out << "documents(";
    print_list(out, d.queries);
    if (d.keys != d.queries) {
      out << ';';
      print_list(out, d.keys);
    }
    out << ')';
  }
  static void check(Documents& d) { check_documents(d, "documents"); }
  static void fit(const Documents& d, const PlanSizes& sizes) {
    const auto fits = [](const std::vector<int64_t>& tokens, int64_t count, const char* what) {
      int64_t total = 0;
      for (const int64_t each : tokens) total += each;
      require(total == count, "documents: got ", total, " tokens for ", count, " ", what,
              ", wanted documents that fill them");
    };
    fits(d.queries, sizes.queries, "queries");
    fits(d.keys, sizes.keys, "keys");
  }
  static bool allowed(const Documents& d, const PatternPlace& at) {
    const int64_t document = document_at(d.queries, at.query);
    return document >= 0 && document == document_at(d.keys, at.key);
  }
  static RowSet row(const Documents& d, const RowPlace& at) { return at.one(run(d, at)); }
  static bool one_run(const Documents&) { return true; }
  static Interval run(const Documents& d, const RowPlace& at) {
    const DocumentOfRow document = document_of(d, at);
    return at.clipped(document.key_begin, document.key_begin + document.sizes.keys);
  }
  static void cuts(const Documents& d, RowCuts& cuts) {
    int64_t end = 0;
    for (const int64_t tokens : d.queries) cuts.at(end += tokens);
  }
};

// Its text names a function that the caller of parse_spec() gives, so parse.cc reads it.
template <>
struct Record<Predicate> : FitsAnyCall, SameForAllBatches, ManyRuns, NoStride, NoCuts, EachRowItsOwn {
  static constexpr std::string_view name = "predicate", signature = "predicate(name)";
  static constexpr bool of_positions = true, by_head = true;
  static void print(std::ostream& out, const Predicate& p) { out << "predicate(" << p.name << ')'; }
  static void check(Predicate& p) {
    const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    require(!p.name.empty() && std::all_of(p.name.begin(), p.name.end(), is_word) && p.name[0] > '9',
            "predicate: got the name \"", p.name, "\", wanted lower-case letters, digits and _");
    require(p.sees != nullptr, "predicate ", p.name, ": got no function, wanted one of (head, query, key)");
  }
  static bool allowed(const Predicate& p, const PatternPlace& at) {
    return p.sees(at.head, at.query, at.key);
  }
  // The keys among those that others leave.
  static RowSet among(const Predicate& p, const RowSet& others, const RowPlace& at) {
    RowSet set;
    for (const Interval& piece : others.plain)
      for (int64_t key = piece.begin; key < piece.end; ++key)
        if (p.sees(at.head, at.query, key)) append(set.plain, key, key + 1);
    for (const Interval& piece : others.in_class)
      for (int64_t u = piece.begin; u < piece.end; ++u)
        if (p.sees(at.head, at.query, at.residue.key(u))) append(set.in_class, u, u + 1);
    return set;
  }
  static RowSet row(const Predicate& p, const RowPlace& at) { return among(p, at.one(at.all()), at); }
};

template <class Member>
inline constexpr bool kIsJoin = requires(const Member& member) {
  member.parts;
};

}  // namespace patterns

// Calls f on every member of the pattern that is not a join, those inside within(...) included.
template <class F>
void for_each_member(const Pattern& pattern, const F& f) {
  std::visit(
      [&](const auto& member) {
        if constexpr (patterns::kIsJoin<std::remove_cvref_t<decltype(member)>>) {
          if constexpr (requires { member.documents; }) f(member.documents);
          for (const Pattern& part : member.parts) for_each_member(part, f);
        } else {
          f(member);
        }
      },
      pattern.node());
}

// Whether `test` holds of the record of some member: any_member(p, [](auto record, const auto& m) {...}).
template <class F>
bool any_member(const Pattern& pattern, const F& test) {
  bool found = false;
  for_each_member(pattern, [&](const auto& member) {
    found = found || test(patterns::Record<std::remove_cvref_t<decltype(member)>>{}, member);
  });
  return found;
}

}  // namespace fovea
