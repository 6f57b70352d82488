# embed.cmake: turns FILE into a C++ source OUT that defines the std::string_view fovea::NAME, so that pages are
# edited as pages.
file(READ ${FILE} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include <string_view>
namespace fovea {
static constexpr unsigned char kBytes[] = {
${bytes}};
extern const std::string_view ${NAME};
const std::string_view ${NAME}(reinterpret_cast<const char*>(kBytes), sizeof(kBytes));
}  // namespace fovea
")
