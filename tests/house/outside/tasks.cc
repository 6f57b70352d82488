// A program outside Fovea that opens a model folder: here one that does not exist.
#include <fovea/fovea.h>
#include <fovea/tasks/translator.h>

#include <cstdio>

int main() {
  try {
    fovea::tasks::load_translation("no-such-folder");
    return 1;
  } catch (const fovea::Error& error) {
    std::printf("outside: %s\n", error.what());
  }
  return 0;
}
