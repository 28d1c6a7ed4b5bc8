// Markers in Go's sources (+union, +enum) that our descriptors lack: unions, where a discriminator says
// which member is set (KEP-1027), and closed strings whose generated headers are in every precompiled
// header.
#include <fmt/format.h>

#include "lib/api/openapi/parts.h"

namespace keelson::api {
namespace {

struct Union {
  std::string_view message, discriminator;
  std::vector<std::pair<std::string_view, std::string_view>> members;  // field, value of the discriminator
};

const Union kUnions[] = {
    {"keelson.api.core.v1.AppArmorProfile", "type", {{"localhostProfile", "LocalhostProfile"}}},
    {"keelson.api.core.v1.SeccompProfile", "type", {{"localhostProfile", "LocalhostProfile"}}},
    {"keelson.api.flowcontrol.v1.LimitResponse", "type", {{"queuing", "Queuing"}}},
    {"keelson.api.flowcontrol.v1.PriorityLevelConfigurationSpec",
     "type",
     {{"exempt", "Exempt"}, {"limited", "Limited"}}},
    {"keelson.api.flowcontrol.v1.Subject",
     "kind",
     {{"group", "Group"}, {"serviceAccount", "ServiceAccount"}, {"user", "User"}}},
};

struct ClosedField {
  std::string_view field;  // full protobuf name
  std::vector<std::string_view> values;
};

const ClosedField kClosedFields[] = {
    {"keelson.api.discovery.v1.EndpointSlice.address_type", {"FQDN", "IPv4", "IPv6"}},
};

}  // namespace

std::span<const std::string_view> ClosedValues(const google::protobuf::FieldDescriptor* field) {
  for (const ClosedField& one : kClosedFields) {
    if (field->full_name() == one.field) return one.values;
  }
  return {};
}

std::string UnionsJson(const Descriptor* type) {
  for (const Union& one : kUnions) {
    if (type->full_name() != one.message) continue;
    std::string members;
    for (const auto& [field, value] : one.members) {
      members += fmt::format(R"({}"{}":"{}")", members.empty() ? "" : ",", field, value);
    }
    return fmt::format(R"([{{"discriminator":"{}","fields-to-discriminateBy":{{{}}}}}])", one.discriminator,
                       members);
  }
  return "";
}

}  // namespace keelson::api
