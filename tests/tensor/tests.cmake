fovea_test(tensor/tensor_test unit)
