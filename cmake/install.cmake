# Filled in with the package files; the program itself is installed by CMakeLists.txt.
