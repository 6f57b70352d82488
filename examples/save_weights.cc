// Weights in the field's own format: a layer is saved as safetensors under PyTorch's names, and read back.
#include <fovea/fovea.h>
#include <fovea/nn/weights.h>

#include <cstdio>
#include <cstring>
#include <filesystem>

using namespace fovea;

int main() {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / "fovea_example_layer.safetensors";
  Rng first(1), second(2);
  const nn::TransformerEncoderLayer saved({.width = 32, .heads = 4, .hidden = 64}, first);
  const nn::TransformerEncoderLayer loaded({.width = 32, .heads = 4, .hidden = 64}, second);
  nn::save_weights(saved, file);
  nn::load_weights(loaded, file);
  for (const nn::NamedParameter& parameter : saved.parameters())
    std::printf("%-24s %ld numbers\n", parameter.name.c_str(), static_cast<long>(parameter.value.count()));

  nn::Context context;
  const Var x(nn::normal({1, 5, 32}, 0, 1, first));
  const Tensor a = saved(x, context).value().contiguous(), b = loaded(x, context).value().contiguous();
  std::filesystem::remove(file);
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.count()) * sizeof(float)) == 0 ? 0 : 1;
}
