fovea_test(tasks/translate_test unit)
