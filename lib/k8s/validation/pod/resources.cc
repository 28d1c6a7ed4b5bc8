// Resource requests and limits of containers and pods, and the resource claims that they use.
#include <algorithm>

#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

using CheckResourceName = void (*)(std::string_view name, const Path& path, FieldErrors& errors);

bool OneOf(std::string_view value, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool IsContainerResource(std::string_view name) {
  return OneOf(name, {"cpu", "memory", "ephemeral-storage"}) || IsHugePages(name);
}

bool IsObjectCount(std::string_view name) {
  return OneOf(name, {"pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
                      "persistentvolumeclaims", "services.nodeports", "services.loadbalancers"});
}

// Names without a domain that are valid somewhere: in containers, quotas or limit ranges.
bool IsStandardResource(std::string_view name) {
  return IsContainerResource(name) || IsObjectCount(name) ||
         OneOf(name, {"requests.cpu", "requests.memory", "requests.ephemeral-storage", "limits.cpu",
                      "limits.memory", "limits.ephemeral-storage", "storage", "requests.storage"}) ||
         name.starts_with("requests.hugepages-");
}

// False: further checks of the name make no sense.
bool CheckAnyResourceName(std::string_view name, const Path& path, FieldErrors& errors) {
  const Problems problems = CheckQualifiedName(name);
  AddProblems(problems, name, path, errors);
  if (!problems.empty()) return false;
  if (name.find('/') != std::string_view::npos || IsStandardResource(name)) return true;
  errors.push_back(Invalid(path, name, "must be a standard resource type or fully qualified"));
  return false;
}

}  // namespace

void CheckContainerResourceName(std::string_view name, const Path& path, FieldErrors& errors) {
  CheckAnyResourceName(name, path, errors);
  if (name.find('/') == std::string_view::npos) {
    if (!IsContainerResource(name)) {
      errors.push_back(Invalid(path, name, "must be a standard resource for containers"));
    }
  } else if (!IsNativeResource(name) && !IsExtendedResource(name)) {
    errors.push_back(Invalid(path, name, "doesn't follow extended resource name standard"));
  }
}

namespace {

void CheckPodResourceName(std::string_view name, const Path& path, FieldErrors& errors) {
  if (CheckAnyResourceName(name, path, errors) && !IsPodLevelResource(name)) {
    errors.push_back(NotSupported(path, name, {"cpu", "hugepages-", "memory"}));
  }
}

bool MayOvercommit(std::string_view name) { return IsNativeResource(name) && !IsHugePages(name); }

// Huge pages come in whole pages: "hugepages-2Mi" must be a multiple of 2Mi.
void CheckPages(std::string_view name, const api::Amount& amount, const Path& path, FieldErrors& errors) {
  if (!IsHugePages(name)) return;
  const Result<api::Amount> page = api::Amount::Parse(name.substr(std::string_view("hugepages-").size()));
  const bool divisible =
      page && *page > api::Amount() && page->MilliValue() % 1000 == 0 && amount.Value() % page->Value() == 0;
  if (divisible) return;
  errors.push_back(
      Invalid(path, amount.ToString(),
              fmt::format("{} is not positive integer multiple of {}", amount.ToString(), name)));
}

struct Has {
  bool base = false, huge_pages = false;  // has cpu or memory; has hugepages-*
  void Note(std::string_view name) {
    base = base || name == "cpu" || name == "memory";
    huge_pages = huge_pages || IsHugePages(name);
  }
};

void CheckAgainstLimit(const std::string& name, const api::Amount& request, const QuantityMap& limits,
                       const Path& path, FieldErrors& errors) {
  const auto found = limits.find(name);
  if (found == limits.end()) {
    if (!MayOvercommit(name)) {
      errors.push_back(Required(path.Child("limits"), "Limit must be set for non overcommitable resources"));
    }
    return;
  }
  const api::Amount limit = api::Amount::Of(found->second);
  if (!MayOvercommit(name) && !(request == limit)) {
    errors.push_back(Invalid(path.Child("requests"), request.ToString(),
                             fmt::format("must be equal to {} limit of {}", name, limit.ToString())));
  } else if (request > limit) {
    errors.push_back(
        Invalid(path.Child("requests"), request.ToString(),
                fmt::format("must be less than or equal to {} limit of {}", name, limit.ToString())));
  }
}

void CheckClaimNames(const ResourceClaims& claims, const std::set<std::string_view>& pod_claims,
                     const Path& path, FieldErrors& errors) {
  std::set<std::string> seen;
  for (int i = 0; i < claims.size(); ++i) {
    const std::string& name = claims[i].name();
    const std::string& request = claims[i].request();
    const Path item = path.Index(i);
    if (name.empty()) {
      errors.push_back(Required(item));
      continue;
    }
    if (seen.contains(name)) {
      errors.push_back(Duplicate(item, name));
    } else {
      std::string key = name;
      if (!request.empty()) {
        AddProblems(CheckDns1123Label(request), request, item.Child("request"), errors);
        key += "/" + request;
      }
      if (seen.contains(key)) errors.push_back(Duplicate(item, key));
      // The whole claim includes its requests that were named before.
      if (request.empty()) {
        for (const std::string& other : seen) {
          if (other.starts_with(name + "/")) errors.push_back(Duplicate(item, name));
        }
      }
      seen.insert(key);
    }
    if (pod_claims.contains(name)) continue;
    FieldError missing = NotFound(item, name);
    missing.detail = pod_claims.empty()
                         ? "must be one of the names in pod.spec.resourceClaims which is empty"
                         : fmt::format("must be one of the names in pod.spec.resourceClaims: {}",
                                       fmt::join(pod_claims, ", "));
    errors.push_back(std::move(missing));
  }
}

void CheckRequirements(const corev1::ResourceRequirements& resources, CheckResourceName check_name,
                       const std::set<std::string_view>& claims, const Path& path, FieldErrors& errors) {
  const Path limits = path.Child("limits"), requests = path.Child("requests");
  Has has;
  for (const auto& [name, quantity] : resources.limits()) {
    const Path key = limits.Key(name);
    check_name(name, key, errors);
    CheckQuantity(name, quantity, key, errors);
    CheckPages(name, api::Amount::Of(quantity), key, errors);
    has.Note(name);
  }
  for (const auto& [name, quantity] : resources.requests()) {
    const Path key = requests.Key(name);
    const api::Amount amount = api::Amount::Of(quantity);
    check_name(name, key, errors);
    CheckQuantity(name, quantity, key, errors);
    CheckAgainstLimit(name, amount, resources.limits(), path, errors);
    CheckPages(name, amount, key, errors);
    has.Note(name);
  }
  if (has.huge_pages && !has.base) errors.push_back(Forbidden(path, "HugePages require cpu or memory"));
  CheckClaimNames(resources.claims(), claims, path.Child("claims"), errors);
}

// The sum of the containers' requests must fit into the pod's.
void CheckConsistency(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const corev1::ResourceRequirements& resources = spec.resources();
  corev1::Pod pod;
  *pod.mutable_spec() = spec;
  const PodResourcesOptions of_containers{.exclude_overhead = true, .exclude_pod_level = true};
  const auto too_small = [&](std::string_view list, std::string_view name, const api::Amount& pod_amount,
                             std::string_view what, const api::Amount& sum) {
    const Path here = path.Child(list);
    errors.push_back(Invalid(
        here.Key(name), pod_amount.ToString(),
        fmt::format("must be greater than or equal to aggregate container {} of {}", what, sum.ToString())));
  };
  for (const auto& [name, sum] : PodRequests(pod, of_containers)) {
    const auto found = resources.requests().find(name);
    if (found == resources.requests().end()) continue;
    const api::Amount amount = api::Amount::Of(found->second);
    if (sum > amount) too_small("requests", name, amount, "requests", sum);
  }
  for (const auto& [name, sum] : PodLimits(pod, of_containers)) {
    const auto found = resources.limits().find(name);
    if (!IsHugePages(name) || found == resources.limits().end()) continue;
    const api::Amount amount = api::Amount::Of(found->second);
    if (sum > amount) too_small("limits", name, amount, "limits", sum);
  }
  for (int i = 0; i < spec.containers_size(); ++i) {
    for (const auto& [name, quantity] : spec.containers(i).resources().limits()) {
      const auto found = resources.limits().find(name);
      if (found == resources.limits().end()) continue;
      const api::Amount amount = api::Amount::Of(quantity), limit = api::Amount::Of(found->second);
      if (amount <= limit) continue;
      errors.push_back(
          Invalid(path.Child("containers").Index(i).Key(name).Child("limits"), amount.ToString(),
                  fmt::format("must be less than or equal to pod limits of {}", limit.ToString())));
    }
  }
}

}  // namespace

void CheckQuantity(std::string_view resource, const Quantity& quantity, const Path& path,
                   FieldErrors& errors) {
  const Result<api::Amount> amount = api::Amount::Parse(quantity.string());
  if (!amount) {
    errors.push_back(Invalid(path, quantity.string(), amount.error().message()));
    return;
  }
  if (*amount < api::Amount()) errors.push_back(Invalid(path, amount->ToString(), kNotNegative));
  const bool whole = IsObjectCount(resource) || IsExtendedResource(resource);
  if (whole && amount->MilliValue() % 1000 != 0) {
    errors.push_back(Invalid(path, amount->ToString(), "must be an integer"));
  }
}

void CheckContainerResources(const corev1::ResourceRequirements& resources,
                             const std::set<std::string_view>& claims, const Path& path,
                             FieldErrors& errors) {
  CheckRequirements(resources, CheckContainerResourceName, claims, path, errors);
}

void CheckPodResources(const PodScope& scope, const Path& path, FieldErrors& errors) {
  if (!scope.spec.has_resources()) return;
  if (scope.spec.os().name() == "windows") {
    errors.push_back(Forbidden(path, "may not be set for a windows pod"));
    return;
  }
  const corev1::ResourceRequirements& resources = scope.spec.resources();
  if (!resources.claims().empty()) {
    errors.push_back(Forbidden(path.Child("claims"), "claims may not be set for Resources at pod-level"));
  }
  CheckRequirements(resources, CheckPodResourceName, scope.claims, path, errors);
  CheckConsistency(scope.spec, path, errors);
}

void CheckPodClaims(const PodScope& scope, const Path& path, FieldErrors& errors) {
  const auto& claims = scope.spec.resource_claims();
  if (claims.empty()) return;
  if (scope.meta && scope.meta->annotations().contains("kubernetes.io/config.mirror")) {
    errors.push_back(Forbidden(Path(""), "static pods do not support resource claims"));
    return;
  }
  std::set<std::string_view> names;
  for (int i = 0; i < claims.size(); ++i) {
    const corev1::PodResourceClaim& claim = claims[i];
    const Path item = path.Index(i);
    if (claim.name().empty()) {
      errors.push_back(Required(item.Child("name")));
    } else if (!names.insert(claim.name()).second) {
      errors.push_back(Duplicate(item.Child("name"), claim.name()));
    } else {
      AddProblems(CheckDns1123Label(claim.name()), claim.name(), item.Child("name"), errors);
    }
    const bool by_name = claim.has_resource_claim_name(),
               by_template = claim.has_resource_claim_template_name();
    if (by_name && by_template) {
      errors.push_back(InvalidObject(
          item, claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"));
    }
    if (!by_name && !by_template) {
      errors.push_back(InvalidObject(
          item, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"));
    }
    if (by_name) {
      AddProblems(CheckDns1123Subdomain(claim.resource_claim_name()), claim.resource_claim_name(),
                  item.Child("resourceClaimName"), errors);
    }
    if (by_template) {
      AddProblems(CheckDns1123Subdomain(claim.resource_claim_template_name()),
                  claim.resource_claim_template_name(), item.Child("resourceClaimTemplateName"), errors);
    }
  }
}

}  // namespace keelson::k8s
