// Any bytes as a file of records: refused with an Error, or records that read back, and room for one more.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/error.h"
#include "io/record_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string path = "/dev/shm/fovea-records-" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  std::array<std::byte, 8> record{}, read{};
  const fovea::RecordKey key{1, 2};
  try {
    {
      fovea::RecordFile file(path, {.content = "numbers", .bytes = record.size()});
      file.add(key, record);
      file.release();
    }
    fovea::RecordFile again(path, {.content = "numbers", .bytes = record.size()});
    again.read(key, read);
    if (again.size() < 1) std::abort();
  } catch (const fovea::Error&) {
  }
  unlink(path.c_str());
  return 0;
}
