// Kubernetes objects within custom resources.
#pragma once

#include <boost/json/value.hpp>

#include "lib/k8s/field_error.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s {

// Checks apiVersion, kind and metadata of the objects that x-kubernetes-embedded-resource marks. Pure and thread safe.
FieldErrors ValidateEmbeddedObjects(const StructuralSchema& schema, const boost::json::value& object);

// ValidateEmbeddedObjects() for a part of an object. `is_object`: the part is a Kubernetes object itself. `place`: where
// it is, for errors; empty for the object.
FieldErrors ValidateEmbeddedPart(const SchemaNodes& nodes, uint32_t node, bool is_object,
                                 const boost::json::value& value, const std::string& place);

}  // namespace keelson::k8s
