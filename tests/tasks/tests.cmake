fovea_test(tasks/translate_test unit)
fovea_test(tasks/explain_test unit)
fovea_test(tasks/classify_test unit)
