fovea_test(nn/module_test unit)
