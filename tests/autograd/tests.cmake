fovea_test(autograd/var_test unit)
fovea_test(autograd/ops_grad_test grad)
