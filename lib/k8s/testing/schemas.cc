#include "lib/k8s/testing/schemas.h"

#include <cstdio>
#include <cstdlib>

#include <boost/json/parse.hpp>

#include "lib/api/codec/codec.h"

namespace keelson::k8s::testing {

namespace {

[[noreturn]] void Fail(std::string_view what, std::string_view input) {
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(input.size()), input.data());
  std::abort();
}

}  // namespace

api::apiextensions::v1::JSONSchemaProps SchemaProps(std::string_view json) {
  api::apiextensions::v1::JSONSchemaProps props;
  if (Result<> decoded = api::DecodeJson(json, props); !decoded) Fail(decoded.error().message(), json);
  return props;
}

std::shared_ptr<const StructuralSchema> CompileSchema(std::string_view json) {
  auto schema = StructuralSchema::Compile(SchemaProps(json));
  if (!schema) Fail(schema.error().message(), json);
  return *schema;
}

boost::json::value Tree(std::string_view json) {
  boost::json::error_code error;
  boost::json::value value = boost::json::parse({json.data(), json.size()}, error);
  if (error) Fail(error.message(), json);
  return value;
}

std::string Lines(const FieldErrors& errors) {
  std::string out;
  for (const FieldError& error : errors) out += error.ToString() + "\n";
  return out;
}

}  // namespace keelson::k8s::testing
