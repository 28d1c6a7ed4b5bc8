// Internal to lib/k8s: schemas of custom resources.
#pragma once

#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/k8s/validate_internal.h"

namespace keelson::k8s {

// Whether it is structural (every field says its type, logical operators say nothing new) and keeps off what
// custom resources do not support. Rules in CEL and defaults are not looked into.
void CheckSchema(const api::apiextensions::v1::JSONSchemaProps& schema, const Path& path,
                 FieldErrors& errors);

}  // namespace keelson::k8s
