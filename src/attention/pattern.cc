// Patterns as values: joining, comparing, printing, and the definition of who sees whom. What each kind is
// is in pattern_records.h.
#include "attention/pattern.h"

#include <algorithm>
#include <ostream>
#include <sstream>
#include <utility>

#include "attention/match.h"
#include "attention/pattern_records.h"
#include "base/rng.h"

namespace fovea {
namespace {

using namespace patterns;

template <class Member>
using RecordOf = Record<std::remove_cvref_t<Member>>;

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
  const auto all = [](const auto& join) {
    return std::all_of(join.parts.begin(), join.parts.end(), of_positions);
  };
  return std::visit(Match{
                        [](const Within&) { return false; },
                        [&](const AnyOf& any) { return all(any); },
                        [&](const AllOf& both) { return all(both); },
                        [&](const PerHead& per) { return all(per); },
                        [](const auto& member) { return RecordOf<decltype(member)>::of_positions; },
                    },
                    pattern.node());
}

void check(Node& node) {
  std::visit(Match{
                 [](Within& w) {
                   check_documents(w.documents, "within");
                   require(w.parts.size() == 1 || w.parts.size() == w.documents.queries.size(),
                           "within: got ", w.parts.size(), " patterns for ", w.documents.queries.size(),
                           " documents, wanted one for all or one for each");
                   require(std::all_of(w.parts.begin(), w.parts.end(), of_positions),
                           "within: wanted patterns of positions: no layout, lengths, query_lengths, "
                           "documents or within inside");
                 },
                 [](AnyOf& any) { flatten(any); },
                 [](AllOf& all) { flatten(all); },
                 [](PerHead& per) {
                   require(!per.parts.empty(), "heads: got no pattern, wanted one for each head");
                 },
                 [](auto& member) { RecordOf<decltype(member)>::check(member); },
             },
             node);
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
  std::visit(Match{
                 [&](const Within& w) {
                   out << "within(";
                   print_list(out, w.documents.queries);
                   for (const Pattern& part : w.parts) {
                     out << "; ";
                     print(out, part);
                   }
                   out << ')';
                 },
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
                 [&](const auto& member) { RecordOf<decltype(member)>::print(out, member); },
             },
             pattern.node());
}

}  // namespace

const Pattern& patterns::Within::part(size_t document) const {
  return parts[parts.size() == 1 ? 0 : document];
}

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
        else if constexpr (kIsJoin<Member>)
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
Pattern global_keys(std::vector<TokenRange> tokens) {
  return Pattern(GlobalKeys{std::move(tokens)});
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
Pattern within(std::vector<int64_t> tokens, std::vector<Pattern> patterns) {
  Within node{{tokens, tokens}, std::move(patterns)};
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
  chosen.reserve(static_cast<size_t>(count));
  constexpr int64_t kFew = 32;
  if (count <= kFew) {
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
  std::vector<bool> drawn(static_cast<size_t>(key_blocks));
  for (int64_t last = key_blocks - count; last < key_blocks; ++last) {
    const int64_t draw = rng.below(last + 1);
    drawn[static_cast<size_t>(drawn[static_cast<size_t>(draw)] ? last : draw)] = true;
  }
  for (int64_t block = 0; block < key_blocks; ++block)
    if (drawn[static_cast<size_t>(block)]) chosen.push_back(block);
  return chosen;
}

int64_t key_place(const Pattern& pattern, int64_t key) {
  bool found = false;
  int64_t place = key;
  for_each_member(pattern, [&](const auto& member) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, Documents>) {
      if (std::exchange(found, true)) return;
      for (const int64_t tokens : member.keys) {
        if (place < tokens) return;
        place -= tokens;
      }
    }
  });
  return place;
}

bool allowed(const Pattern& pattern, const PatternPlace& at) {
  return std::visit(
      Match{
          [&](const Within& w) {
            const Documents& d = w.documents;
            const int64_t document = document_at(d.queries, at.query);
            if (document < 0 || document != document_at(d.keys, at.key)) return false;
            PatternPlace inside = at;
            inside.queries = d.queries[document];
            inside.keys = d.keys[document];
            for (int64_t before = 0; before < document; ++before) {
              inside.query -= d.queries[before];
              inside.key -= d.keys[before];
            }
            return allowed(w.part(static_cast<size_t>(document)), inside);
          },
          [&](const AnyOf& any) {
            return std::any_of(any.parts.begin(), any.parts.end(),
                               [&](const Pattern& part) { return allowed(part, at); });
          },
          [&](const AllOf& all) {
            return std::all_of(all.parts.begin(), all.parts.end(),
                               [&](const Pattern& part) { return allowed(part, at); });
          },
          [&](const PerHead& per) { return allowed(per.parts[at.head % per.parts.size()], at); },
          [&](const auto& member) { return RecordOf<decltype(member)>::allowed(member, at); },
      },
      pattern.node());
}

}  // namespace fovea
