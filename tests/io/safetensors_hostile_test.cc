// Files that are broken or mean harm, as a table: each is refused with a message that says why, or accepted
// where the format allows it. Memory is bounded by RLIMIT_AS while they are read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>

#include "io/safetensors.h"

namespace fovea {
namespace {

using ::testing::HasSubstr;

std::string with_length(uint64_t length, const std::string& rest) {
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + rest;
}
std::string file_of(const std::string& header, size_t data = 0) {
  return with_length(header.size(), header + std::string(data, 'x'));
}
std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" +
         offsets + "]}";
}
// A header that says `fields` of its one tensor.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets, size_t data) {
  return file_of("{" + tensor("a", dtype, shape, offsets) + "}", data);
}
std::string two(const std::string& first, const std::string& second, size_t data) {
  return file_of("{" + first + "," + second + "}", data);
}
std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

struct Case {
  const char* name;
  std::string file;
  const char* message;  // nullptr: the format allows it
};

std::vector<Case> cases() {
  const std::string a4 = tensor("a", "F32", "1", "0,4");
  return {
      // lengths
      {"Empty", "", "too short"},
      {"SevenBytes", std::string(7, '\0'), "too short"},
      {"HeaderOfZeroBytes", with_length(0, ""), "does not begin with '{'"},
      {"HeaderLongerThanFile", with_length(100, "{}"), "cut short"},
      {"HeaderOneByteTooLong", with_length(3, "{}"), "cut short"},
      {"HeaderAboveTheLimit", with_length(100'000'001, "{}"), "wanted at most 100000000"},
      {"HeaderLengthOfAllOnes", with_length(~0ull, "{}"), "wanted at most 100000000"},
      {"HeaderLengthThatWrapsWithEight", with_length(~0ull - 7, "{}"), "wanted at most 100000000"},
      {"HeaderCutInsideJson", with_length(5, R"({"a":{}})"), "no valid JSON"},
      // text
      {"BadUtf8InName", file_of("{\"\xc3\x28\":{}}"), "no valid UTF-8"},
      {"OverlongUtf8", file_of("{\"\xc0\xaf\":{}}"), "no valid UTF-8"},
      {"LoneSurrogate", file_of(R"({"\ud800":{}})"), "no valid"},
      {"ByteOrderMark", file_of("\xef\xbb\xbf{}"), "does not begin with '{'"},
      {"LeadingSpace", file_of(" {}"), "does not begin with '{'"},
      {"ZeroByteHidesTheRest", file_of(std::string("{}\0{}", 5)), "zero byte"},
      {"TextAfterTheObject", file_of("{}{}"), "no valid JSON"},
      {"CommentInJson", file_of("{/**/}"), "no valid JSON"},
      {"TrailingComma", file_of("{" + a4 + ",}", 4), "no valid JSON"},
      {"DeepLists", file_of(R"({"a":{"shape":)" + std::string(200'000, '[')),
       "a list where the format has none"},
      {"DeepObjects", file_of(repeat(R"({"dtype":)", 200'000)), "a nested object"},
      {"DeepMetadata", file_of(R"({"__metadata__":)" + repeat(R"({"a":)", 200'000)), "a nested object"},
      // structure
      {"HeaderIsAList", file_of("[]"), "does not begin with '{'"},
      {"TensorIsANumber", file_of(R"({"a":1})"), "a number where the format has none"},
      {"TensorIsNull", file_of(R"({"a":null})"), "null"},
      {"MetadataIsANumber", file_of(R"({"__metadata__":{"a":1}})"), "a number"},
      {"MetadataTwice", file_of(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ appears twice"},
      {"MetadataNameTwice", file_of(R"({"__metadata__":{"a":"1","a":"2"}})"), "duplicate name 'a'"},
      {"NoDtype", file_of(R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4),
       "wants dtype, shape and data_offsets"},
      {"NoShape", file_of(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4),
       "wants dtype, shape and data_offsets"},
      {"NoOffsets", file_of(R"({"a":{"dtype":"F32","shape":[1]}})", 4),
       "wants dtype, shape and data_offsets"},
      {"UnknownField", file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"b":1}})", 4),
       "unknown field 'b'"},
      {"FieldTwice", file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
       "appears twice"},
      {"UnknownDtype", one("F99", "1", "0,4", 4), "unknown dtype 'F99'"},
      {"DtypeIsANumber", file_of(R"({"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", 4), "a number"},
      {"TwoTensorsOfOneName", two(a4, tensor("a", "F32", "1", "4,8"), 8), "two tensors named 'a'"},
      {"SameNameInTwoSpellings", two(a4, tensor("\\u0061", "F32", "1", "4,8"), 8), "two tensors named 'a'"},
      // shapes
      {"NegativeSize", one("F32", "-1", "0,4", 4), "a negative number"},
      {"FractionalSize", one("F32", "1.5", "0,4", 4), "not whole"},
      {"SizeAbove64Bits", one("F32", "99999999999999999999999", "0,4", 4), "not whole or too large"},
      {"SizeAboveInt64", one("F32", "18446744073709551615", "0,4", 4), "too large"},
      {"ProductOverflows", one("F32", "4294967296,4294967296", "0,0", 0), "overflows"},
      {"ProductWrapsToTheRightSize", one("U8", "4294967296,4294967296,1", "0,0", 0), "overflows"},
      {"BytesOverflow", one("F64", "4611686018427387904", "0,0", 0), "does not fill"},
      {"HugeShapeInASmallFile", one("F32", "1000000000000", "0,4", 4), "does not fill"},
      {"NineDimensions", one("F32", "1,1,1,1,1,1,1,1,1", "0,4", 4), "more than 8 dimensions"},
      {"ShapeIsAText", file_of(R"({"a":{"dtype":"F32","shape":"1","data_offsets":[0,4]}})", 4), "a text"},
      {"ShapeHoldsAList", one("F32", "[1]", "0,4", 4), "a list"},
      {"ShapeTooSmallForItsBytes", one("F32", "1", "0,8", 8), "does not fill"},
      {"ShapeTooLargeForItsBytes", one("F32", "3", "0,8", 8), "does not fill"},
      // offsets
      {"OffsetsRunBackwards", one("F32", "1", "4,0", 4), "run backwards"},
      {"OneOffset", one("F32", "1", "0", 4), "wants two data_offsets"},
      {"ThreeOffsets", one("F32", "1", "0,4,4", 4), "more than two data_offsets"},
      {"NegativeOffset", one("F32", "1", "-4,0", 4), "a negative number"},
      {"OffsetsOfAllOnes", one("F32", "1", "18446744073709551612,18446744073709551615", 4), "cut short"},
      {"EndPastTheData", one("F32", "2", "0,8", 4), "cut short"},
      {"NoDataAtAll", one("F32", "1", "0,4", 0), "cut short"},
      {"HoleAtTheFront", one("F32", "1", "4,8", 8), "a hole in the data"},
      {"HoleInTheMiddle", two(a4, tensor("b", "F32", "1", "8,12"), 12), "a hole in the data"},
      {"TrailingBytes", one("F32", "1", "0,4", 5), "1 bytes after the last tensor"},
      {"BytesWithoutTensors", file_of("{}", 4), "4 bytes after the last tensor"},
      {"SamePlaceTwice", two(a4, tensor("b", "F32", "1", "0,4"), 4), "overlaps"},
      {"PartialOverlap", two(tensor("a", "F32", "2", "0,8"), tensor("b", "F32", "2", "4,12"), 12),
       "overlaps"},
      {"OneInsideAnother", two(tensor("a", "F32", "3", "0,12"), tensor("b", "F32", "1", "4,8"), 12),
       "overlaps"},
      {"EmptyTensorInsideAnother", two(tensor("a", "F32", "2", "0,8"), tensor("b", "F32", "0", "4,4"), 8),
       "overlaps"},
      // allowed
      {"NothingAtAllIsAllowed", file_of("{}"), nullptr},
      {"PaddedHeaderIsAllowed", file_of("{" + a4 + "}      ", 4), nullptr},
      {"ScalarIsAllowed", one("F32", "", "0,4", 4), nullptr},
      {"ZeroDimensionIsAllowed", one("F32", "3,0,5", "0,0", 0), nullptr},
      {"EmptyTensorsAtOnePlaceAreAllowed",
       two(tensor("a", "F32", "0", "0,0"), tensor("b", "F32", "0", "0,0"), 0), nullptr},
      {"DataInAnotherOrderThanNamesIsAllowed",
       two(tensor("a", "F32", "1", "4,8"), tensor("b", "F32", "1", "0,4"), 8), nullptr},
      {"EmptyNameIsAllowed", file_of("{" + tensor("", "F32", "1", "0,4") + "}", 4), nullptr},
      {"UnalignedDataIsAllowed", two(tensor("a", "U8", "1", "0,1"), tensor("b", "F32", "1", "1,5"), 5),
       nullptr},
  };
}

class Hostile : public ::testing::TestWithParam<Case> {};

TEST_P(Hostile, IsRefusedOrRead) {
  const Case& hostile = GetParam();
  std::string message;
  try {
    const SafetensorsView view(std::as_bytes(std::span(hostile.file)), "file");
    for (const TensorEntry& entry : view.entries()) {
      std::vector<float> values(static_cast<size_t>(entry.shape.count()));
      view.read(entry, values);
    }
  } catch (const Error& error) {
    message = error.what();
  }
  if (hostile.message == nullptr) {
    EXPECT_EQ(message, "");
  } else {
    EXPECT_THAT(message, HasSubstr(hostile.message));
    EXPECT_LT(message.size(), 300u);
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(Safetensors, Hostile, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return std::string(test.param.name); });

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Reads the whole table with little address space left: a file cannot ask for more memory than it brings.
TEST(HostileTable, NeedsLittleMemory) {
  const std::vector<Case> all = cases();
  const auto read_all = [&] {
    rlimit limit{256 << 20, 256 << 20};
    setrlimit(RLIMIT_AS, &limit);
    for (const Case& hostile : all) try {
        const SafetensorsView view(std::as_bytes(std::span(hostile.file)), "file");
      } catch (const Error&) {
      }
    std::exit(0);
  };
  EXPECT_EXIT(read_all(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace fovea
