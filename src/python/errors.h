// Errors of the library as exceptions of Python: the kind decides the class, the text is the command line's.
#pragma once

namespace fovea::python {

void translate_errors();

}  // namespace fovea::python
