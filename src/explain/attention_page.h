// Records of attention as JSON, and as one HTML page that shows them without a network.
#pragma once

#include <span>
#include <string>

#include "explain/attention_record.h"
#include "io/json.h"

namespace fovea {

// Everything: texts, tokens, words, and for each kind its layers (heads and their average) and rollout.
// decimals: digits kept of a weight; 0 keeps all.
Json attention_json(const AttentionRecord& record, int decimals = 0);

// A self-contained page; with several records it offers a choice. Texts are hostile to a page: they are
// carried as data and only ever become text.
std::string attention_page(std::span<const AttentionRecord> records, const std::string& title);

}  // namespace fovea
