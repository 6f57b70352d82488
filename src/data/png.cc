// PNG through libpng, row by row. Its errors come by longjmp: between setjmp and the end of a call stands
// nothing that has a destructor. Gamma is left as it is stored, as other programs that train networks do.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "data/image_formats.h"

namespace fovea::data {
namespace {

// Whether no chunk goes beyond the file's end: libpng takes memory for a chunk by the length that it claims.
bool chunks_fit(std::span<const std::byte> file) {
  constexpr size_t kAroundContent = 12;  // length, name and check sum
  for (size_t at = 8; at + kAroundContent <= file.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | std::to_integer<size_t>(file[at + i]);
    if (length > file.size() - at - kAroundContent) return false;
    if (std::memcmp(file.data() + at + 4, "IEND", 4) == 0) break;
    at += kAroundContent + length;
  }
  return true;
}

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> rest;
  char text[128] = "";

  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void give_up(png_structp png, png_const_charp reason) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::strncpy(reader->text, reason, sizeof reader->text - 1);
  png_longjmp(png, 1);
}

void keep_silent(png_structp, png_const_charp) {}

void give_bytes(png_structp png, png_bytep to, size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->rest.size()) png_error(png, "it is cut off");
  std::memcpy(to, reader->rest.data(), count);
  reader->rest = reader->rest.subspan(count);
}

bool open(Reader& r) {
  r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, give_up, keep_silent);
  r.info = r.png == nullptr ? nullptr : png_create_info_struct(r.png);
  return r.info != nullptr;
}

// False when libpng gave up; the reason is in r.text.
bool read_header(Reader& r) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_set_read_fn(r.png, &r, give_bytes);
  png_read_info(r.png, r.info);
  return true;
}

// From any kind of PNG to red, green, blue and opacity of 8 bits. Gives the passes over the picture.
bool start_pixels(Reader& r, int& passes) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_set_expand(r.png);
  png_set_scale_16(r.png);
  png_set_gray_to_rgb(r.png);
  png_set_add_alpha(r.png, 255, PNG_FILLER_AFTER);
  passes = png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  return true;
}

bool read_row(Reader& r, uint8_t* row) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_read_row(r.png, row, nullptr);
  return true;
}

// What is transparent shows white; in place, from four channels to three.
void put_on_white(uint8_t* row, size_t width) {
  for (size_t i = 0; i < width; ++i) {
    const unsigned opacity = row[4 * i + 3];
    for (size_t c = 0; c < 3; ++c)
      row[3 * i + c] = static_cast<uint8_t>((row[4 * i + c] * opacity + 255 * (255 - opacity) + 127) / 255);
  }
}

}  // namespace

Image decode_png(std::span<const std::byte> bytes, const std::string& where, const DecodeOptions& options) {
  require(chunks_fit(bytes), where, ": damaged PNG: it is cut off");
  Reader reader;
  reader.rest = bytes;
  require(open(reader), where, ": out of memory");
  const auto must = [&](bool done) { require(done, where, ": damaged PNG: ", reader.text); };
  must(read_header(reader));
  const int64_t height = png_get_image_height(reader.png, reader.info),
                width = png_get_image_width(reader.png, reader.info);
  const bool whole = png_get_interlace_type(reader.png, reader.info) != PNG_INTERLACE_NONE;
  check_pixels(height, width, whole, where, options);
  const int64_t factor = shrink_factor(height, width, options);
  const uint64_t kept = whole ? static_cast<uint64_t>(height * width) * 4 : 0;
  const DecodingMemory memory(kept + Shrinker::bytes(height, width, factor));
  int passes = 1;
  must(start_pixels(reader, passes));
  const size_t row_bytes = static_cast<size_t>(width) * 4;
  FOVEA_ASSERT(png_get_rowbytes(reader.png, reader.info) == row_bytes);
  std::vector<uint8_t> rows(whole ? row_bytes * static_cast<size_t>(height) : row_bytes);
  const auto row = [&](int64_t h) { return rows.data() + (whole ? static_cast<size_t>(h) * row_bytes : 0); };
  // Of an interlaced picture all passes but the last only fill the rows.
  for (int pass = 1; pass < passes; ++pass)
    for (int64_t h = 0; h < height; ++h) must(read_row(reader, row(h)));
  Shrinker shrinker(height, width, factor);
  for (int64_t h = 0; h < height; ++h) {
    must(read_row(reader, row(h)));
    put_on_white(row(h), static_cast<size_t>(width));
    shrinker.add(row(h));
  }
  return shrinker.take();
}

}  // namespace fovea::data
