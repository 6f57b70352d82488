fovea_test(models/transformer_test unit)
fovea_test(models/rnn_test unit)
target_link_libraries(test_models_rnn_test PRIVATE nlohmann_json::nlohmann_json)
