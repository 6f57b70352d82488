fovea_test(infer/beam_test unit)
