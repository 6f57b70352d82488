#include "models/classification.h"

namespace fovea::models {

void check_classes(const ClassSettings& s) {
  require(s.vocabulary > data::kSpecials, s.model, ": a vocabulary of ", s.vocabulary,
          " tokens, wanted more than the ", data::kSpecials, " special ones");
  require(s.classes >= 2, s.model, ": ", s.classes, " classes, wanted at least 2");
}

}  // namespace fovea::models
