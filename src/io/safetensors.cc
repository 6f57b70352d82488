// Parses and checks safetensors headers, converts tensors to float32 or maps them, and writes files.
#include "io/safetensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fields.h"
#include "io/json.h"

namespace fovea {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors stores little-endian numbers");

constexpr std::string_view kMetadataName = "__metadata__";

struct DtypeFact {
  std::string_view name;
  int64_t size;
};
// In the order of Dtype.
constexpr std::array<DtypeFact, 15> kDtypes{{{"BOOL", 1},
                                             {"U8", 1},
                                             {"I8", 1},
                                             {"F8_E5M2", 1},
                                             {"F8_E4M3", 1},
                                             {"I16", 2},
                                             {"U16", 2},
                                             {"F16", 2},
                                             {"BF16", 2},
                                             {"I32", 4},
                                             {"U32", 4},
                                             {"F32", 4},
                                             {"F64", 8},
                                             {"I64", 8},
                                             {"U64", 8}}};

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kDtypes.size(); ++i)
    if (kDtypes[i].name == name) return static_cast<Dtype>(i);
  return std::nullopt;
}

// Reads the header event by event: no tree is built, so memory is bounded by what the format allows to be
// kept, and nesting deeper than the format's own is refused at the first bracket.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(const std::string& where, std::vector<TensorEntry>& entries, Metadata& metadata)
      : where_(where), entries_(entries), metadata_(metadata) {}

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a truth value"); }
  bool number_integer(number_integer_t) override { refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    refuse("a number that is not whole or too large");
  }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      require(value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()), where_, ": size ", value,
              " in ", name(), " is too large");
      require(sizes_.size() < Shape::kMaxRank, where_, ": ", name(), " has more than ", Shape::kMaxRank,
              " dimensions");
      sizes_.push_back(static_cast<int64_t>(value));
    } else if (place_ == Place::offsets) {
      require(offsets_.size() < 2, where_, ": more than two data_offsets in ", name());
      offsets_.push_back(value);
    } else {
      refuse("a number");
    }
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::metadata) {
      require(metadata_.emplace(key_, text).second, where_, ": duplicate name ", in_quotes(key_),
              " in __metadata__");
    } else if (place_ == Place::entry && key_ == "dtype") {
      dtype_ = dtype_from_name(text);
      require(dtype_.has_value(), where_, ": unknown dtype ", in_quotes(text), " of ", name());
    } else {
      refuse("a text");
    }
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::header;
    } else if (place_ == Place::header && key_ == kMetadataName) {
      place_ = Place::metadata;
    } else if (place_ == Place::header) {
      place_ = Place::entry;
      entry_name_ = key_;
      dtype_.reset();
      has_shape_ = has_offsets_ = has_dtype_ = false;
      sizes_.clear();
      offsets_.clear();
    } else {
      refuse("a nested object");
    }
    return true;
  }

  bool key(string_t& text) override {
    key_ = text;
    if (place_ == Place::entry) {
      bool* const seen = text == "dtype"          ? &has_dtype_
                         : text == "shape"        ? &has_shape_
                         : text == "data_offsets" ? &has_offsets_
                                                  : nullptr;
      require(seen != nullptr, where_, ": unknown field ", in_quotes(text), " of ", name());
      require(!*seen, where_, ": field ", in_quotes(text), " of ", name(), " appears twice");
      *seen = true;
    } else if (place_ == Place::header && text == kMetadataName) {
      require(!has_metadata_, where_, ": __metadata__ appears twice");
      has_metadata_ = true;
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::entry) {
      require(has_dtype_ && has_shape_ && has_offsets_, where_, ": ", name(),
              " wants dtype, shape and data_offsets");
      require(offsets_.size() == 2, where_, ": ", name(), " wants two data_offsets");
      // Overflow shows before anything is allocated by these sizes.
      int64_t count = 1;
      for (const int64_t size : sizes_)
        require(!__builtin_mul_overflow(count, size, &count), where_, ": the shape of ", name(),
                " overflows");
      entries_.push_back({entry_name_, *dtype_, Shape(sizes_), offsets_[0], offsets_[1]});
    }
    place_ = place_ == Place::header ? Place::outside : Place::header;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ == Place::entry && key_ == "shape")
      place_ = Place::shape;
    else if (place_ == Place::entry && key_ == "data_offsets")
      place_ = Place::offsets;
    else
      refuse("a list");
    return true;
  }
  bool end_array() override {
    place_ = Place::entry;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) override {
    const bool utf8 = std::string_view(error.what()).find("UTF-8") != std::string_view::npos;
    fail(where_, ": the header is no valid ", utf8 ? "UTF-8" : "JSON", " at byte ", position);
  }

 private:
  enum class Place { outside, header, metadata, entry, shape, offsets };

  std::string name() const { return in_quotes(entry_name_); }
  [[noreturn]] void refuse(std::string_view what) {
    fail(where_, ": the header contains ", what, " where the format has none (after ", in_quotes(key_), ")");
  }

  const std::string& where_;
  std::vector<TensorEntry>& entries_;
  Metadata& metadata_;
  Place place_ = Place::outside;
  std::string key_, entry_name_;
  std::optional<Dtype> dtype_;
  std::vector<int64_t> sizes_;
  std::vector<uint64_t> offsets_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false, has_metadata_ = false;
};

float float_from_half(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = (half >> 10) & 0x1F, mantissa = half & 0x3FF;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

float float_from_bfloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

template <class T, class Convert>
void convert_each(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = convert(value);
  }
}

template <class T>
void convert_numbers(std::span<const std::byte> bytes, std::span<float> out) {
  convert_each<T>(bytes, out, [](T value) { return static_cast<float>(value); });
}

// The entries in the order of their data: without holes or overlaps, each as long as its shape says.
void check_places(std::vector<TensorEntry>& entries, uint64_t data_size, const std::string& where) {
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t place = 0;
  for (const TensorEntry& entry : entries) {
    const std::string name = in_quotes(entry.name);
    require(entry.begin <= entry.end, where, ": data_offsets of ", name, " run backwards (", entry.begin,
            ", ", entry.end, ")");
    require(entry.end <= data_size, where, ": ", name, " ends at byte ", entry.end,
            " of the data, which contains ", data_size, "; the file may be cut short");
    require(entry.begin >= place, where, ": ", name, " overlaps another tensor at byte ", entry.begin,
            " of the data");
    require(entry.begin == place, where, ": a hole in the data before ", name, ", from byte ", place, " to ",
            entry.begin);
    int64_t size;
    const bool fits = !__builtin_mul_overflow(entry.shape.count(), dtype_size(entry.dtype), &size);
    require(fits && static_cast<uint64_t>(size) == entry.end - entry.begin, where, ": ", name, " of shape ",
            entry.shape, " and dtype ", dtype_name(entry.dtype), " does not fill its ",
            entry.end - entry.begin, " bytes");
    place = entry.end;
  }
  require(place == data_size, where, ": ", data_size - place, " bytes after the last tensor");
}

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].name;
}
int64_t dtype_size(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].size;
}

void convert_to_float(Dtype dtype, std::span<const std::byte> bytes, std::span<float> out) {
  FOVEA_ASSERT(bytes.size() == out.size() * static_cast<size_t>(dtype_size(dtype)));
  switch (dtype) {
    case Dtype::f32:
      if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
      return;
    case Dtype::boolean:
      return convert_each<uint8_t>(bytes, out, [](uint8_t value) { return value ? 1.f : 0.f; });
    case Dtype::u8:
      return convert_numbers<uint8_t>(bytes, out);
    case Dtype::i8:
      return convert_numbers<int8_t>(bytes, out);
    case Dtype::i16:
      return convert_numbers<int16_t>(bytes, out);
    case Dtype::u16:
      return convert_numbers<uint16_t>(bytes, out);
    case Dtype::f16:
      return convert_each<uint16_t>(bytes, out, float_from_half);
    case Dtype::bf16:
      return convert_each<uint16_t>(bytes, out, float_from_bfloat);
    case Dtype::i32:
      return convert_numbers<int32_t>(bytes, out);
    case Dtype::u32:
      return convert_numbers<uint32_t>(bytes, out);
    case Dtype::f64:
      return convert_numbers<double>(bytes, out);
    case Dtype::i64:
      return convert_numbers<int64_t>(bytes, out);
    case Dtype::u64:
      return convert_numbers<uint64_t>(bytes, out);
    case Dtype::f8_e5m2:
    case Dtype::f8_e4m3:
      break;
  }
  fail("no conversion from ", dtype_name(dtype), " to float32; save the tensor as F32, F16 or BF16");
}

SafetensorsView::SafetensorsView(std::span<const std::byte> file, std::string where)
    : where_(std::move(where)) {
  require(file.size() >= 8, where_, ": ", file.size(), " bytes, too short for a safetensors file");
  uint64_t header_size;
  std::memcpy(&header_size, file.data(), 8);
  require(header_size <= kLargestHeader, where_, ": a header of ", header_size, " bytes, wanted at most ",
          kLargestHeader, "; is it a safetensors file?");
  require(header_size <= file.size() - 8, where_, ": a header of ", header_size, " bytes in a file of ",
          file.size(), "; the file may be cut short");
  const std::string_view header(reinterpret_cast<const char*>(file.data()) + 8, header_size);
  require(header.starts_with('{'), where_, ": the header does not begin with '{'; is it a safetensors file?");
  // The library's lexer takes a zero byte for the end of the text and would not see what follows.
  require(header.find('\0') == std::string_view::npos, where_, ": zero byte in the header");
  data_ = file.subspan(8 + header_size);

  HeaderReader reader(where_, entries_, metadata_);
  nlohmann::json::sax_parse(header, &reader);
  places_.reserve(entries_.size());
  for (const TensorEntry& entry : entries_)
    require(places_.emplace(entry.name, 0).second, where_, ": two tensors named ", in_quotes(entry.name));
  check_places(entries_, data_.size(), where_);
  for (size_t i = 0; i < entries_.size(); ++i) places_[entries_[i].name] = i;
}

const TensorEntry& SafetensorsView::entry(const std::string& name) const {
  if (const auto place = places_.find(name); place != places_.end()) return entries_[place->second];
  std::vector<std::string_view> known;
  for (const TensorEntry& entry : entries_) known.emplace_back(entry.name);
  const std::string_view near = nearest_name(name, known);
  if (near.empty()) fail(where_, ": no tensor ", in_quotes(name), " among its ", entries_.size());
  fail(where_, ": no tensor ", in_quotes(name), ", did you mean ", in_quotes(near), "?");
}

void SafetensorsView::read(const TensorEntry& entry, std::span<float> out) const {
  require(static_cast<uint64_t>(entry.shape.count()) == out.size(), where_, ": ", in_quotes(entry.name),
          " has shape ", entry.shape, ", wanted ", out.size(), " elements");
  convert_to_float(entry.dtype, bytes(entry), out);
}

std::vector<float> SafetensorsView::read(const std::string& name) const {
  const TensorEntry& found = entry(name);
  std::vector<float> values(static_cast<size_t>(found.shape.count()));
  read(found, values);
  return values;
}

void require_finite(const Tensor& tensor, std::string_view name, std::string_view where) {
  const Tensor flat = tensor.contiguous();
  const float *const begin = flat.data(), *const end = begin + flat.count();
  // Most files are sound: what is not finite has the largest bits, and a maximum is found many numbers at a time.
  int32_t largest = 0;
  for (const float* value = begin; value != end; ++value)
    largest = std::max(largest, std::bit_cast<int32_t>(*value) & 0x7fffffff);
  if (std::isfinite(std::bit_cast<float>(largest))) return;
  const float* const bad = std::find_if_not(begin, end, [](float value) { return std::isfinite(value); });
  fail(where, ": ", in_quotes(name), " contains ", std::isnan(*bad) ? "NaN" : "infinity", " at element ",
       bad - begin, ", wanted finite weights; the file is damaged, or its training diverged");
}

Tensor SafetensorsView::tensor(const std::string& name) const {
  const TensorEntry& found = entry(name);
  const Tensor values(found.shape);
  read(found, values.span());
  return values;
}

int64_t SafetensorsView::element_count() const {
  int64_t count = 0;
  for (const TensorEntry& entry : entries_) count += entry.shape.count();
  return count;
}

// The file, and what was made of it, so that two tensors of one name are one block of memory.
struct SafetensorsFile::Mapping {
  explicit Mapping(const std::filesystem::path& path) : file(path) {}
  MappedFile file;
  std::mutex mutex;
  std::unordered_map<const std::byte*, std::weak_ptr<float[]>> tensors;
};

namespace {

// Whole pages alone: those at the ends hold other tensors too.
void give_back_pages(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(bytes.data());
  const uintptr_t begin = (address + page - 1) / page * page, end = (address + bytes.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : mapping_(std::make_shared<Mapping>(path)), view_(mapping_->file.bytes(), path.string()) {}

Tensor SafetensorsFile::mapped(const std::string& name) const {
  const TensorEntry& found = view_.entry(name);
  const std::span<const std::byte> bytes = view_.bytes(found);
  if (found.dtype != Dtype::f32 || found.shape.count() == 0 ||
      reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) != 0)
    return view_.tensor(name);
  float* const data = reinterpret_cast<float*>(const_cast<std::byte*>(bytes.data()));
  const std::lock_guard lock(mapping_->mutex);
  std::weak_ptr<float[]>& known = mapping_->tensors[bytes.data()];
  std::shared_ptr<float[]> owner = known.lock();
  if (!owner) {
    // The entry in `tensors` keeps this deleter after it has run: it must let go of the file by itself.
    owner = std::shared_ptr<float[]>(data, [mapping = mapping_, bytes](float*) mutable {
      give_back_pages(bytes);
      mapping.reset();
    });
    known = owner;
  }
  return Tensor::wrap(std::move(owner), data, found.shape);
}

TensorToWrite TensorToWrite::floats(std::string name, const Tensor& tensor) {
  require(tensor.defined() && tensor.is_contiguous(), "tensor ", in_quotes(name),
          ": got a view with gaps or nothing, wanted contiguous values: write tensor.contiguous()");
  return floats(std::move(name), tensor.shape(), tensor.span());
}

void write_safetensors(FileWriter& writer, std::vector<TensorToWrite> tensors, const Metadata& metadata) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorToWrite& a, const TensorToWrite& b) {
    if (dtype_size(a.dtype) != dtype_size(b.dtype)) return dtype_size(a.dtype) > dtype_size(b.dtype);
    return a.name < b.name;
  });
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadataName] = metadata;
  uint64_t place = 0;
  std::string entries;  // joined by hand: looking a name up in ordered_json is linear
  std::unordered_map<std::string_view, bool> names;
  for (const TensorToWrite& tensor : tensors) {
    require(tensor.name != kMetadataName, "a tensor cannot be named ", kMetadataName);
    require(names.emplace(tensor.name, true).second, "two tensors named ", in_quotes(tensor.name));
    const uint64_t size =
        static_cast<uint64_t>(checked_product(tensor.shape.count(), dtype_size(tensor.dtype)));
    require(size == tensor.bytes.size(), in_quotes(tensor.name), " of shape ", tensor.shape, " and dtype ",
            dtype_name(tensor.dtype), " wants ", size, " bytes, got ", tensor.bytes.size());
    const Json entry = {{"dtype", dtype_name(tensor.dtype)},
                        {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
                        {"data_offsets", {place, place + size}}};
    place += size;
    try {
      if (!entries.empty()) entries += ',';
      entries += Json(tensor.name).dump();
      entries += ':';
      entries += entry.dump();
    } catch (const Json::exception&) {
      fail("the tensor name ", in_quotes(tensor.name), " is no valid UTF-8");
    }
  }
  std::string text = header.dump();
  text.pop_back();
  if (!metadata.empty() && !entries.empty()) text += ",";
  text += entries + "}";
  text.append((8 - text.size() % 8) % 8, ' ');
  require(text.size() <= SafetensorsView::kLargestHeader, "a safetensors header of ", text.size(),
          " bytes, wanted at most ", SafetensorsView::kLargestHeader);
  const uint64_t header_size = text.size();
  writer.write(std::as_bytes(std::span(&header_size, 1)));
  writer.write(text);
  for (const TensorToWrite& tensor : tensors) writer.write(tensor.bytes);
}

void save_safetensors(const std::filesystem::path& path, std::vector<TensorToWrite> tensors,
                      const Metadata& metadata) {
  write_atomically(path,
                   [&](FileWriter& writer) { write_safetensors(writer, std::move(tensors), metadata); });
}

}  // namespace fovea
