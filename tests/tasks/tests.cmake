fovea_test(tasks/translate_test unit)
fovea_test(tasks/explain_test unit)
fovea_test(tasks/encoder_test unit)
target_link_libraries(test_tasks_encoder_test PRIVATE nlohmann_json::nlohmann_json)
