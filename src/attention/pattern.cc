#include "attention/pattern.h"

#include <algorithm>
#include <ostream>
#include <sstream>

#include "attention/match.h"
#include "base/error.h"
#include "base/rng.h"

namespace fovea {
namespace {

using namespace patterns;

constexpr int64_t kLargest = int64_t{1} << 31;  // positions and their products stay far from overflow

void require_range(int64_t value, int64_t smallest, const char* what) {
  require(value >= smallest && value < kLargest, what, ": got ", value, ", wanted ", smallest, " to ",
          kLargest - 1);
}

void require_each(const std::vector<int64_t>& values, const char* what) {
  for (const int64_t value : values) require_range(value, 0, what);
}

// Sorts and joins what touches, so that equal sets of tokens are equal values.
void normalise(std::vector<TokenRange>& tokens) {
  std::sort(tokens.begin(), tokens.end(), [](TokenRange a, TokenRange b) { return a.first < b.first; });
  std::vector<TokenRange> joined;
  for (const TokenRange& range : tokens) {
    if (!joined.empty() && range.first <= joined.back().last + 1)
      joined.back().last = std::max(joined.back().last, range.last);
    else
      joined.push_back(range);
  }
  tokens = std::move(joined);
}

// a | (b | c) is a | b | c: one form for one meaning, so that printing and parsing agree.
template <class Join>
void flatten(Join& join) {
  std::vector<Pattern> parts;
  for (Pattern& part : join.parts) {
    if (const Join* inner = std::get_if<Join>(&part.node()))
      parts.insert(parts.end(), inner->parts.begin(), inner->parts.end());
    else
      parts.push_back(std::move(part));
  }
  join.parts = std::move(parts);
  require(!join.parts.empty(), "a joined pattern of no parts, wanted at least one");
}

// Whether all members speak of positions alone, which mean the same in every document.
bool of_positions(const Pattern& pattern) {
  return std::visit(
      [](const auto& member) {
        using Member = std::remove_cvref_t<decltype(member)>;
        if constexpr (std::is_same_v<Member, Within>)
          return false;
        else if constexpr (requires { member.parts; })
          return std::all_of(member.parts.begin(), member.parts.end(), of_positions);
        else
          return !std::is_same_v<Member, Layout> && !std::is_same_v<Member, Lengths> &&
                 !std::is_same_v<Member, QueryLengths> && !std::is_same_v<Member, Documents>;
      },
      pattern.node());
}

void check_documents(const Documents& d, const char* name) {
  require(!d.queries.empty(), name, ": got none, wanted the tokens of each document");
  require(d.queries.size() == d.keys.size(), name, ": got ", d.queries.size(), " for the queries and ",
          d.keys.size(), " for the keys, wanted as many");
  for (const auto* tokens : {&d.queries, &d.keys})
    for (const int64_t count : *tokens)
      require(count >= 0 && count < kLargest, name, ": tokens: got ", count, ", wanted 0 to ", kLargest - 1);
}

void check(Node& node) {
  std::visit(
      Match{
          [](Full&) {},
          [](Causal&) {},
          [](Window& w) {
            require_range(w.left, 0, "window: keys to the left (the window includes the position itself)");
            require_range(w.right, 0, "window: keys to the right (the window includes the position itself)");
            require_range(w.dilation, 1, "window: dilation (1 is a plain window)");
          },
          [](Strided& s) { require_range(s.stride, 1, "strided: stride"); },
          [](Fixed& f) {
            require_range(f.stride, 1, "fixed: stride");
            require(f.summary >= 0 && f.summary <= f.stride, "fixed: summary keys of a block: got ",
                    f.summary, ", wanted 0 to the stride, ", f.stride);
          },
          [](BlockWindow& w) {
            require_range(w.block, 1, "block_window: block");
            require_range(w.left, 0, "block_window: blocks to the left");
            require_range(w.right, 0, "block_window: blocks to the right");
          },
          [](Global& g) {
            require(!g.tokens.empty(), "global: got no token, wanted at least one, such as global(0)");
            for (const TokenRange& range : g.tokens) {
              require_range(range.first, 0, "global: token");
              require_range(range.last, 0, "global: token");
              require(range.first <= range.last, "global: got the range ", range.first, "..", range.last,
                      ", wanted its smaller end first");
            }
            normalise(g.tokens);
          },
          [](RandomBlocks& r) {
            require_range(r.block, 1, "random_blocks: block");
            require_range(r.count, 1, "random_blocks: blocks for each query block");
            require_range(r.seed, 0, "random_blocks: seed");
          },
          [](Layout& l) {
            require_range(l.block, 1, "layout: block");
            require(!l.rows.empty(), "layout: got no row, wanted one of 0 and 1 for each query block");
            for (const std::string& row : l.rows) {
              require(!row.empty() && row.find_first_not_of("01") == std::string::npos,
                      "layout: got the row \"", row, "\", wanted only 0 and 1");
              require(row.size() == l.rows[0].size(), "layout: got a row of ", row.size(),
                      " blocks after one of ", l.rows[0].size(), ", wanted rows of one length");
            }
          },
          [](Lengths& l) {
            require(!l.keys.empty(), "lengths: got none, wanted one for each sequence of the batch");
            require_each(l.keys, "lengths: keys of a sequence");
          },
          [](QueryLengths& l) {
            require(!l.queries.empty(), "query_lengths: got none, wanted one for each sequence of the batch");
            require_each(l.queries, "query_lengths: queries of a sequence");
          },
          [](Documents& d) { check_documents(d, "documents"); },
          [](Within& w) {
            check_documents(w.documents, "within");
            require(
                w.parts.size() == 1 && of_positions(w.parts[0]),
                "within: wanted one pattern of positions: no layout, lengths, query_lengths, documents or "
                "within inside");
          },
          [](Predicate& p) {
            const auto is_word = [](char c) {
              return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
            };
            require(!p.name.empty() && std::all_of(p.name.begin(), p.name.end(), is_word) && p.name[0] > '9',
                    "predicate: got the name \"", p.name, "\", wanted lower-case letters, digits and _");
            require(p.sees != nullptr, "predicate ", p.name,
                    ": got no function, wanted one of (head, query, key)");
          },
          [](AnyOf& any) { flatten(any); },
          [](AllOf& all) { flatten(all); },
          [](PerHead& per) {
            require(!per.parts.empty(), "heads: got no pattern, wanted one for each head");
          },
      },
      node);
}

const char* align_suffix(Align align) {
  return align == Align::top_left ? ",top_left" : "";
}

template <class Values>
void print_list(std::ostream& out, const Values& values) {
  for (size_t i = 0; i < values.size(); ++i) out << (i ? "," : "") << values[i];
}

void print(std::ostream& out, const Pattern& pattern);

void print_joined(std::ostream& out, const std::vector<Pattern>& parts, const char* sign) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out << sign;
    // & binds tighter than |, so only an | inside an & needs brackets.
    const bool brackets = sign[1] == '&' && std::holds_alternative<AnyOf>(parts[i].node());
    out << (brackets ? "(" : "");
    print(out, parts[i]);
    out << (brackets ? ")" : "");
  }
}

void print(std::ostream& out, const Pattern& pattern) {
  std::visit(
      Match{
          [&](const Full&) { out << "full"; },
          [&](const Causal& c) { out << (c.align == Align::top_left ? "causal(top_left)" : "causal"); },
          [&](const Window& w) {
            out << "window(" << w.left << ',' << w.right;
            if (w.dilation != 1) out << ',' << w.dilation;
            out << align_suffix(w.align) << ')';
          },
          [&](const Strided& s) { out << "strided(" << s.stride << align_suffix(s.align) << ')'; },
          [&](const Fixed& f) { out << "fixed(" << f.stride << ',' << f.summary << ')'; },
          [&](const BlockWindow& w) {
            out << "block_window(" << w.block << ',' << w.left << ',' << w.right << ')';
          },
          [&](const Global& g) {
            out << "global(";
            for (size_t i = 0; i < g.tokens.size(); ++i) {
              out << (i ? "," : "") << g.tokens[i].first;
              if (g.tokens[i].last != g.tokens[i].first) out << ".." << g.tokens[i].last;
            }
            out << ')';
          },
          [&](const RandomBlocks& r) {
            out << "random_blocks(" << r.block << ',' << r.count << ',' << r.seed << ')';
          },
          [&](const Layout& l) {
            out << "layout(" << l.block << ';';
            print_list(out, l.rows);
            out << ')';
          },
          [&](const Lengths& l) {
            out << "lengths(";
            print_list(out, l.keys);
            out << ')';
          },
          [&](const QueryLengths& l) {
            out << "query_lengths(";
            print_list(out, l.queries);
            out << ')';
          },
          [&](const Documents& d) {
            out << "documents(";
            print_list(out, d.queries);
            if (d.keys != d.queries) {
              out << ';';
              print_list(out, d.keys);
            }
            out << ')';
          },
          [&](const Within& w) {
            out << "within(";
            print_list(out, w.documents.queries);
            out << "; ";
            print(out, w.parts[0]);
            out << ')';
          },
          [&](const Predicate& p) { out << "predicate(" << p.name << ')'; },
          [&](const AnyOf& any) { print_joined(out, any.parts, " | "); },
          [&](const AllOf& all) { print_joined(out, all.parts, " & "); },
          [&](const PerHead& per) {
            out << "heads(";
            for (size_t i = 0; i < per.parts.size(); ++i) {
              out << (i ? "; " : "");
              print(out, per.parts[i]);
            }
            out << ')';
          },
      },
      pattern.node());
}

int64_t floor_div(int64_t a, int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

int64_t position(const PatternPlace& at, Align align = Align::bottom_right) {
  return align == Align::top_left ? at.query : at.query + at.keys - at.queries;
}

bool covers(const std::vector<TokenRange>& tokens, int64_t position) {
  return std::any_of(tokens.begin(), tokens.end(), [&](const TokenRange& range) {
    return range.first <= position && position <= range.last;
  });
}

// The document that holds a place, or -1 behind the last.
int64_t document_of(const std::vector<int64_t>& tokens, int64_t place) {
  for (size_t document = 0; document < tokens.size(); ++document) {
    if (place < tokens[document]) return static_cast<int64_t>(document);
    place -= tokens[document];
  }
  return -1;
}

}  // namespace

Pattern::Pattern(Node node) : node_(std::move(node)) {
  check(node_);
}

bool operator==(const Pattern& a, const Pattern& b) {
  if (a.node_.index() != b.node_.index()) return false;
  return std::visit(
      [&](const auto& left) {
        using Member = std::remove_cvref_t<decltype(left)>;
        const auto& right = std::get<Member>(b.node_);
        if constexpr (std::is_same_v<Member, Within>)
          return left.documents == right.documents && left.parts == right.parts;
        else if constexpr (requires { left.parts; })
          return left.parts == right.parts;
        else
          return left == right;
      },
      a.node_);
}

Pattern full() {
  return Pattern();
}
Pattern causal(Align align) {
  return Pattern(Causal{align});
}
Pattern window(int64_t left, int64_t right, int64_t dilation, Align align) {
  return Pattern(Window{left, right, dilation, align});
}
Pattern strided(int64_t stride, Align align) {
  return Pattern(Strided{stride, align});
}
Pattern fixed(int64_t stride, int64_t summary) {
  return Pattern(Fixed{stride, summary});
}
Pattern block_window(int64_t block, int64_t left, int64_t right) {
  return Pattern(BlockWindow{block, left, right});
}
Pattern global(std::vector<int64_t> tokens) {
  Global node;
  for (const int64_t token : tokens) node.tokens.push_back({token, token});
  return Pattern(std::move(node));
}
Pattern global_range(int64_t first, int64_t last) {
  return Pattern(Global{{{first, last}}});
}
Pattern random_blocks(int64_t block, int64_t count, int64_t seed) {
  return Pattern(RandomBlocks{block, count, seed});
}
Pattern layout(int64_t block, std::vector<std::string> rows) {
  return Pattern(Layout{block, std::move(rows)});
}
Pattern lengths(std::vector<int64_t> keys) {
  return Pattern(Lengths{std::move(keys)});
}
Pattern query_lengths(std::vector<int64_t> queries) {
  return Pattern(QueryLengths{std::move(queries)});
}
Pattern documents(std::vector<int64_t> tokens) {
  return Pattern(Documents{tokens, tokens});
}
Pattern documents(std::vector<int64_t> queries, std::vector<int64_t> keys) {
  return Pattern(Documents{std::move(queries), std::move(keys)});
}
Pattern within(std::vector<int64_t> tokens, Pattern pattern) {
  Within node{{tokens, tokens}, {}};
  node.parts.push_back(std::move(pattern));
  return Pattern(std::move(node));
}
Pattern predicate(std::string name, std::function<bool(int64_t, int64_t, int64_t)> sees) {
  return Pattern(Predicate{std::move(name), std::move(sees)});
}
Pattern heads(std::vector<Pattern> parts) {
  return Pattern(PerHead{std::move(parts)});
}

Pattern operator|(Pattern a, Pattern b) {
  AnyOf any;
  any.parts.push_back(std::move(a));
  any.parts.push_back(std::move(b));
  return Pattern(std::move(any));
}

Pattern operator&(Pattern a, Pattern b) {
  AllOf all;
  all.parts.push_back(std::move(a));
  all.parts.push_back(std::move(b));
  return Pattern(std::move(all));
}

std::string to_string(const Pattern& pattern) {
  std::ostringstream out;
  print(out, pattern);
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const Pattern& pattern) {
  print(out, pattern);
  return out;
}

std::vector<int64_t> random_choice(const RandomBlocks& random, int64_t position_block, int64_t key_blocks) {
  const int64_t count = std::min(random.count, key_blocks);
  Rng rng = Rng(static_cast<uint64_t>(random.seed)).split(static_cast<uint64_t>(position_block));
  // Floyd's sampling: count draws, no repetition, every set as likely as any other.
  std::vector<int64_t> chosen;
  for (int64_t last = key_blocks - count; last < key_blocks; ++last) {
    const int64_t draw = rng.below(last + 1);
    const auto place = std::lower_bound(chosen.begin(), chosen.end(), draw);
    if (place != chosen.end() && *place == draw)
      chosen.push_back(last);  // larger than all so far
    else
      chosen.insert(place, draw);
  }
  return chosen;
}

bool allowed(const Pattern& pattern, const PatternPlace& at) {
  return std::visit(
      Match{
          [&](const Full&) { return true; },
          [&](const Causal& c) { return at.key <= position(at, c.align); },
          [&](const Window& w) {
            const int64_t distance = at.key - position(at, w.align);
            return distance % w.dilation == 0 && distance >= -w.left * w.dilation &&
                   distance <= w.right * w.dilation;
          },
          [&](const Strided& s) { return (at.key - position(at, s.align)) % s.stride == 0; },
          [&](const Fixed& f) {
            return floor_div(position(at), f.stride) == at.key / f.stride ||
                   at.key % f.stride >= f.stride - f.summary;
          },
          [&](const BlockWindow& w) {
            const int64_t distance = at.key / w.block - floor_div(position(at), w.block);
            return -w.left <= distance && distance <= w.right;
          },
          [&](const Global& g) { return covers(g.tokens, position(at)) || covers(g.tokens, at.key); },
          [&](const RandomBlocks& r) {
            const auto chosen =
                random_choice(r, floor_div(position(at), r.block), (at.keys + r.block - 1) / r.block);
            return std::binary_search(chosen.begin(), chosen.end(), at.key / r.block);
          },
          [&](const Layout& l) { return l.rows.at(at.query / l.block).at(at.key / l.block) == '1'; },
          [&](const Lengths& l) { return at.key < l.keys.at(at.batch); },
          [&](const QueryLengths& l) { return at.query < l.queries.at(at.batch); },
          [&](const Documents& d) {
            const int64_t document = document_of(d.queries, at.query);
            return document >= 0 && document == document_of(d.keys, at.key);
          },
          [&](const Within& w) {
            const Documents& d = w.documents;
            const int64_t document = document_of(d.queries, at.query);
            if (document < 0 || document != document_of(d.keys, at.key)) return false;
            PatternPlace inside = at;
            inside.queries = d.queries[document];
            inside.keys = d.keys[document];
            for (int64_t before = 0; before < document; ++before) {
              inside.query -= d.queries[before];
              inside.key -= d.keys[before];
            }
            return allowed(w.parts[0], inside);
          },
          [&](const Predicate& p) { return p.sees(at.head, at.query, at.key); },
          [&](const AnyOf& any) {
            return std::any_of(any.parts.begin(), any.parts.end(),
                               [&](const Pattern& part) { return allowed(part, at); });
          },
          [&](const AllOf& all) {
            return std::all_of(all.parts.begin(), all.parts.end(),
                               [&](const Pattern& part) { return allowed(part, at); });
          },
          [&](const PerHead& per) { return allowed(per.parts[at.head % per.parts.size()], at); },
      },
      pattern.node());
}

}  // namespace fovea
