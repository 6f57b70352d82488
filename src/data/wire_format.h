// Protobuf's wire format, as far as SentencePiece's model files need it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fovea::data {

// Walks a message and calls on_bytes(field, bytes) for each of its byte fields and on_number(field, value) for each
// of its whole numbers. False when it is malformed.
template <class OnBytes, class OnNumber>
bool visit_fields(std::string_view message, OnBytes&& on_bytes, OnNumber&& on_number) {
  const auto take_number = [&message](uint64_t& number) {
    number = 0;
    for (int shift = 0; shift < 64 && !message.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      number |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  };
  while (!message.empty()) {
    uint64_t tag, size = 0;
    if (!take_number(tag)) return false;
    const uint64_t type = tag & 7;
    if (type == 0 && !take_number(size)) return false;
    // The library takes tags for numbers of 32 bits.
    const uint64_t field = static_cast<uint32_t>(tag) >> 3;
    if (type == 0) {
      on_number(field, size);
      continue;
    }
    if (type == 1) size = 8;
    if (type == 5) size = 4;
    if (type == 2 && !take_number(size)) return false;
    if ((type != 1 && type != 2 && type != 5) || size > message.size()) return false;
    if (type == 2) on_bytes(field, message.substr(0, size));
    message.remove_prefix(size);
  }
  return true;
}
template <class Visit>
bool visit_bytes(std::string_view message, Visit&& visit) {
  return visit_fields(message, visit, [](uint64_t, uint64_t) {});
}

// Writes fields to the end of `message`.
inline void append_number(std::string& message, uint64_t number) {
  for (; number >= 0x80; number >>= 7) message += static_cast<char>((number & 0x7F) | 0x80);
  message += static_cast<char>(number);
}
inline void append_field(std::string& message, uint64_t field, uint64_t number) {
  append_number(message, field << 3);
  append_number(message, number);
}
inline void append_field(std::string& message, uint64_t field, std::string_view bytes) {
  append_number(message, field << 3 | 2);
  append_number(message, bytes.size());
  message += bytes;
}

}  // namespace fovea::data
