// JPEG through libjpeg, whose errors come by longjmp: between setjmp and the end of a call stands nothing
// that has a destructor. Pictures are read row by row, and shrunk by libjpeg itself as far as it can.
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>

// jpeglib.h speaks of FILE.
#include <jerror.h>
#include <jpeglib.h>

#include "base/error.h"
#include "data/image_formats.h"

namespace fovea::data {
namespace {

// A picture in 200 passes is made to cost time, not to be looked at.
constexpr int kMostScans = 200;

struct Handler {
  jpeg_error_mgr errors;  // first: libjpeg hands out its address
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void give_up(j_common_ptr info) {
  auto* handler = reinterpret_cast<Handler*>(info->err);
  info->err->format_message(info, handler->text);
  std::longjmp(handler->back, 1);
}

// libjpeg goes on after damage and paints the rest grey; here a damaged picture is refused. Other warnings
// (odd bytes between markers, unusual colour marks) are in many good photographs.
void look_at_warning(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      give_up(info);
    default:
      break;
  }
}

void count_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* handler = reinterpret_cast<Handler*>(info->err);
  std::snprintf(handler->text, sizeof handler->text, "more than %d passes over the picture", kMostScans);
  std::longjmp(handler->back, 1);
}

void keep_silent(j_common_ptr) {}

struct Reader {
  jpeg_decompress_struct info;
  Handler handler;
  jpeg_progress_mgr progress;
};

void open(Reader& r) {
  r.info.err = jpeg_std_error(&r.handler.errors);
  r.handler.errors.error_exit = give_up;
  r.handler.errors.emit_message = look_at_warning;
  r.handler.errors.output_message = keep_silent;
  jpeg_create_decompress(&r.info);
  r.progress = {};
  r.progress.progress_monitor = count_scans;
  r.info.progress = &r.progress;
}

// False when libjpeg gave up; the reason is in the handler's text.
bool read_header(Reader& r, std::span<const std::byte> bytes) {
  if (setjmp(r.handler.back) != 0) return false;
  open(r);
  jpeg_mem_src(&r.info, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&r.info, TRUE);
  return true;
}

// Starts reading pixels, shrunk to denominators that libjpeg has: 1, 2, 4 or 8.
bool start_pixels(Reader& r, unsigned denominator) {
  if (setjmp(r.handler.back) != 0) return false;
  r.info.out_color_space = r.info.num_components == 4 ? JCS_CMYK : JCS_RGB;
  r.info.dct_method = JDCT_ISLOW;  // the same pixels on every machine
  r.info.scale_num = 1;
  r.info.scale_denom = denominator;
  jpeg_start_decompress(&r.info);
  return true;
}

// One row of red, green and blue, or of four inks.
bool read_row(Reader& r, uint8_t* row) {
  if (setjmp(r.handler.back) != 0) return false;
  jpeg_read_scanlines(&r.info, &row, 1);
  return true;
}

bool finish_pixels(Reader& r) {
  if (setjmp(r.handler.back) != 0) return false;
  jpeg_finish_decompress(&r.info);
  return true;
}

// Inks to colours, in place. Adobe's programs store how much of each ink is missing.
void mix_inks(uint8_t* row, size_t width, bool inverted) {
  const uint8_t turn = inverted ? 0 : 255;
  for (size_t i = 0; i < width; ++i) {
    const uint8_t black = row[4 * i + 3] ^ turn;
    for (size_t c = 0; c < 3; ++c)
      row[3 * i + c] = static_cast<uint8_t>((row[4 * i + c] ^ turn) * black / 255);
  }
}

// Frees libjpeg's memory however the reading ends.
struct Closer {
  Reader& reader;
  ~Closer() { jpeg_destroy_decompress(&reader.info); }
};

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& where, const DecodeOptions& options) {
  Reader reader{};
  const Closer closer{reader};
  const auto must = [&](bool done) { require(done, where, ": damaged JPEG: ", reader.handler.text); };
  must(read_header(reader, bytes));
  const int64_t full_height = reader.info.image_height, full_width = reader.info.image_width;
  const bool whole = jpeg_has_multiple_scans(&reader.info) != 0;
  check_pixels(full_height, full_width, whole, where, options);
  const int64_t most = shrink_factor(full_height, full_width, options);
  const unsigned denominator = most >= 8 ? 8 : most >= 4 ? 4 : most >= 2 ? 2 : 1;
  // A picture in several passes keeps two bytes for every component of every pixel.
  const uint64_t coefficients =
      whole ? static_cast<uint64_t>(full_height * full_width * reader.info.num_components) * 2 : 0;
  const DecodingMemory memory(coefficients + Shrinker::bytes(full_height, full_width, denominator));
  must(start_pixels(reader, denominator));
  const int64_t height = reader.info.output_height, width = reader.info.output_width;
  Shrinker shrinker(height, width, shrink_factor(height, width, options));
  std::vector<uint8_t> row(static_cast<size_t>(width) * 4);
  for (int64_t h = 0; h < height; ++h) {
    must(read_row(reader, row.data()));
    if (reader.info.num_components == 4)
      mix_inks(row.data(), row.size() / 4, reader.info.saw_Adobe_marker != 0);
    shrinker.add(row.data());
  }
  must(finish_pixels(reader));
  return shrinker.take();
}

}  // namespace fovea::data
