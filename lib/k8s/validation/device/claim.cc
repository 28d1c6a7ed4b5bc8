// Device classes, claims and claim templates.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/codec/codec.h"
#include "lib/base/text.h"
#include "lib/cel/program.h"
#include "lib/k8s/text/json_problem.h"
#include "lib/k8s/validation/device/parts.h"
#include "lib/k8s/validation/device/selector_expression.h"
#include "lib/k8s/validation/rule_table.h"
#include "lib/k8s/validation/template.h"

namespace keelson::k8s {

void RegisterResourceSliceRules(RuleTable& table);

namespace {

constexpr int kMaxRequests = 32, kMaxSelectors = 32, kMaxConstraints = 32, kMaxConfigs = 32,
              kMaxSubRequests = 8;
constexpr int kMaxReserved = 256, kMaxResults = 32, kMaxConditions = 4;
constexpr size_t kExpressionBytes = 10 * 1024, kRawBytes = 10 * 1024, kPoolBytes = 253;
constexpr size_t kDomainBytes = 63, kIdBytes = 32;
constexpr char kRequestReference[] =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

// The names of a claim's requests, "request" and "request/subrequest".
std::set<std::string> RequestNames(const resourcev1::DeviceClaim& claim) {
  std::set<std::string> names;
  for (const resourcev1::DeviceRequest& request : claim.requests()) {
    names.insert(request.name());
    for (const auto& sub : request.first_available()) names.insert(request.name() + "/" + sub.name());
  }
  return names;
}

void CheckLabelName(const std::string& name, const Path& path, FieldErrors& errors) {
  if (name.empty()) {
    errors.push_back(Required(path));
  } else {
    AddProblems(CheckDns1123Label(name), name, path, errors);
  }
}

void CheckReference(const std::string& name, const std::set<std::string>& known, const Path& path,
                    FieldErrors& errors) {
  const std::vector<std::string_view> segments = Split(name, '/');
  if (segments.size() > 2) {
    errors.push_back(Invalid(path, name, kRequestReference));
    return;
  }
  for (std::string_view segment : segments) CheckLabelName(std::string(segment), path, errors);
  if (!known.count(name)) errors.push_back(Invalid(path, name, kRequestReference));
}

void CheckReferences(const Strings& names, const std::set<std::string>& known, const Path& path,
                     FieldErrors& errors) {
  CheckUnique(
      names, kMaxRequests, path, errors, [](const std::string& name) { return name; },
      [&](const std::string& name, const Path& place) { CheckReference(name, known, place, errors); });
}

template <typename Request>
void CheckExact(const Request& request, const Path& path, FieldErrors& errors) {
  CheckName(request.device_class_name(), CheckDns1123Subdomain, path.Child("deviceClassName"), errors);
  CheckSelectors(request.selectors(), path.Child("selectors"), errors);
  const Path count = path.Child("count");
  if (request.allocation_mode() == "All") {
    if (request.count() != 0) {
      errors.push_back(Invalid(count, request.count(), "must not be specified when allocationMode is 'All'"));
    }
  } else if (request.allocation_mode() == "ExactCount") {
    if (request.count() <= 0) errors.push_back(Invalid(count, request.count(), "must be greater than zero"));
  } else {
    errors.push_back(
        NotSupported(path.Child("allocationMode"), request.allocation_mode(), {"All", "ExactCount"}));
  }
  const Path tolerations = path.Child("tolerations");
  for (int i = 0; i < request.tolerations_size(); ++i) {
    CheckDeviceToleration(request.tolerations(i), tolerations.Index(i), errors);
  }
}

void CheckDeviceRequest(const resourcev1::DeviceRequest& request, const Path& path, FieldErrors& errors) {
  CheckLabelName(request.name(), path.Child("name"), errors);
  const bool choice = !request.first_available().empty();
  if (!choice && !request.has_exactly()) {
    errors.push_back(Required(path, "exactly one of `exactly` or `firstAvailable` is required"));
  } else if (choice && request.has_exactly()) {
    errors.push_back(
        Invalid(path, "null",
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"));
  } else if (choice) {
    CheckUnique(
        request.first_available(), kMaxSubRequests, path.Child("firstAvailable"), errors,
        [](const auto& sub) { return sub.name(); },
        [&](const resourcev1::DeviceSubRequest& sub, const Path& place) {
          CheckLabelName(sub.name(), place.Child("name"), errors);
          CheckExact(sub, place, errors);
        });
  } else {
    CheckExact(request.exactly(), path.Child("exactly"), errors);
  }
}

void CheckConstraint(const resourcev1::DeviceConstraint& constraint, const std::set<std::string>& names,
                     const Path& path, FieldErrors& errors) {
  CheckReferences(constraint.requests(), names, path.Child("requests"), errors);
  if (constraint.has_match_attribute()) {
    CheckQualifiedDeviceName(constraint.match_attribute(), true, path.Child("matchAttribute"), errors);
  } else if (constraint.has_distinct_attribute()) {
    CheckQualifiedDeviceName(constraint.distinct_attribute(), true, path.Child("distinctAttribute"), errors);
  } else {
    errors.push_back(Required(path,
                              "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but "
                              "multiple fields are set"));
  }
}

void CheckDevices(const resourcev1::DeviceClaim& claim, const Path& path, FieldErrors& errors) {
  const std::set<std::string> names = RequestNames(claim);
  CheckUnique(
      claim.requests(), kMaxRequests, path.Child("requests"), errors,
      [](const auto& request) { return request.name(); },
      [&](const auto& request, const Path& place) { CheckDeviceRequest(request, place, errors); });
  CheckList(
      claim.constraints(), kMaxConstraints, path.Child("constraints"), errors,
      [&](const auto& constraint, const Path& place) { CheckConstraint(constraint, names, place, errors); });
  CheckList(claim.config(), kMaxConfigs, path.Child("config"), errors,
            [&](const auto& config, const Path& place) {
              CheckReferences(config.requests(), names, place.Child("requests"), errors);
              CheckOpaque(config.device_configuration(), place, errors);
            });
}

void CheckResourceClaim(const resourcev1::ResourceClaim& object, FieldErrors& errors) {
  const Path spec("spec");
  CheckDevices(object.spec().devices(), spec.Child("devices"), errors);
}

void CheckResourceClaimUpdate(const resourcev1::ResourceClaim& object, const resourcev1::ResourceClaim& old,
                              FieldErrors& errors) {
  CheckFrozen(object.spec(), old.spec(), Path("spec"), errors);
}

void CheckAllocation(const resourcev1::AllocationResult& allocation, const std::set<std::string>& names,
                     const Path& path, FieldErrors& errors) {
  const Path devices = path.Child("devices");
  CheckList(allocation.devices().results(), kMaxResults, devices.Child("results"), errors,
            [&](const resourcev1::DeviceRequestAllocationResult& result, const Path& place) {
              CheckReference(result.request(), names, place.Child("request"), errors);
              CheckCsiDriverName(result.driver(), place.Child("driver"), errors);
              CheckPoolName(result.pool(), place.Child("pool"), errors);
              AddProblems(CheckDns1123Label(result.device()), result.device(), place.Child("device"), errors);
              CheckBindingConditions(result.binding_conditions(), result.binding_failure_conditions(), place,
                                     errors);
              if (result.has_share_id()) CheckShareId(result.share_id(), place.Child("shareID"), errors);
              const Path tolerations = place.Child("tolerations");
              for (int i = 0; i < result.tolerations_size(); ++i) {
                CheckDeviceToleration(result.tolerations(i), tolerations.Index(i), errors);
              }
            });
  CheckList(allocation.devices().config(), 2 * kMaxConfigs, devices.Child("config"), errors,
            [&](const resourcev1::DeviceAllocationConfiguration& config, const Path& place) {
              CheckEnum(config.source(), {"FromClaim", "FromClass"}, place.Child("source"), errors);
              CheckReferences(config.requests(), names, place.Child("requests"), errors);
              CheckOpaque(config.device_configuration(), place, errors);
            });
  if (allocation.has_node_selector()) {
    CheckNodeSelector(allocation.node_selector(), path.Child("nodeSelector"), errors);
  }
}

void CheckReserved(const resourcev1::ResourceClaim& object, const resourcev1::ResourceClaim& old,
                   const Path& path, FieldErrors& errors) {
  const auto& reserved = object.status().reserved_for();
  CheckUnique(
      reserved, kMaxReserved, path, errors, [](const auto& consumer) { return consumer.uid(); },
      [&](const resourcev1::ResourceClaimConsumerReference& consumer, const Path& place) {
        if (consumer.resource().empty()) errors.push_back(Required(place.Child("resource")));
        if (consumer.name().empty()) errors.push_back(Required(place.Child("name")));
        if (consumer.uid().empty()) errors.push_back(Required(place.Child("uid")));
      });
  if (reserved.empty()) return;
  if (!object.status().has_allocation()) {
    errors.push_back(Forbidden(path, "may not be specified when `allocated` is not set"));
    return;
  }
  if (!object.metadata().has_deletion_timestamp()) return;
  const auto& before = old.status().reserved_for();
  for (const auto& consumer : reserved) {
    const bool known = std::any_of(before.begin(), before.end(),
                                   [&](const auto& other) { return SameMessage(consumer, other); });
    if (known) continue;
    errors.push_back(Forbidden(
        path, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"));
    return;
  }
}

void CheckResourceClaimStatus(const resourcev1::ResourceClaim& object, const resourcev1::ResourceClaim& old,
                              FieldErrors& errors) {
  const Path path("status");
  const resourcev1::ResourceClaimStatus& status = object.status();
  CheckReserved(object, old, path.Child("reservedFor"), errors);
  CheckDeviceStatuses(status, path.Child("devices"), errors);
  if (!status.has_allocation()) return;
  const Path allocation = path.Child("allocation");
  if (old.status().has_allocation()) {
    CheckFrozen(status.allocation(), old.status().allocation(), allocation, errors);
  } else {
    CheckAllocation(status.allocation(), RequestNames(object.spec().devices()), allocation, errors);
  }
}

void CheckTemplate(const resourcev1::ResourceClaimTemplate& object, FieldErrors& errors) {
  const Path spec("spec");
  const Path claim = spec.Child("spec");
  CheckTemplateMeta(object.spec().metadata(), spec.Child("metadata"), errors);
  CheckDevices(object.spec().spec().devices(), claim.Child("devices"), errors);
}

void CheckTemplateUpdate(const resourcev1::ResourceClaimTemplate& object,
                         const resourcev1::ResourceClaimTemplate& old, FieldErrors& errors) {
  CheckFrozen(object.spec(), old.spec(), Path("spec"), errors);
}

void CheckDeviceClass(const resourcev1::DeviceClass& object, FieldErrors& errors) {
  const Path path("spec");
  const resourcev1::DeviceClassSpec& spec = object.spec();
  CheckSelectors(spec.selectors(), path.Child("selectors"), errors);
  CheckList(spec.config(), kMaxConfigs, path.Child("config"), errors,
            [&](const auto& config, const Path& place) {
              CheckOpaque(config.device_configuration(), place, errors);
            });
  if (spec.has_extended_resource_name() && !IsExtendedResource(spec.extended_resource_name())) {
    errors.push_back(Invalid(path.Child("extendedResourceName"), spec.extended_resource_name(),
                             "must be a valid extended resource name"));
  }
}

}  // namespace

void CheckQualifiedDeviceName(std::string_view name, bool needs_domain, const Path& path,
                              FieldErrors& errors) {
  if (name.empty()) {
    errors.push_back(Required(path, needs_domain ? "" : "name required"));
    return;
  }
  const std::vector<std::string_view> parts = Split(name, '/');
  if (needs_domain && parts.size() == 1) {
    errors.push_back(Invalid(path, name, "must include a domain"));
    return;
  }
  if (parts.size() > 2) {
    errors.push_back(Invalid(path, name, "a valid C identifier must not contain more than one slash"));
    return;
  }
  const std::string_view id = parts.back();
  if (parts.size() == 2) {
    if (parts[0].empty()) {
      errors.push_back(Required(path, "the domain must not be empty"));
    } else {
      if (parts[0].size() > kDomainBytes) errors.push_back(TooLong(path, kDomainBytes));
      AddProblems(CheckDns1123Subdomain(parts[0]), parts[0], path, errors);
    }
  }
  if (id.empty()) {
    errors.push_back(Required(path, "the name must not be empty"));
    return;
  }
  if (id.size() > kIdBytes) errors.push_back(TooLong(path, kIdBytes));
  AddProblems(CheckCIdentifier(id), id, path, errors);
}

void CheckPoolName(const std::string& name, const Path& path, FieldErrors& errors) {
  if (name.empty()) {
    errors.push_back(Required(path));
    return;
  }
  if (name.size() > kPoolBytes) errors.push_back(TooLong(path, kPoolBytes));
  for (std::string_view part : Split(name, '/')) {
    AddProblems(CheckDns1123Subdomain(part), part, path, errors);
  }
}

void CheckOpaque(const resourcev1::DeviceConfiguration& configuration, const Path& path,
                 FieldErrors& errors) {
  const Path opaque = path.Child("opaque");
  if (!configuration.has_opaque()) {
    errors.push_back(Required(opaque));
    return;
  }
  CheckCsiDriverName(configuration.opaque().driver(), opaque.Child("driver"), errors);
  CheckParameters(configuration.opaque().parameters().raw(), opaque.Child("parameters"), errors);
}

void CheckParameters(const std::string& raw, const Path& path, FieldErrors& errors) {
  if (raw.empty()) {
    errors.push_back(Required(path));
  } else if (raw.size() > kRawBytes) {
    errors.push_back(TooLong(path, kRawBytes));
  } else if (const std::string problem = JsonProblem(raw); !problem.empty()) {
    errors.push_back(Invalid(path, "<value omitted>", "error parsing data as JSON: " + problem));
  } else if (raw == "null") {
    errors.push_back(Required(path));
  } else if (raw.front() != '{') {
    errors.push_back(Invalid(path, "<value omitted>", "must be a valid JSON object"));
  }
}

void CheckSelectors(const google::protobuf::RepeatedPtrField<resourcev1::DeviceSelector>& selectors,
                    const Path& path, FieldErrors& errors) {
  CheckList(selectors, kMaxSelectors, path, errors,
            [&](const resourcev1::DeviceSelector& selector, const Path& place) {
              const Path cel = place.Child("cel");
              const Path expression = cel.Child("expression");
              if (!selector.has_cel()) {
                errors.push_back(Required(cel));
              } else if (selector.cel().expression().size() > kExpressionBytes) {
                errors.push_back(TooLong(expression, kExpressionBytes));
              } else if (auto program = CompileDeviceSelector(selector.cel().expression()); !program) {
                const Error& error = program.error();
                errors.push_back(error.Is(Code::kForbidden)
                                     ? Forbidden(expression, error.message())
                                     : Invalid(expression, selector.cel().expression(), error.message()));
              }
            });
}

void CheckDeviceToleration(const resourcev1::DeviceToleration& toleration, const Path& path,
                           FieldErrors& errors) {
  const std::string& op = toleration.operator_();
  if (!toleration.key().empty()) CheckLabelKey(toleration.key(), path.Child("key"), errors);
  if (op == "Exists") {
    if (!toleration.value().empty()) {
      errors.push_back(
          Invalid(path.Child("value"), toleration.value(), "must be empty for operator `Exists`"));
    }
  } else if (op == "Equal") {
    AddProblems(CheckLabelValue(toleration.value()), toleration.value(), path.Child("value"), errors);
    if (toleration.key().empty()) {
      errors.push_back(Required(path.Child("key"), "must not be empty when operator is `Equal`"));
    }
  } else {
    CheckEnum(op, {"Equal", "Exists"}, path.Child("operator"), errors);
  }
  if (!toleration.effect().empty()) {
    CheckOneOf(toleration.effect(), {"NoExecute", "NoSchedule", "None"}, path.Child("effect"), errors);
  }
}

void CheckBindingConditions(const Strings& conditions, const Strings& failures, const Path& path,
                            FieldErrors& errors) {
  const auto check = [&](const Strings& list, const char* field) {
    CheckUnique(
        list, kMaxConditions, path.Child(field), errors, [](const std::string& name) { return name; },
        [&](const std::string& name, const Path& place) { CheckLabelKey(name, place, errors); });
  };
  check(conditions, "bindingConditions");
  check(failures, "bindingFailureConditions");
  const Path condition_list = path.Child("bindingConditions"),
             failure_list = path.Child("bindingFailureConditions");
  for (int i = 0; i < failures.size(); ++i) {
    if (!Contains(conditions, failures[i])) continue;
    errors.push_back(Invalid(failure_list.Index(i), failures[i],
                             "bindingFailureConditions must not overlap with bindingConditions"));
  }
  if (conditions.empty() && !failures.empty()) {
    errors.push_back(
        InvalidRaw(condition_list, "null", "bindingConditions are required to use bindingFailureConditions"));
  } else if (failures.empty() && !conditions.empty()) {
    errors.push_back(
        InvalidRaw(failure_list, "null", "bindingFailureConditions are required to use bindingConditions"));
  }
}

void RegisterDeviceRules(RuleTable& table) {
  using namespace resourcev1;
  table.Add<ResourceClaim, CheckResourceClaim>();
  table.AddUpdate<ResourceClaim, CheckResourceClaimUpdate>(true);
  table.AddStatus<ResourceClaim, CheckResourceClaimStatus>();
  table.Add<ResourceClaimTemplate, CheckTemplate>();
  table.AddUpdate<ResourceClaimTemplate, CheckTemplateUpdate>(true);
  table.Add<DeviceClass, CheckDeviceClass>();
  RegisterResourceSliceRules(table);
}

}  // namespace keelson::k8s
