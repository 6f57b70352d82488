# cmake -D SOURCE=... -D WORK=... -D COMPILER=... -P refused.cmake
# Code that must not compile: in a copy of one header something is taken away or added, and the source that uses it is
# compiled with that copy. The compiler has to refuse it, and to name what is missing.
file(REMOVE_RECURSE ${WORK})

# header: under src/; from, to: what is replaced in the copy; source: under src/; expected: part of the compiler's message.
function(refused header from to source expected)
  file(READ ${SOURCE}/src/${header} text)
  string(REPLACE "${from}" "${to}" changed "${text}")
  if(changed STREQUAL text)
    message(SEND_ERROR "${header}: `${from}` is not there; this test must be changed with it")
    return()
  endif()
  file(WRITE ${WORK}/${header} "${changed}")
  execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -Werror=switch-enum -I${WORK} -I${SOURCE}/src ${SOURCE}/src/${source}
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status EQUAL 0)
    message(SEND_ERROR "src/${source} compiles although `${from}` of ${header} is now `${to}`")
  elseif(NOT output MATCHES "${expected}")
    message(SEND_ERROR "src/${source}: the compiler does not say `${expected}` but\n${output}")
  endif()
  file(REMOVE_RECURSE ${WORK})
endfunction()

# A model of the registry that cannot be run, or does not say whether it has attention.
set(decode "  std::unique_ptr<Decoding> decode(const Sentences& sources) const override {\n    return decoding(*this, sources);\n  }\n")
refused(models/luong.h "${decode}" "" models/registry.cc "abstract class")
refused(models/luong.h "bool has_attention() const" "bool attends() const" models/registry.cc "has_attention")
# A pattern without a record, and records without one of their pieces.
refused(attention/pattern.h "std::variant<Full," "std::variant<struct Unknown*, Full," attention/compile.cc "Record<.*Unknown")
refused(attention/pattern_records.h "static bool allowed(const Causal& c" "static bool seen(const Causal& c" attention/pattern.cc "allowed")
refused(attention/pattern_records.h "SameForAllBatches, NoStride, NoCuts, EachRowItsOwn" "SameForAllBatches, NoStride, NoCuts" attention/compile.cc "varies")
# A new score or selection that some switch does not know.
refused(attention/spec.h "enum class ScoreKind {" "enum class ScoreKind {\n  unknown," attention/spec.cc "unknown")
# Each of these has a switch of its own: the message names the file, not a header that it includes.
foreach(source attention/attention.cc attention/check_call.cc attention/reference.cc nn/attention.cc
        nn/attention_pooling.cc nn/decoder_attention.cc nn/runs.cc)
  refused(attention/spec.h "enum class ScoreKind {" "enum class ScoreKind {\n  unknown," ${source} "${source}:[^\n]*unknown")
endforeach()
# A score without a record.
refused(attention/spec_records.h "{ScoreKind::concat, \"concat\", \"concat\", false}," "" attention/spec.cc "outside the bounds")
refused(kernels/attention/row_attention.h "enum class SelectionKind {" "enum class SelectionKind {\n  unknown," kernels/attention/row_attention_tile.cc "unknown")
