#include "attention/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/error_of.h"
#include "base/rng.h"

namespace fovea {
namespace {

using testing::HasSubstr;

std::string parse_error(std::string_view text, const PredicateTable& predicates = {}) {
  return error_of([&] { parse_spec(text, predicates); });
}

TEST(Spec, EveryAxisHasADefault) {
  EXPECT_EQ(to_string(AttentionSpec{}), "scaled_dot / full / soft");
  EXPECT_EQ(parse_spec("scaled_dot"), AttentionSpec{});
  EXPECT_EQ(parse_spec("dot / causal"), (AttentionSpec{.score = dot(), .pattern = causal()}));
}

TEST(Spec, ReadsLikeTheMathematics) {
  const AttentionSpec spec{
      .score = scaled_dot(), .pattern = causal() & window(256, 0), .selection = soft({.dropout = 0.1f})};
  EXPECT_EQ(to_string(spec), "scaled_dot / causal & window(256,0) / soft(0.1)");
  EXPECT_EQ(parse_spec("scaled_dot / window(256,256)|global(0) / soft"),
            (AttentionSpec{.pattern = window(256, 256) | global({0})}));
}

TEST(Spec, PrintsWhatItParses) {
  const PredicateTable predicates{{"even", [](int64_t, int64_t, int64_t key) { return key % 2 == 0; }}};
  for (const char* text : {
           "dot / full / hard",
           "scaled_dot(8) / causal(top_left) / gumbel(0.5)",
           "cosine(0.07) + soft_cap(30) + alibi + bias + relative(32,128) + gaussian(2.5) + sink / full / "
           "soft",
           "bilinear + relative(16,64,one_sided) / window(3,2,4,top_left) / gumbel(1,straight_through)",
           "additive / strided(7) & causal | fixed(8,2) / argmax",
           "concat / (window(1,1) | global(0,3..9,11)) & lengths(4,0,7) / top_k(5)",
           "dot / block_window(64,1,1) | random_blocks(64,3,7) / sparsemax",
           "dot / layout(16;110,011,001) & query_lengths(3,2) / sigmoid",
           "dot / documents(3,4,5) & documents(1,2;3,4) / soft",
           "dot / within(3,4,5; window(1,1) | global(0)) & causal / soft",
           "dot / within(3,4; window(1,1) | global_keys(0,2..3); full) / soft",
           "dot / heads(causal; window(4,0) | strided(8,top_left); full) & causal / soft",
           "dot / predicate(even) / soft(1e-07)",
           "location / full / soft",
           "dot / within(3,4; window(1,1) | global(0); full) / identity",
       }) {
    EXPECT_EQ(to_string(parse_spec(text, predicates)), text);
  }
}

Pattern random_pattern(Rng& rng, int depth) {
  const auto n = [&](int64_t bound) { return rng.below(bound); };
  switch (n(depth > 0 ? 15 : 12)) {
    case 0:
      return full();
    case 1:
      return causal(n(2) ? Align::top_left : Align::bottom_right);
    case 2:
      return window(n(9), n(9), 1 + n(3), n(2) ? Align::top_left : Align::bottom_right);
    case 3:
      return strided(1 + n(9), n(2) ? Align::top_left : Align::bottom_right);
    case 4:
      return fixed(9, n(10));
    case 5:
      return block_window(1 + n(99), n(3), n(3));
    case 6:
      return n(2) ? global({n(9), n(99), n(9)}) : global_keys({{n(9), 9 + n(99)}, {n(9), 9}});
    case 7:
      return random_blocks(1 + n(99), 1 + n(3), n(1000));
    case 8:
      return layout(1 + n(9), {"01", "11"});
    case 9:
      return lengths({n(9), n(9)});
    case 10:
      return query_lengths({n(9)});
    case 11:
      return documents({n(9), n(9)});
    case 12:
      return random_pattern(rng, depth - 1) | random_pattern(rng, depth - 1);
    case 13:
      return random_pattern(rng, depth - 1) & random_pattern(rng, depth - 1);
    default:
      return heads({random_pattern(rng, depth - 1), random_pattern(rng, depth - 1)});
  }
}

TEST(Spec, RandomPatternsSurviveTheRoundTrip) {
  Rng rng(5);
  for (int i = 0; i < 5000; ++i) {
    const Pattern pattern = random_pattern(rng, 4);
    ASSERT_EQ(parse_pattern(to_string(pattern)), pattern) << to_string(pattern);
  }
}

TEST(Spec, SpacesAreFree) {
  EXPECT_EQ(parse_spec("  scaled_dot/window( 2 , 3 )|global( 0 .. 4)/ soft "),
            parse_spec("scaled_dot / window(2,3) | global(0..4) / soft"));
}

TEST(Spec, ErrorsPointAtTheColumn) {
  EXPECT_EQ(parse_error("scaled_dot / widow(1,2) / soft"),
            "attention: unknown pattern \"widow\" at column 14: did you mean \"window\"?");
  EXPECT_EQ(parse_error("scalddot"),
            "attention: unknown score \"scalddot\" at column 1: did you mean \"scaled_dot\"?");
  EXPECT_EQ(parse_error("dot / full / sofft"),
            "attention: unknown selection \"sofft\" at column 14: did you mean \"soft\"?");
  EXPECT_EQ(parse_error("dot + alibbi"),
            "attention: unknown term \"alibbi\" at column 7: did you mean \"alibi\"?");
  EXPECT_THAT(parse_error("xyzxyz"), HasSubstr("at column 1: wanted one of dot scaled_dot"));
  EXPECT_EQ(parse_error("dot / window(1"), "attention: the text ends at column 15: wanted ','");
  EXPECT_EQ(parse_error("dot / window(1,2"),
            "attention: the text ends at column 17: wanted ',' or ')': "
            "window(left,right[,dilation][,top_left|bottom_right])");
  EXPECT_EQ(parse_error("dot / full ) "),
            "attention: unexpected ')' at column 12: wanted '+', '/' or the end");
  EXPECT_EQ(parse_error(""), "attention: the text ends at column 1: wanted score");
  EXPECT_EQ(parse_error("dot / window(a,2)"),
            "attention: unexpected 'a' at column 14: wanted a whole number");
  EXPECT_EQ(parse_error("dot / \x01"), "attention: unexpected '\\x01' at column 7: wanted pattern");
  EXPECT_THAT(parse_error("dot / window(99999999999999999999,2)"),
              HasSubstr("a number too large at column 14"));
  EXPECT_THAT(parse_error("dot + alibi + alibi"), HasSubstr("\"alibi\" a second time at column 15"));
  EXPECT_THAT(parse_error("dot / full / top_k"), HasSubstr("at column 19: wanted '('"));
}

TEST(Spec, EveryWrongNumberIsOneErrorThatSaysWhatWasGotAndWanted) {
  EXPECT_EQ(
      parse_error("dot / window(-1,2)"),
      "attention: at column 7: window: keys to the left (the window includes the position itself): got -1, "
      "wanted 0 to 2147483647");
  EXPECT_THAT(error_of([] { window(0, -2); }), HasSubstr("got -2, wanted 0"));
  EXPECT_THAT(error_of([] { window(0, 2, 0); }),
              HasSubstr("dilation (1 is a plain window): got 0, wanted 1"));
  EXPECT_THAT(error_of([] { strided(0); }), HasSubstr("stride: got 0, wanted 1"));
  EXPECT_THAT(error_of([] { fixed(4, 5); }), HasSubstr("got 5, wanted 0 to the stride, 4"));
  EXPECT_THAT(error_of([] { global({}); }), HasSubstr("got no token"));
  EXPECT_THAT(error_of([] { global({-1}); }), HasSubstr("got -1"));
  EXPECT_THAT(error_of([] { global_keys({}); }), HasSubstr("global_keys: got no token"));
  EXPECT_THAT(error_of([] { layout(4, {"01", "1"}); }), HasSubstr("rows of one length"));
  EXPECT_THAT(error_of([] { layout(4, {"02"}); }), HasSubstr("wanted only 0 and 1"));
  EXPECT_THAT(error_of([] {
                documents({1, 2}, {3});
              }),
              HasSubstr("got 2 for the queries and 1 for the keys"));
  EXPECT_THAT(error_of([] { within({}, full()); }), HasSubstr("within: got none"));
  EXPECT_THAT(error_of([] { within({3}, causal() & documents({3})); }),
              HasSubstr("wanted patterns of positions"));
  EXPECT_THAT(error_of([] { scaled_dot(-1); }), HasSubstr("got -1, wanted a number above 0"));
  EXPECT_THAT(error_of([] { soft({.dropout = 1}); }), HasSubstr("got 1, wanted 0 or more and less than 1"));
  EXPECT_THAT(error_of([] { top_k(0); }), HasSubstr("got 0 keys"));
  EXPECT_THAT(error_of([] { gumbel({.tau = 0}); }), HasSubstr("tau: got 0"));
  EXPECT_THAT(parse_error("dot + sink / full / sparsemax"), HasSubstr("wanted soft or top_k"));
  EXPECT_THAT(parse_error("dot + relative(6)"), HasSubstr("got 6 buckets"));
  EXPECT_THAT(parse_error("dot / full / soft(1.5)"), HasSubstr("at column 14: soft: dropout: got 1.5"));
}

TEST(Spec, AnArgumentTooManyIsRefusedWithTheExpectedOnes) {
  EXPECT_EQ(
      parse_error("dot / window(1,2,3,4,5)"),
      "attention: unexpected '4' at column 20: wanted window(left,right[,dilation][,top_left|bottom_right])");
  EXPECT_THAT(parse_error("dot / window(1,2,3,top_left,5)"),
              HasSubstr("wanted ',' or ')': window(left,right[,dilation][,top_left|bottom_right])"));
  EXPECT_THAT(parse_error("dot / strided(3,top_left,1)"),
              HasSubstr("strided(stride[,top_left|bottom_right])"));
  EXPECT_THAT(parse_error("dot / fixed(3,1,1)"), HasSubstr("fixed(stride,summary)"));
  EXPECT_THAT(parse_error("dot / block_window(3,1,1,1)"), HasSubstr("block_window(block,left,right)"));
  EXPECT_THAT(parse_error("dot / random_blocks(3,1,1,1)"), HasSubstr("random_blocks(block,count[,seed])"));
  EXPECT_THAT(parse_error("dot / causal(top_left,1)"), HasSubstr("causal or causal(top_left)"));
  EXPECT_THAT(parse_error("dot / documents(1;2;3)"), HasSubstr("documents(n,...) or documents(n,...;m,...)"));
  EXPECT_THAT(parse_error("dot / within(1,2; causal; causal; full)"),
              HasSubstr("got 3 patterns for 2 documents"));
  EXPECT_THAT(parse_error("dot + relative(32,128,64)"),
              HasSubstr("wanted relative(buckets[,max_distance][,one_sided|two_sided])"));
  EXPECT_THAT(parse_error("dot + relative(32,128,one_sided,1)"),
              HasSubstr("relative(buckets[,max_distance][,one_sided|two_sided])"));
  EXPECT_THAT(parse_error("dot + soft_cap(1,2)"), HasSubstr("soft_cap(c)"));
  EXPECT_THAT(parse_error("dot / full / top_k(1,2)"), HasSubstr("top_k(k)"));
  EXPECT_THAT(parse_error("dot / full / gumbel(1,relaxed,1)"),
              HasSubstr("gumbel(tau[,straight_through|relaxed])"));
  for (const char* text : {"dot(2)", "bilinear(1)", "dot + alibi(2)", "dot + sink(1)", "dot / full(3)",
                           "dot / full / hard(1)", "dot / full / sparsemax(2)"})
    EXPECT_THAT(parse_error(text), HasSubstr("wanted no arguments")) << text;
}

TEST(Spec, PredicatesAreNamedByTheCaller) {
  const PredicateTable predicates{{"even_keys", [](int64_t, int64_t, int64_t key) { return key % 2 == 0; }}};
  EXPECT_THAT(parse_error("dot / predicate(evenkeys)", predicates), HasSubstr("did you mean \"even_keys\"?"));
  EXPECT_THAT(parse_error("dot / predicate(any)"), HasSubstr("give it to parse_spec"));
}

TEST(Spec, DeepBracketsAreRefused) {
  EXPECT_THAT(parse_error("dot / " + std::string(100000, '(')),
              HasSubstr("more than 32 open brackets at column"));
  std::string deep = "dot / ";
  for (int i = 0; i < 10000; ++i) deep += "heads(";
  EXPECT_THAT(parse_error(deep), HasSubstr("more than 32 open brackets"));
}

// The table of T5's own function for 32 buckets, distance 128.
TEST(RelativeBuckets, AreThoseOfT5) {
  const RelativeBuckets two{32, 128, true}, one{32, 128, false};
  const int64_t distances[] = {0, 1, -1, 7, 8, -8, 11, 12, -64, 127, 128, -1000};
  const int64_t wanted[] = {0, 17, 1, 23, 24, 8, 24, 25, 14, 31, 31, 15};
  for (size_t i = 0; i < std::size(distances); ++i)
    EXPECT_EQ(relative_bucket(two, distances[i]), wanted[i]) << distances[i];
  EXPECT_EQ(relative_bucket(one, 5), 0);
  EXPECT_EQ(relative_bucket(one, -15), 15);
  EXPECT_EQ(relative_bucket(one, -16), 16);
  EXPECT_EQ(relative_bucket(one, -500), 31);
}

}  // namespace
}  // namespace fovea
