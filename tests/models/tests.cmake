fovea_test(models/transformer_test unit)
