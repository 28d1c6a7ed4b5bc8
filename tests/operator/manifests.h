// What the operator installs in the cluster.
#pragma once

#include <string>

#include "lib/base/error.h"
#include "tests/operator/json_api.h"

namespace keelson::test_operator {

inline constexpr char kFleets[] = "/apis/fleets.example.com/v2/fleets";  // of all namespaces

// The CustomResourceDefinition and the webhook configurations, with `url` for the webhooks and `ca_pem` to verify them.
// Waits until fleets are served.
Result<> Install(const JsonApi& api, const std::string& url, const std::string& ca_pem);

}  // namespace keelson::test_operator
