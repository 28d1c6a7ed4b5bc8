// Schemas and objects of custom resources from JSON, for tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "lib/k8s/field_error.h"
#include "lib/k8s/schema/structural_schema.h"

namespace keelson::k8s::testing {

// All abort on malformed input.
api::apiextensions::v1::JSONSchemaProps SchemaProps(std::string_view json);
std::shared_ptr<const StructuralSchema> CompileSchema(std::string_view json);
boost::json::value Tree(std::string_view json);
// One line an error.
std::string Lines(const FieldErrors& errors);

}  // namespace keelson::k8s::testing
