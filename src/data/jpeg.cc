// JPEG through libjpeg, whose errors come by longjmp: between setjmp and the end of a call stands nothing
// that has a destructor.
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

// `row` has room for one row of four channels.
bool read_pixels(Reader& r, uint8_t* pixels, uint8_t* row) {
  if (setjmp(r.handler.back) != 0) return false;
  const bool inks = r.info.num_components == 4;
  r.info.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  r.info.dct_method = JDCT_ISLOW;  // the same pixels on every machine
  jpeg_start_decompress(&r.info);
  const size_t width = r.info.output_width;
  while (r.info.output_scanline < r.info.output_height) {
    uint8_t* to = pixels + size_t{r.info.output_scanline} * width * 3;
    uint8_t* read_to = inks ? row : to;
    jpeg_read_scanlines(&r.info, &read_to, 1);
    if (!inks) continue;
    // Adobe's programs store how much of each ink is missing.
    const uint8_t turn = r.info.saw_Adobe_marker ? 0 : 255;
    for (size_t i = 0; i < width; ++i)
      for (size_t c = 0; c < 3; ++c)
        to[3 * i + c] = static_cast<uint8_t>((row[4 * i + c] ^ turn) * (row[4 * i + 3] ^ turn) / 255);
  }
  jpeg_finish_decompress(&r.info);
  return true;
}

// Frees libjpeg's memory however the reading ends.
struct Closer {
  Reader& reader;
  ~Closer() { jpeg_destroy_decompress(&reader.info); }
};

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& where, int64_t max_pixels) {
  Reader reader{};
  const Closer closer{reader};
  require(read_header(reader, bytes), where, ": damaged JPEG: ", reader.handler.text);
  Image image{reader.info.image_height, reader.info.image_width, {}};
  check_pixels(image, where, max_pixels);
  image.pixels.resize(static_cast<size_t>(image.height * image.width * 3));
  std::vector<uint8_t> row(static_cast<size_t>(image.width) * 4);
  require(read_pixels(reader, image.pixels.data(), row.data()), where,
          ": damaged JPEG: ", reader.handler.text);
  return image;
}

}  // namespace fovea::data
