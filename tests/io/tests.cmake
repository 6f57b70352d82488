fovea_test(io/file_test unit)
fovea_test(io/json_test unit)
fovea_test(io/safetensors_test unit)
fovea_test(io/safetensors_hostile_test unit)
