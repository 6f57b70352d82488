fovea_test(attention/spec_test unit)
fovea_test(attention/compile_test unit)
fovea_test(attention/reference_test unit grad)
fovea_test(attention/named_test unit)
