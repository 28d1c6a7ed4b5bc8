// --authorization-mode=ABAC: rights from a file, a policy a line, for clusters that have always had one.
//
//   {"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy",
//    "spec":{"user":"bob","namespace":"*","resource":"pods","apiGroup":"*","readonly":true}}
//
// Empty lines and those that begin with # are passed over. Lines without apiVersion are of the form of
// Kubernetes 1.0, where what is left out means everything.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "controlplane/apiserver/authz/authorizer.h"

namespace keelson::apiserver {

// `path` is for messages. kInvalid names the line.
Result<std::shared_ptr<const Authorizer>> NewAbacAuthorizer(const std::string& path, std::string_view text);

}  // namespace keelson::apiserver
