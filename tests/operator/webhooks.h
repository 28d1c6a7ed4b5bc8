// The operator's webhooks: conversion between the two versions of a Fleet, a mutating and a validating one.
//
//   v1: spec.size: 3, spec.ship: "name:tag"
//   v2: spec.ships: 3, spec.image: {name: name, tag: tag}
#pragma once

#include <memory>
#include <string>

#include <boost/json.hpp>

#include "lib/base/error.h"
#include "lib/http/server/server.h"

namespace keelson::test_operator {

inline constexpr int kMostShips = 5;

// The object in another apiVersion.
boost::json::object ConvertFleet(boost::json::object fleet, const std::string& api_version);

// Serves /convert, /mutate and /validate. On 127.0.0.1.
Result<std::unique_ptr<http::Server>> ServeWebhooks(uint16_t port, const std::string& certificate_file,
                                                    const std::string& key_file);

}  // namespace keelson::test_operator
