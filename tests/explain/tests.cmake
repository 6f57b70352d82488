fovea_test(explain/heatmap_test unit)
fovea_test(explain/report_test unit)
