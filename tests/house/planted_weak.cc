// What the symbols test must catch: an inline function that is not inlined, and an inline variable.
namespace fovea::house {

[[gnu::noinline]] inline int planted_function(int x) {
  return x * x;
}
inline int planted_variable = 3;

int use_planted(int x) {
  planted_variable += x;
  return planted_function(x);
}

}  // namespace fovea::house
