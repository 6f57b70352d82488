// Calls of the SentencePiece library whose failures become Errors of one line.
#pragma once

#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>

#include "base/error.h"

namespace fovea::data {

// Throws Error when a call of the library failed. Its messages have several lines, ours have one.
inline void require_ok(const sentencepiece::util::Status& status, const std::string& what) {
  if (status.ok()) return;
  std::string reason = status.ToString();
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  fail(what, " (", reason, ")");
}

// Reads a model file. Besides a failed status the library has exceptions for pieces that its search tree cannot hold.
inline void load_model(sentencepiece::SentencePieceProcessor& processor, std::string_view bytes,
                       const std::string& name) {
  try {
    require_ok(processor.LoadFromSerializedProto({bytes.data(), bytes.size()}),
               name + ": not a SentencePiece model");
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {
    fail(name, ": not a SentencePiece model (a piece is empty or contains a zero byte)");
  }
}

}  // namespace fovea::data
