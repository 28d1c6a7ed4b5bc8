#include "lib/api/openapi/operation.h"

#include <algorithm>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace keelson::api {
namespace {

namespace json = boost::json;

json::array Texts(std::span<const std::string_view> texts) {
  json::array out;
  for (std::string_view text : texts) out.emplace_back(json::string_view(text.data(), text.size()));
  return out;
}

json::object ParameterJson(const OpenApiParameter& parameter, OpenApiVersion version) {
  json::object type{{"type", parameter.type}, {"uniqueItems", true}};
  json::object out{{"description", parameter.description}, {"in", parameter.in}, {"name", parameter.name}};
  if (parameter.in == "path") out.emplace("required", true);
  if (version == OpenApiVersion::kV3) {
    out.emplace("schema", std::move(type));
  } else {
    for (auto& member : type) out.insert(member);
  }
  return out;
}

json::array ParametersJson(std::vector<OpenApiParameter> parameters, OpenApiVersion version) {
  std::sort(parameters.begin(), parameters.end());
  json::array out;
  for (const OpenApiParameter& parameter : parameters) out.push_back(ParameterJson(parameter, version));
  return out;
}

// The same schema for each media type.
json::object Content(std::span<const std::string_view> types, const json::value& schema) {
  json::object out;
  for (std::string_view type : types) {
    out.emplace(json::string_view(type.data(), type.size()), json::object{{"schema", schema}});
  }
  return out;
}

json::object Replies(const OpenApiOperation& operation, OpenApiVersion version) {
  json::value schema = json::parse(operation.reply_schema);
  json::object out;
  for (const auto& [code, name] : operation.replies) {
    json::object reply;
    if (version == OpenApiVersion::kV3) {
      reply.emplace("content", Content(operation.produces, schema));
    } else {
      reply.emplace("schema", schema);
    }
    reply.emplace("description", json::string_view(name.data(), name.size()));
    out.emplace(std::to_string(code), std::move(reply));
  }
  out.emplace("401", json::object{{"description", "Unauthorized"}});
  return out;
}

json::object OperationJson(const OpenApiOperation& operation, OpenApiVersion version) {
  json::object out{{"description", operation.description},
                   {"operationId", operation.id},
                   {"tags", json::array{json::value(operation.tag)}}};
  json::array parameters = ParametersJson(operation.parameters, version);
  const bool has_body = !operation.body_schema.empty();
  json::value body;
  if (has_body) body = json::parse(operation.body_schema);
  if (version == OpenApiVersion::kV2) {
    constexpr std::string_view kAnything[] = {"*/*"};
    const std::span<const std::string_view> anything(kAnything);
    out.emplace("consumes", Texts(operation.consumes.empty() ? anything : operation.consumes));
    out.emplace("produces", Texts(operation.produces));
    out.emplace("schemes", json::array{"https"});
    if (has_body) {
      json::object parameter{{"in", "body"}, {"name", "body"}, {"schema", body}};
      if (operation.body_required) parameter.emplace("required", true);
      parameters.insert(parameters.begin(), std::move(parameter));
    }
  } else if (has_body) {
    json::object request{{"content", Content(operation.consumes, body)}};
    if (operation.body_required) request.emplace("required", true);
    out.emplace("requestBody", std::move(request));
  }
  if (!parameters.empty()) out.emplace("parameters", std::move(parameters));
  out.emplace("responses", Replies(operation, version));
  for (const auto& member : operation.extensions) out.insert(member);
  return out;
}

}  // namespace

std::string PathItemJson(std::vector<OpenApiOperation> operations, OpenApiVersion version) {
  std::vector<OpenApiParameter> shared = operations.front().parameters;
  auto has = [](const OpenApiOperation& operation, const OpenApiParameter& parameter) {
    const auto& all = operation.parameters;
    return std::find(all.begin(), all.end(), parameter) != all.end();
  };
  std::erase_if(shared, [&](const OpenApiParameter& parameter) {
    return !std::all_of(operations.begin(), operations.end(),
                        [&](const OpenApiOperation& operation) { return has(operation, parameter); });
  });
  json::object item;
  for (OpenApiOperation& operation : operations) {
    std::erase_if(operation.parameters, [&](const OpenApiParameter& parameter) {
      return std::find(shared.begin(), shared.end(), parameter) != shared.end();
    });
    item.emplace(operation.method, OperationJson(operation, version));
  }
  if (!shared.empty()) item.emplace("parameters", ParametersJson(std::move(shared), version));
  return json::serialize(item);
}

}  // namespace keelson::api
