#include "cni/agent/policy/wire.h"

#include <netinet/in.h>

namespace keelson::cni::agent {
namespace {

using client::WireField;

// Field numbers of ObjectMeta, Time, LabelSelector and LabelSelectorRequirement.
constexpr int kName = 1, kNamespace = 3, kUid = 5, kResourceVersion = 6, kCreated = 8, kDeleted = 9,
              kLabels = 11, kAnnotations = 12;
constexpr int kSeconds = 1;
constexpr int kMatchLabels = 1, kMatchExpressions = 2;
constexpr int kKey = 1, kOperator = 2, kValues = 3;

constexpr char kMirrorAnnotation[] = "kubernetes.io/config.mirror";

Result<policy::Selector::Requirement> ParseRequirement(std::string_view raw) {
  policy::Selector::Requirement out{.op = policy::Selector::Op::kNothing};
  KEELSON_RETURN_IF_ERROR(client::ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == kKey) out.key = field.payload;
    if (field.number == kOperator) out.op = OperatorOf(field.payload);
    if (field.number == kValues) out.values.emplace_back(field.payload);
    return {};
  }));
  return out;
}

}  // namespace

policy::Selector::Op OperatorOf(std::string_view name) {
  if (name == "In") return policy::Selector::Op::kIn;
  if (name == "NotIn") return policy::Selector::Op::kNotIn;
  if (name == "Exists") return policy::Selector::Op::kExists;
  if (name == "DoesNotExist") return policy::Selector::Op::kDoesNotExist;
  return policy::Selector::Op::kNothing;
}

Result<std::pair<std::string, std::string>> ParseEntry(std::string_view raw) {
  std::pair<std::string, std::string> out;
  KEELSON_RETURN_IF_ERROR(client::ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == 1) out.first = field.payload;
    if (field.number == 2) out.second = field.payload;
    return {};
  }));
  return out;
}

Result<Metadata> ParseMetadata(std::string_view raw) {
  Metadata out;
  KEELSON_RETURN_IF_ERROR(client::ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    switch (field.number) {
      case kName:
        out.name = field.payload;
        break;
      case kNamespace:
        out.ns = field.payload;
        break;
      case kUid:
        out.uid = field.payload;
        break;
      case kResourceVersion:
        out.resource_version = field.payload;
        break;
      case kCreated:
        return client::ForEachWireField(field.payload, [&](const WireField& time) -> Result<> {
          if (time.number == kSeconds) out.created = static_cast<int64_t>(time.value);
          return {};
        });
      case kDeleted:
        out.deleted = true;
        break;
      case kLabels: {
        KEELSON_ASSIGN_OR_RETURN(auto entry, ParseEntry(field.payload));
        out.labels.insert_or_assign(std::move(entry.first), std::move(entry.second));
        break;
      }
      case kAnnotations: {
        KEELSON_ASSIGN_OR_RETURN(auto entry, ParseEntry(field.payload));
        if (entry.first == kMirrorAnnotation) out.mirror = std::move(entry.second);
        break;
      }
      default:
        break;
    }
    return {};
  }));
  return out;
}

Result<policy::Selector> ParseSelector(std::string_view raw) {
  policy::Selector out;
  policy::Labels equal;  // sorted, so that equal selectors have equal texts
  KEELSON_RETURN_IF_ERROR(client::ForEachWireField(raw, [&](const WireField& field) -> Result<> {
    if (field.number == kMatchLabels) {
      KEELSON_ASSIGN_OR_RETURN(auto entry, ParseEntry(field.payload));
      equal.insert_or_assign(std::move(entry.first), std::move(entry.second));
    }
    if (field.number == kMatchExpressions) {
      KEELSON_ASSIGN_OR_RETURN(auto requirement, ParseRequirement(field.payload));
      out.requirements.push_back(std::move(requirement));
    }
    return {};
  }));
  for (auto& [key, value] : equal) {
    out.requirements.push_back({.key = key, .op = policy::Selector::Op::kIn, .values = {value}});
  }
  return out;
}

std::optional<uint8_t> ProtocolNumber(std::string_view name) {
  if (name.empty() || name == "TCP") return uint8_t{IPPROTO_TCP};
  if (name == "UDP") return uint8_t{IPPROTO_UDP};
  if (name == "SCTP") return uint8_t{IPPROTO_SCTP};
  return std::nullopt;
}

}  // namespace keelson::cni::agent
