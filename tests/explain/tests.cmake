fovea_test(explain/heatmap_test unit)
