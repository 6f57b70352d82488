// The grammar of the built-in corpus: its words in Chinese and English, and how sentences are made from them.
#include "data/example_corpus.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "base/rng.h"

namespace fovea::data {
namespace {

using std::string;
using std::string_view;

// What a noun names, and so which verbs take it.
enum Kind : unsigned {
  kPerson = 1,
  kAnimal = 2,
  kThing = 4,
  kFood = 8,
  kDrink = 16,
  kText = 32,
  kSound = 64,
  kBeing = kPerson | kAnimal,
  kUncounted = kFood | kDrink | kSound,  // a drink is always uncounted
};

struct Noun {
  string_view zh, measure, en, plural;
  unsigned kind;
};
struct Mass {
  string_view zh, en;
  unsigned kind;
};
struct Verb {
  string_view zh, base, third, past, participle;
  unsigned takes;
  bool acts;     // can be done to a thing, so that 把 and 被 take it
  bool animals;  // an animal may do it
};
struct Adjective {
  string_view zh, en, more;
};
struct Pronoun {
  string_view zh, en, object, whose;
  bool singular;  // third person singular
};
struct Words {
  string_view zh, en;
};

constexpr Noun kNouns[] = {
    {"朋友", "个", "friend", "friends", kPerson},
    {"老师", "个", "teacher", "teachers", kPerson},
    {"学生", "个", "student", "students", kPerson},
    {"孩子", "个", "child", "children", kPerson},
    {"医生", "个", "doctor", "doctors", kPerson},
    {"邻居", "个", "neighbour", "neighbours", kPerson},
    {"猫", "只", "cat", "cats", kAnimal},
    {"狗", "只", "dog", "dogs", kAnimal},
    {"鸟", "只", "bird", "birds", kAnimal},
    {"马", "匹", "horse", "horses", kAnimal},
    {"车", "辆", "car", "cars", kThing},
    {"花", "朵", "flower", "flowers", kThing},
    {"杯子", "个", "cup", "cups", kThing},
    {"帽子", "顶", "hat", "hats", kThing},
    {"画", "幅", "picture", "pictures", kThing},
    {"钥匙", "把", "key", "keys", kThing},
    {"苹果", "个", "apple", "apples", kFood | kThing},
    {"蛋糕", "块", "cake", "cakes", kFood | kThing},
    {"鸡蛋", "个", "egg", "eggs", kFood | kThing},
    {"书", "本", "book", "books", kText | kThing},
    {"信", "封", "letter", "letters", kText | kThing},
    {"诗", "首", "poem", "poems", kText},
    {"歌", "首", "song", "songs", kSound},
};
constexpr Mass kMasses[] = {
    {"食物", "food", kFood},  {"米饭", "rice", kFood}, {"面包", "bread", kFood},  {"茶", "tea", kDrink},
    {"牛奶", "milk", kDrink}, {"水", "water", kDrink}, {"音乐", "music", kSound},
};
constexpr Verb kVerbs[] = {
    {"喜欢", "like", "likes", "liked", "liked", ~0u, false, true},
    {"爱", "love", "loves", "loved", "loved", ~0u, false, true},
    {"看见", "see", "sees", "saw", "seen", kBeing | kThing, false, true},
    {"找到", "find", "finds", "found", "found", kBeing | kThing, true, true},
    {"买", "buy", "buys", "bought", "bought", kThing | kFood | kDrink, true, false},
    {"卖", "sell", "sells", "sold", "sold", kThing | kFood, true, false},
    {"吃", "eat", "eats", "ate", "eaten", kFood, true, true},
    {"喝", "drink", "drinks", "drank", "drunk", kDrink, true, true},
    {"读", "read", "reads", "read", "read", kText, true, false},
    {"写", "write", "writes", "wrote", "written", kText, true, false},
    {"听", "hear", "hears", "heard", "heard", kSound | kAnimal, false, true},
    {"帮助", "help", "helps", "helped", "helped", kPerson, false, false},
};
constexpr Adjective kAdjectives[] = {
    {"大", "big", "bigger"},      {"小", "small", "smaller"}, {"老", "old", "older"},
    {"高", "tall", "taller"},     {"快", "fast", "faster"},   {"聪明", "clever", "cleverer"},
    {"安静", "quiet", "quieter"},
};
constexpr Words kColours[] = {{"红色", "red"},   {"蓝色", "blue"}, {"白色", "white"},
                              {"黑色", "black"}, {"旧", "old"},    {"新", "new"}};
constexpr Pronoun kPronouns[] = {
    {"我", "i", "me", "my", false},     {"你", "you", "you", "your", false},
    {"他", "he", "him", "his", true},   {"她", "she", "her", "her", true},
    {"我们", "we", "us", "our", false}, {"他们", "they", "them", "their", false},
};
constexpr Words kNumbers[] = {{"两", "two"}, {"三", "three"}, {"四", "four"}, {"五", "five"}, {"十", "ten"}};
constexpr Words kPlaces[] = {
    {"公园里", "in the park"}, {"花园里", "in the garden"}, {"厨房里", "in the kitchen"},
    {"学校", "at school"},     {"家里", "at home"},         {"图书馆", "in the library"},
    {"城里", "in the city"},   {"桥上", "on the bridge"},   {"河边", "by the river"},
};
enum class Tense { present, past, future };
struct Time {
  string_view zh, en;
  Tense tense;
};
constexpr Time kTimes[] = {
    {"每天", "every day", Tense::present},
    {"现在", "now", Tense::present},
    {"星期天", "on sundays", Tense::present},
    {"昨天", "yesterday", Tense::past},
    {"去年", "last year", Tense::past},
    {"昨天晚上", "last night", Tense::past},
    {"明天", "tomorrow", Tense::future},
    {"明年", "next year", Tense::future},
    {"明天早上", "tomorrow morning", Tense::future},
};

// One thought in both languages.
struct Pair {
  string zh, en;
};
struct NounPhrase {
  string zh, en, object;  // object: the English form behind a verb
  bool singular = true;   // third person singular
  bool first = false;     // "i": am, was
  unsigned kind = 0;
};

string join(std::initializer_list<string_view> words) {
  string text;
  for (const string_view word : words) {
    if (word.empty()) continue;
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

string_view indefinite(string_view word) {
  return string_view("aeiou").find(word.front()) != string_view::npos ? "an" : "a";
}

class Grammar {
 public:
  explicit Grammar(Rng rng) : rng_(rng) {}

  // A sentence; the deeper, the longer it tends to be.
  Pair sentence(int depth) {
    if (depth == 0) return chance(70) ? clause(0) : state(0);
    if (depth == 1)
      return chance(65) ? clause(1) : chance(50) ? question(0) : chance(50) ? moved(0) : state(1);
    if (chance(25)) return chance(50) ? question(1) : moved(1);
    if (chance(20)) return clause(2);
    return joined(depth - 2);
  }

 private:
  bool chance(int percent) { return rng_.below(100) < percent; }
  template <size_t N, class T>
  const T& pick(const T (&choices)[N]) {
    return choices[rng_.below(static_cast<int64_t>(N))];
  }
  template <size_t N, class T>
  const T& pick_kind(const T (&choices)[N], unsigned kinds) {
    while (true)
      if (const T& one = pick(choices); one.kind & kinds) return one;
  }

  NounPhrase pronoun() {
    const Pronoun& p = pick(kPronouns);
    return {string(p.zh), string(p.en), string(p.object), p.singular, p.en == "i", kPerson};
  }

  static NounPhrase noun(string zh, string en, unsigned kind, bool singular = true) {
    string object = en;
    return {std::move(zh), std::move(en), std::move(object), singular, false, kind};
  }

  // Something of one of the kinds; with depth it may own, or be told of, something else.
  NounPhrase thing(unsigned kinds, int depth) {
    if (kinds == kDrink || ((kinds & kUncounted) && chance(kinds == ~0u ? 15 : 45))) {
      const Mass& m = pick_kind(kMasses, kinds);
      return noun(string(m.zh), string(m.en), m.kind);
    }
    if ((kinds & kPerson) && chance(kinds == ~0u ? 5 : 20)) return pronoun();
    const Noun& n = pick_kind(kNouns, kinds);
    const auto same = [&](string zh, string en, bool singular = true) {
      return noun(std::move(zh), std::move(en), n.kind, singular);
    };
    if (depth > 0 && chance(55)) {
      if (chance(45)) {  // 老师的猫: the cat of the teacher
        const NounPhrase owner = thing(kPerson, depth - 1);
        if (owner.object != owner.en || owner.en == "you") return owned(n);
        return same(owner.zh + "的" + string(n.zh), join({"the", n.en, "of", owner.object}));
      }
      return chance(50) || !(n.kind & kBeing) ? seen_by(n, depth - 1) : doing(n, depth - 1);
    }
    switch (rng_.below(6)) {
      case 0:
        return same(string(n.zh), join({"the", n.en}));
      case 1:
        return same("一" + string(n.measure) + string(n.zh), join({indefinite(n.en), n.en}));
      case 2: {
        const Words& number = pick(kNumbers);
        return same(string(number.zh) + string(n.measure) + string(n.zh), join({number.en, n.plural}), false);
      }
      case 3: {
        const Adjective& a = pick(kAdjectives);
        const Words colour = n.kind & kBeing ? Words{a.zh, a.en} : pick(kColours);
        return same("一" + string(n.measure) + string(colour.zh) + "的" + string(n.zh),
                    join({indefinite(colour.en), colour.en, n.en}));
      }
      case 4:
        return same("这" + string(n.measure) + string(n.zh), join({"this", n.en}));
      default:
        return owned(n);
    }
  }

  NounPhrase owned(const Noun& n) {
    const Pronoun& p = pick(kPronouns);
    return noun(string(p.zh) + "的" + string(n.zh), join({p.whose, n.en}), n.kind);
  }

  // 我昨天买的书: the book that i bought yesterday
  NounPhrase seen_by(const Noun& n, int depth) {
    const Verb& verb = verb_for(n.kind);
    const NounPhrase who = thing(kPerson, depth);
    const Time* time = chance(50) ? &pick(kTimes) : nullptr;
    const Tense tense = time ? time->tense : Tense::present;
    return noun(
        who.zh + (time ? string(time->zh) : "") + string(tense == Tense::future ? "会" : "") +
            string(verb.zh) + "的" + string(n.zh),
        join({"the", n.en, "that", who.en, verb_phrase(verb, who, tense, false), time ? time->en : ""}),
        n.kind);
  }

  // 喜欢音乐的学生: the student who likes music
  NounPhrase doing(const Noun& n, int depth) {
    const Verb& verb = verb_by(n.kind);
    const NounPhrase what = thing(verb.takes, depth);
    return noun(string(verb.zh) + what.zh + "的" + string(n.zh),
                join({"the", n.en, n.kind & kPerson ? "who" : "that", verb.third, what.object}), n.kind);
  }

  const Verb& verb_for(unsigned kind) {
    while (true)
      if (const Verb& verb = pick(kVerbs); verb.takes & kind) return verb;
  }

  const Verb& verb_by(unsigned kind) {
    while (true)
      if (const Verb& verb = pick(kVerbs); verb.animals || (kind & kPerson)) return verb;
  }

  static string verb_phrase(const Verb& verb, const NounPhrase& who, Tense tense, bool negated) {
    if (tense == Tense::future) return join({"will", negated ? "not" : "", verb.base});
    if (negated) return join({helper(who, tense), "not", verb.base});
    return string(tense == Tense::past ? verb.past : who.singular ? verb.third : verb.base);
  }
  static string_view helper(const NounPhrase& who, Tense tense) {
    return tense == Tense::future ? "will" : tense == Tense::past ? "did" : who.singular ? "does" : "do";
  }
  static string_view be(const NounPhrase& who, Tense tense) {
    if (tense == Tense::past) return who.singular || who.first ? "was" : "were";
    return who.first ? "am" : who.singular ? "is" : "are";
  }

  // Who does what, where and when, in parts: sentences and questions put them together differently.
  struct Scene {
    NounPhrase who, what;
    const Verb* verb;
    const Time* time = nullptr;
    const Words* place = nullptr;
    Tense tense = Tense::present;
    bool negated = false;
  };
  Scene scene(int depth) {
    Scene s;
    s.verb = &pick(kVerbs);
    s.who = thing(s.verb->animals && chance(35) ? kAnimal : kPerson, chance(40) ? depth : 0);
    s.what = thing(s.verb->takes, depth);
    if (chance(20 + 25 * depth)) s.time = &pick(kTimes);
    if (chance(15 + 25 * depth)) s.place = &pick(kPlaces);
    s.tense = s.time ? s.time->tense : chance(30) ? Tense::past : Tense::present;
    s.negated = chance(15);
    return s;
  }

  // 会, 不, 没 and 了 stand where English has will, do and did.
  static string chinese_verb(const Scene& s, string_view place) {
    const string where = place.empty() ? "" : "在" + string(place);
    const bool past = s.tense == Tense::past, future = s.tense == Tense::future;
    return string(s.negated ? (past ? "没" : "不") : "") + string(future ? "会" : "") + where +
           string(s.verb->zh) + string(past && !s.negated ? "了" : "");
  }
  string chinese(const Scene& s) {
    const string time(s.time ? s.time->zh : ""), verb = chinese_verb(s, s.place ? s.place->zh : "");
    return (chance(50) ? time + s.who.zh : s.who.zh + time) + verb + s.what.zh;
  }
  static string around(const Scene& s) {
    return join({s.place ? s.place->en : "", s.time ? s.time->en : ""});
  }

  Pair clause(int depth) {
    const Scene s = scene(depth);
    return {chinese(s),
            join({s.who.en, verb_phrase(*s.verb, s.who, s.tense, s.negated), s.what.object, around(s)})};
  }

  // 猫比狗大, 我的书在家里, 他是老师
  Pair state(int depth) {
    const NounPhrase who = thing(kBeing, depth);
    switch (rng_.below(3)) {
      case 0: {
        const Adjective& a = pick(kAdjectives);
        const NounPhrase other = thing(kBeing, 0);
        return {who.zh + "比" + other.zh + string(a.zh),
                join({who.en, be(who, Tense::present), a.more, "than", other.object})};
      }
      case 1: {
        const Words& place = pick(kPlaces);
        return {who.zh + "在" + string(place.zh), join({who.en, be(who, Tense::present), place.en})};
      }
      default: {
        const Adjective& a = pick(kAdjectives);
        return {who.zh + "很" + string(a.zh), join({who.en, be(who, Tense::present), "very", a.en})};
      }
    }
  }

  Pair question(int depth) {
    Scene s = scene(depth);
    s.negated = false;
    const string_view does = helper(s.who, s.tense);
    switch (rng_.below(4)) {
      case 0:
        return {chinese(s) + "吗？", join({does, s.who.en, s.verb->base, s.what.object, around(s)}) + "?"};
      case 1:
        s.what = noun("什么", "what", 0);
        return {chinese(s) + "？", join({"what", does, s.who.en, s.verb->base, around(s)}) + "?"};
      case 2: {
        s.who = noun("谁", "who", 0);
        return {chinese(s) + "？",
                join({"who", verb_phrase(*s.verb, s.who, s.tense, false), s.what.object, around(s)}) + "?"};
      }
      default:
        return {(s.time ? string(s.time->zh) : "") + s.who.zh + chinese_verb(s, "哪里") + s.what.zh + "？",
                join({"where", does, s.who.en, s.verb->base, s.what.object, s.time ? s.time->en : ""}) + "?"};
    }
  }

  // The object before the verb: 猫把鱼吃了, 鱼被猫吃了.
  Pair moved(int depth) {
    Scene s = scene(depth);
    while (!s.verb->acts) s = scene(depth);
    const string time(s.time && s.time->tense == Tense::past ? s.time->zh : "");
    const string when(time.empty() ? "" : s.time->en), where(s.place ? s.place->en : "");
    const string at = s.place ? "在" + string(s.place->zh) : "";
    if (chance(50))
      return {time + s.who.zh + at + "把" + s.what.zh + string(s.verb->zh) + "了",
              join({s.who.en, s.verb->past, s.what.object, where, when})};
    return {time + s.what.zh + at + "被" + s.who.zh + string(s.verb->zh) + "了",
            join({s.what.en, be(s.what, Tense::past), s.verb->participle, "by", s.who.object, where, when})};
  }

  // Two thoughts in one sentence.
  Pair joined(int depth) {
    const Pair a = chance(75) ? clause(depth) : state(depth), b = clause(depth);
    switch (rng_.below(6)) {
      case 0:
        return {"因为" + a.zh + "，所以" + b.zh, b.en + " because " + a.en};
      case 1:
        return {"如果" + a.zh + "，" + b.zh, b.en + " if " + a.en};
      case 2:
        return {a.zh + "的时候，" + b.zh, b.en + " when " + a.en};
      case 3:
        return {"虽然" + a.zh + "，但是" + b.zh, "although " + a.en + ", " + b.en};
      case 4:
        return {a.zh + "，但是" + b.zh, a.en + ", but " + b.en};
      default: {
        const NounPhrase who = thing(kPerson, 0);
        return {who.zh + "知道" + b.zh, join({who.en, who.singular ? "knows" : "know", "that", b.en})};
      }
    }
  }

  Rng rng_;
};

constexpr int64_t kValid = 100, kTest = 400;
constexpr const char* kShown = "我喜欢食物";  // i like food: left for the reader to ask

// Lengths in words, as BLEU counts them: 1 to 8, 9 to 16, ... 33 to 40.
constexpr int64_t kLengthStep = 8;
// A text goes through these classes of length again and again.
constexpr int kEvenly[] = {0, 1, 2, 3, 4};
constexpr int kMoreShortOnes[] = {0, 1, 0, 2, 1, 3, 0, 1, 2, 4};

int64_t words_of(const string& english) {
  return 1 + std::count_if(english.begin(), english.end(),
                           [](char c) { return c == ' ' || c == ',' || c == '?'; });
}

}  // namespace

ExampleCorpus example_corpus(int64_t count, uint64_t seed) {
  require(count >= 1 && count <= 100000, "example_corpus: got ", count, " sentences, wanted 1 to 100000");
  Grammar grammar{Rng(seed)};
  Rng depths = Rng(seed).split(1);
  ExampleCorpus corpus;
  std::unordered_set<string> seen;
  const auto fill = [&](ParallelText& text, int64_t wanted, std::span<const int> classes) {
    while (text.size() < wanted) {
      int length = classes[static_cast<size_t>(text.size()) % classes.size()];
      // Short sentences run out first: after some tries a longer one takes the place.
      for (int tries = 1;; ++tries) {
        if (tries % 200 == 0) length = std::min(length + 1, 4);
        Pair pair = grammar.sentence(static_cast<int>(depths.below(3)) + (length + 1) / 2 + (length == 4));
        if ((words_of(pair.en) - 1) / kLengthStep != length || !seen.insert(pair.zh).second) continue;
        text.source.push_back(std::move(pair.zh));
        text.target.push_back(std::move(pair.en));
        break;
      }
    }
  };
  seen.insert(kShown);
  corpus.test.source.push_back(kShown);
  corpus.test.target.push_back("i like food");
  fill(corpus.test, kTest, kEvenly);
  fill(corpus.valid, kValid, kEvenly);
  fill(corpus.train, count, kMoreShortOnes);
  return corpus;
}

}  // namespace fovea::data
