// The message of the Error that a call throws, for tests of refusals.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace fovea {

// "no error" if the call throws none. Every message is one line.
std::string error_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "no error";
}

}  // namespace fovea
