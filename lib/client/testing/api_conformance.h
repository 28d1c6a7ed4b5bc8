// What our clients rely on, as a test suite for any API server: FakeApi here, the real one in its own
// tests. A user instantiates it with a function that makes a client:
//
//   INSTANTIATE_TEST_SUITE_P(Fake, ApiConformance, ::testing::Values([] { return RestClient(...); }));
//
// The suite needs the namespace "default", uses names of its own, and leaves nothing behind that would
// disturb another run.
#pragma once

#include <functional>

#include <gtest/gtest.h>

#include "lib/client/rest.h"

namespace keelson::client {

class ApiConformance : public ::testing::TestWithParam<std::function<RestClient()>> {
 protected:
  RestClient api_ = GetParam()();
};

}  // namespace keelson::client
