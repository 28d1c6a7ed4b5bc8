// --authorization-mode=ABAC: policies from a file, one per line.
//
//   {"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy",
//    "spec":{"user":"bob","namespace":"*","resource":"pods","apiGroup":"*","readonly":true}}
//
// Empty lines and lines that start with # are skipped. Lines without apiVersion have the format of
// Kubernetes 1.0, where missing fields match everything.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "controlplane/apiserver/authz/authorizer.h"

namespace keelson::apiserver {

// `path` is for messages. kInvalid names the line.
Result<std::shared_ptr<const Authorizer>> NewAbacAuthorizer(const std::string& path, std::string_view text);

}  // namespace keelson::apiserver
