// Internal to lib/api: operations of OpenAPI paths, and their parameters.
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

// What a list or watch takes; a deletion of a collection takes the same but what makes it a watch.
std::vector<OpenApiParameter> ListParameters();
std::vector<OpenApiParameter> DeleteCollectionParameters();
std::vector<OpenApiParameter> DeleteParameters();
// What creation and change take; `patch` can be forced as well.
std::vector<OpenApiParameter> WriteParameters(bool patch);
// The fields of a kind of options (PodLogOptions), which are parameters of the URL.
std::vector<OpenApiParameter> OptionParameters(const Descriptor* options);
OpenApiParameter PrettyParameter();
// Those of a path's braces: {namespace}, {name}, {path}.
std::vector<OpenApiParameter> PathParameters(std::string_view path);

// One method at one path.
struct OpenApiOperation {
  std::string method;  // get, put, ...
  std::string id, tag, description;
  std::vector<OpenApiParameter> parameters;
  const Descriptor* body = nullptr;
  bool body_required = true;
  std::span<const std::string_view> consumes, produces;   // media types; of the body in version 3
  std::string reply_schema;                               // JSON
  std::vector<std::pair<int, std::string_view>> replies;  // codes with the schema, and their names
  boost::json::object extensions;                         // x-kubernetes-...
};

// The path item. What all operations take stands once, beside them; names come in order.
std::string PathItemJson(std::vector<OpenApiOperation> operations, OpenApiVersion version);

}  // namespace keelson::api
