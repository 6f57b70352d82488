fovea_test(attention/spec_test unit)
fovea_test(attention/compile_test unit)
fovea_test(attention/reference_test unit grad)
fovea_test(attention/named_test unit)
fovea_test(attention/strided_test unit grad)
fovea_test_program(attention/grid_test)
# The same cases at every level; one that the CPU lacks is skipped.
foreach(level scalar ${FOVEA_LEVELS})
  add_test(NAME attention/grid_test.${level} COMMAND test_attention_grid_test)
  set_tests_properties(attention/grid_test.${level} PROPERTIES LABELS "grad;per_isa"
    ENVIRONMENT "FOVEA_GRID_LEVEL=${level}")
endforeach()
fovea_test(attention/edge_test unit grad)
fovea_test(attention/draws_test unit)
