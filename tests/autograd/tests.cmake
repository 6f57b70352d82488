fovea_test(autograd/var_test unit)
