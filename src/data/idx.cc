#include "data/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/parallel.h"
#include "data/bytes.h"

namespace fovea::data {
namespace {

// Reads from read(to), which fills less than requested only at the end. Memory grows with what has come, not
// with what the header promises.
IdxArray read_from(FunctionRef<size_t(std::span<uint8_t>)> read, const std::string& where) {
  std::array<uint8_t, 4> head{};
  require(read(head) == head.size() && head[0] == 0 && head[1] == 0, where, ": no IDX file");
  require(head[2] == 8, where, ": an IDX file of type ", int{head[2]}, ", wanted 8 (unsigned bytes)");
  IdxArray array;
  int64_t count = 1;
  for (int i = 0; i < int{head[3]}; ++i) {
    std::array<uint8_t, 4> size{};
    require(read(size) == size.size(), where, ": cut off within the sizes");
    array.sizes.push_back(int64_t{size[0]} << 24 | size[1] << 16 | size[2] << 8 | size[3]);
    count *= array.sizes.back();  // at most 2^62
    require(count <= kMaxIdxValues, where, ": more than ", kMaxIdxValues, " values");
  }
  require(!array.sizes.empty(), where, ": an IDX file without sizes");
  constexpr int64_t kPiece = 1 << 20;
  for (int64_t have = 0; have < count;) {
    const int64_t piece = std::min(kPiece, count - have);
    array.values.resize(static_cast<size_t>(have + piece));
    const size_t got = read(std::span(array.values).subspan(static_cast<size_t>(have)));
    have += static_cast<int64_t>(got);
    require(got == static_cast<size_t>(piece), where, ": cut off: ", have, " of ", count, " values");
  }
  std::array<uint8_t, 1> more{};
  require(read(more) == 0, where, ": bytes after the last of ", count, " values");
  return array;
}

}  // namespace

IdxArray parse_idx(std::span<const std::byte> bytes, const std::string& where) {
  const auto read = [&](std::span<uint8_t> to) {
    const size_t count = std::min(to.size(), bytes.size());
    std::memcpy(to.data(), bytes.data(), count);
    bytes = bytes.subspan(count);
    return count;
  };
  return read_from(read, where);
}

IdxArray read_idx(const std::filesystem::path& path) {
  const std::string where = path.string();
  const ByteFile is_regular(path);  // throws; zlib would wait for the writer of a FIFO
  errno = 0;
  // zlib reads what is not gzip as it is.
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  require(file != nullptr, "cannot open ", where, ": ", std::strerror(errno));
  const auto read = [&](std::span<uint8_t> to) {
    size_t done = 0;
    while (done < to.size()) {
      const int count = gzread(file.get(), to.data() + done, static_cast<unsigned>(to.size() - done));
      int code = Z_OK;
      const char* const reason = gzerror(file.get(), &code);
      require(count >= 0 && (code == Z_OK || code == Z_STREAM_END), where,
              ": damaged: ", code == Z_ERRNO ? std::strerror(errno) : reason);
      if (count == 0) break;
      done += static_cast<size_t>(count);
    }
    return done;
  };
  return read_from(read, where);
}

LabelledImages read_labelled_idx(const std::filesystem::path& images, const std::filesystem::path& labels) {
  IdxArray pixels = read_idx(images);
  const IdxArray classes = read_idx(labels);
  require(pixels.sizes.size() == 3, images.string(), ": ", pixels.sizes.size(),
          " sizes, wanted 3: pictures, rows, columns");
  require(classes.sizes.size() == 1, labels.string(), ": ", classes.sizes.size(), " sizes, wanted 1: labels");
  require(pixels.sizes[0] == classes.sizes[0], images.string(), " contains ", pixels.sizes[0],
          " pictures and ", labels.string(), " ", classes.sizes[0], " labels");
  return {pixels.sizes[0], pixels.sizes[1], pixels.sizes[2], std::move(pixels.values),
          std::vector<int32_t>(classes.values.begin(), classes.values.end())};
}

}  // namespace fovea::data
