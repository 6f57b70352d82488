// Named tensors and bytes: the safetensors format, read from a mapped file and written atomically.
//
// A file is an 8-byte little-endian header length, a JSON header (name -> dtype, shape, data_offsets; and
// __metadata__, text -> text), then the data without holes or overlaps. Files come from outside: everything
// is checked before anything is allocated by it, and memory stays bounded by the file's own size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/shape.h"
#include "io/file.h"
#include "tensor/tensor.h"

namespace fovea {

enum class Dtype { boolean, u8, i8, f8_e5m2, f8_e4m3, i16, u16, f16, bf16, i32, u32, f32, f64, i64, u64 };

// "F32" and the like, as the format spells it.
std::string_view dtype_name(Dtype dtype);
int64_t dtype_size(Dtype dtype);

// Turns `bytes` of `dtype` into float32, one by one; out.size() elements. Throws for the 8-bit floats.
void convert_to_float(Dtype dtype, std::span<const std::byte> bytes, std::span<float> out);

// Weights that answer must be numbers: throws Error, beginning with `where` and naming the tensor, when a
// value is NaN or infinite.
void require_finite(const Tensor& tensor, std::string_view name, std::string_view where);

using Metadata = std::map<std::string, std::string>;

// One tensor's place in a file.
struct TensorEntry {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  uint64_t begin = 0, end = 0;  // within the data
};

// What a safetensors file says, over bytes that someone else keeps.
class SafetensorsView {
 public:
  static constexpr uint64_t kLargestHeader = 100'000'000;  // the format's own limit

  SafetensorsView() = default;
  // `where` begins every error message. Throws Error on anything the format does not allow.
  SafetensorsView(std::span<const std::byte> file, std::string where);

  // In the order of their data.
  std::span<const TensorEntry> entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  bool contains(const std::string& name) const { return places_.contains(name); }
  // Of all tensors together: no network read from here is larger.
  int64_t element_count() const;
  // Throws Error with the nearest match when there is no such tensor.
  const TensorEntry& entry(const std::string& name) const;
  // The tensor's bytes, as stored; not aligned.
  std::span<const std::byte> bytes(const TensorEntry& entry) const {
    return data_.subspan(entry.begin, entry.end - entry.begin);
  }
  // Copies a tensor as float32; throws Error when out.size() is not its element count.
  void read(const TensorEntry& entry, std::span<float> out) const;
  std::vector<float> read(const std::string& name) const;
  Tensor tensor(const std::string& name) const;

 private:
  std::string where_;
  std::span<const std::byte> data_;
  std::vector<TensorEntry> entries_;
  std::unordered_map<std::string, size_t> places_;
  Metadata metadata_;
};

// A mapped file together with its view. Several threads may read one at once.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  const SafetensorsView& operator*() const { return view_; }
  const SafetensorsView* operator->() const { return &view_; }

  // A tensor as float32. One of float32 is the file's own memory, not a copy: it may outlive this object, and
  // writing to it changes no file. Its pages go back to the system with the last tensor that uses them. The file must not
  // be changed in place while it is in use; files that Fovea writes are replaced whole.
  Tensor mapped(const std::string& name) const;

 private:
  struct Mapping;
  std::shared_ptr<Mapping> mapping_;
  SafetensorsView view_;
};

// One tensor to write; the bytes stay the caller's.
struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::span<const std::byte> bytes;

  static TensorToWrite floats(std::string name, Shape shape, std::span<const float> values) {
    return {std::move(name), Dtype::f32, shape, std::as_bytes(values)};
  }
  // A contiguous tensor, whose memory must outlive the writing.
  static TensorToWrite floats(std::string name, const Tensor& tensor);
};

// Writes the tensors sorted by size of element (largest first, for alignment), then name: the same content
// gives the same bytes. Throws Error on a name given twice or kept by the format, or bytes that do not fit
// the shape.
void write_safetensors(FileWriter& writer, std::vector<TensorToWrite> tensors, const Metadata& metadata = {});
// The same, replacing the file atomically.
void save_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                      const Metadata& metadata = {});

}  // namespace fovea
