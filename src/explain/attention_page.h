// Attention records as JSON, and as one self-contained HTML page.
#pragma once

#include <span>
#include <string>

#include "explain/attention_record.h"
#include "io/json.h"

namespace fovea {

// Texts, tokens, words, and for each kind of attention its layers (heads and their average) and rollout.
// decimals: number of decimals of a weight; 0 keeps all digits.
Json attention_json(const AttentionRecord& record, int decimals = 0);

// With several records the page has a menu to choose one. Texts come from outside and are never trusted: the
// page holds them as data and shows them as text nodes only.
std::string attention_page(std::span<const AttentionRecord> records, const std::string& title);

}  // namespace fovea
