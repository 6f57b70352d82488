fovea_test(explain/heatmap_test unit)
fovea_test(explain/report_test unit)
fovea_test(explain/text_map_test unit)
fovea_test(explain/overlay_test unit)
fovea_test(explain/glimpse_figure_test unit)
fovea_test(explain/film_strip_test unit)
fovea_test(explain/attention_maps_test unit)
fovea_test(explain/attention_page_test unit)
fovea_test(explain/chart_test unit)

# The page in a real browser. Only `make test-page` runs these: it installs the browser first.
fovea_test_program(explain/page_model)
add_test(NAME explain/page_browser_test
         COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/page_browser_test.py $<TARGET_FILE:fovea_cli>
                 $<TARGET_FILE:test_explain_page_model> chromium)
set_tests_properties(explain/page_browser_test PROPERTIES LABELS browser TIMEOUT 600
  ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
fovea_test(explain/pattern_map_test unit)
