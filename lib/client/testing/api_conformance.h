// What clients of ours count on, as a suite that any API server can be held to: FakeApi here, the real one
// from its own tests. A user instantiates it with a function that makes a client:
//
//   INSTANTIATE_TEST_SUITE_P(Fake, ApiConformance, ::testing::Values([] { return RestClient(...); }));
//
// The suite uses the namespace "default", which must exist, names of its own, and leaves nothing behind that
// another run would trip over.
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
