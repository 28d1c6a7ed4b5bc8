// Internal to lib/api/openapi: operations of OpenAPI paths, and their parameters.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "lib/api/openapi/parts.h"

namespace keelson::api {

struct OpenApiParameter {
  std::string name, type;  // type: string, boolean or integer
  std::string in;          // query or path
  std::string description;

  auto operator<=>(const OpenApiParameter&) const = default;
};

// The parameter of get.
OpenApiParameter ResourceVersionParameter();
// Parameters of list and watch. Deleting a collection takes the same, except for those about watching.
std::vector<OpenApiParameter> ListParameters();
std::vector<OpenApiParameter> DeleteCollectionParameters();
std::vector<OpenApiParameter> DeleteParameters();
// Parameters of create and update; a `patch` also has `force`.
std::vector<OpenApiParameter> WriteParameters(bool patch);
// The fields of an options kind (PodLogOptions) as URL parameters.
std::vector<OpenApiParameter> OptionParameters(const Descriptor* options);
OpenApiParameter PrettyParameter();
// The parameters in a path's braces: {namespace}, {name}, {path}.
std::vector<OpenApiParameter> PathParameters(std::string_view path);

// One method at one path.
struct OpenApiOperation {
  std::string method;  // get, put, ...
  std::string id, tag, description;
  std::vector<OpenApiParameter> parameters;
  std::string body_schema;  // JSON; empty: there is no body
  bool body_required = true;
  std::span<const std::string_view> consumes, produces;   // media types; in version 3 those of the body
  std::string reply_schema;                               // JSON
  std::vector<std::pair<int, std::string_view>> replies;  // codes that send reply_schema
  boost::json::object extensions;                         // x-kubernetes-...
};

// The path item as JSON. Parameters that all operations share are listed once, beside them; sorted by name.
std::string PathItemJson(std::vector<OpenApiOperation> operations, OpenApiVersion version);

}  // namespace keelson::api
