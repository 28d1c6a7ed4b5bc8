// Allowed changes to a pod's status.
#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "lib/k8s/pods/pod_resources.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

constexpr size_t kMaxHealthMessage = 1024;

using Statuses = google::protobuf::RepeatedPtrField<corev1::ContainerStatus>;

void CheckConditions(const corev1::PodStatus& status, const Path& path, FieldErrors& errors) {
  for (int i = 0; i < status.conditions_size(); ++i) {
    const corev1::PodCondition& condition = status.conditions(i);
    const Path item = path.Index(i);
    if (condition.observed_generation() < 0) {
      errors.push_back(Invalid(item.Child("observedGeneration"), condition.observed_generation(),
                               "must be a non-negative integer"));
    }
    const std::string& type = condition.type();
    if (type == kPodScheduled || type == kPodReady || type == kPodInitialized) continue;
    AddProblems(CheckQualifiedName(type), type, item.Child("Type"), errors);
  }
}

// Whether the kubelet would restart the container after this exit code.
bool MayRestart(const corev1::Container& container, const corev1::PodSpec& spec, int32_t exit_code) {
  for (const corev1::ContainerRestartRule& rule : container.restart_policy_rules()) {
    const auto& values = rule.exit_codes().values();
    const bool listed = std::find(values.begin(), values.end(), exit_code) != values.end();
    if (listed == (rule.exit_codes().operator_() == "In")) return true;
  }
  const std::string& policy =
      container.has_restart_policy() ? container.restart_policy() : spec.restart_policy();
  return policy == "Always" || (policy == "OnFailure" && exit_code != 0);
}

bool RestartsAll(const corev1::PodSpec& spec) {
  bool found = false;
  ForEachContainer(spec, [&](const corev1::Container& container) {
    for (const corev1::ContainerRestartRule& rule : container.restart_policy_rules()) {
      found = found || rule.action() == "RestartAllContainers";
    }
  });
  return found;
}

// A container that has ended for good must not restart. `containers` null: these never restart.
void CheckTransitions(const Statuses& now, const Statuses& before, const Containers* containers,
                      const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  for (int i = 0; i < before.size(); ++i) {
    if (!before[i].state().has_terminated()) continue;
    const auto same_name = [&](const auto& one) { return one.name() == before[i].name(); };
    const auto status = std::find_if(now.begin(), now.end(), [&](const auto& one) {
      return same_name(one) && !one.state().has_terminated();
    });
    if (status == now.end()) continue;
    bool allowed = false;
    if (containers) {
      const auto container = std::find_if(containers->begin(), containers->end(), same_name);
      allowed = container != containers->end() &&
                MayRestart(*container, spec, before[i].state().terminated().exit_code());
    }
    if (allowed) continue;
    errors.push_back(
        Forbidden(path.Index(i).Child("state"), "may not be transitioned to non-terminated state"));
  }
}

void CheckAllTransitions(const corev1::PodStatus& status, const corev1::Pod& old, const Path& path,
                         FieldErrors& errors) {
  const corev1::PodSpec& spec = old.spec();
  if (!RestartsAll(spec)) {
    CheckTransitions(status.container_statuses(), old.status().container_statuses(), &spec.containers(), spec,
                     path.Child("containerStatuses"), errors);
    CheckTransitions(status.init_container_statuses(), old.status().init_container_statuses(),
                     &spec.init_containers(), spec, path.Child("initContainerStatuses"), errors);
  }
  CheckTransitions(status.ephemeral_container_statuses(), old.status().ephemeral_container_statuses(),
                   nullptr, spec, path.Child("ephemeralContainerStatuses"), errors);
}

void CheckClaimStatuses(const corev1::Pod& pod, const Path& path, FieldErrors& errors) {
  const auto& claims = pod.spec().resource_claims();
  std::set<std::string_view> seen;
  for (int i = 0; i < pod.status().resource_claim_statuses_size(); ++i) {
    const corev1::PodResourceClaimStatus& status = pod.status().resource_claim_statuses(i);
    const Path item = path.Index(i);
    if (std::none_of(claims.begin(), claims.end(),
                     [&](const auto& claim) { return claim.name() == status.name(); })) {
      errors.push_back(Invalid(item.Child("name"), status.name(),
                               "must match the name of an entry in `spec.resourceClaims`"));
    }
    if (!seen.insert(status.name()).second) errors.push_back(Duplicate(item.Child("name"), status.name()));
    if (status.has_resource_claim_name()) {
      AddProblems(CheckDns1123Subdomain(status.resource_claim_name()), status.resource_claim_name(),
                  item.Child("resourceClaimName"), errors);
    }
  }
}

// A device class can be requested as a resource of this name.
constexpr char kClassPrefix[] = "deviceclass.resource.kubernetes.io/";

bool AsksFor(const corev1::PodSpec& spec, const std::string& container, const std::string& resource,
             bool& known) {
  bool asks = false;
  for (const auto* containers : {&spec.init_containers(), &spec.containers()}) {
    for (const corev1::Container& one : *containers) {
      if (one.name() != container) continue;
      known = true;
      asks = asks || one.resources().requests().contains(resource);
    }
  }
  return asks;
}

// The claim for the pod's extended resources: each mapping must name a container of the pod, a resource
// that it requests, and a request of the claim.
void CheckExtendedClaim(const corev1::Pod& pod, const Path& path, FieldErrors& errors) {
  const corev1::PodExtendedResourceClaimStatus& status = pod.status().extended_resource_claim_status();
  const Path claim = path.Child("resourceClaimName"), mappings = path.Child("requestMappings");
  AddProblems(CheckDns1123Subdomain(status.resource_claim_name()), status.resource_claim_name(), claim,
              errors);
  if (status.request_mappings().empty()) {
    errors.push_back(Required(mappings, "at least one request mapping is required"));
  }
  std::set<std::string> seen;
  for (int i = 0; i < status.request_mappings_size(); ++i) {
    const corev1::ContainerExtendedResourceRequest& mapping = status.request_mappings(i);
    const Path item = mappings.Index(i), resource = item.Child("resourceName");
    bool known = false;
    const bool asks = AsksFor(pod.spec(), mapping.container_name(), mapping.resource_name(), known);
    if (!known) {
      errors.push_back(
          Invalid(item.Child("containerName"), mapping.container_name(),
                  "must match the name of an entry in `spec.initContainers.name` or `spec.containers.name`"));
    }
    if (!IsExtendedResource(mapping.resource_name()) && !mapping.resource_name().starts_with(kClassPrefix)) {
      errors.push_back(Invalid(resource, mapping.resource_name(), "must be a valid extended resource name"));
    } else if (known && !asks) {
      errors.push_back(
          Invalid(resource, mapping.resource_name(), "must match one of the container's resource requests"));
    }
    AddProblems(CheckDns1123Label(mapping.request_name()), mapping.request_name(), item.Child("requestName"),
                errors);
    const std::string key =
        mapping.container_name() + "/" + mapping.resource_name() + "/" + mapping.request_name();
    if (!seen.insert(key).second) errors.push_back(Duplicate(item, key));
  }
}

// One address, or one of each family.
template <typename Ips>
void CheckIps(const Ips& ips, const Path& path, FieldErrors& errors) {
  int v4 = 0, v6 = 0;
  std::string printed = "[";
  for (int i = 0; i < ips.size(); ++i) {
    CheckIpAddress(ips[i].ip(), path.Index(i), errors);
    (IsIpv6(ips[i].ip()) ? v6 : v4)++;
    printed += fmt::format("{}{{\"ip\":{}}}", i ? "," : "", Quote(ips[i].ip()));
  }
  if (v4 > 1 || v6 > 1) {
    errors.push_back(InvalidRaw(path, printed + "]", "may specify no more than one IP for each IP family"));
  }
}

void CheckAddresses(const corev1::PodStatus& status, const Path& path, FieldErrors& errors) {
  CheckIps(status.pod_ips(), path.Child("podIPs"), errors);
  if (status.host_ips().empty()) return;
  const Path hosts = path.Child("hostIPs");
  if (status.host_ip() != status.host_ips(0).ip()) {
    errors.push_back(
        Invalid(hosts.Index(0).Child("ip"), status.host_ips(0).ip(), "must be equal to `hostIP`"));
  }
  CheckIps(status.host_ips(), hosts, errors);
}

void CheckUsers(const Statuses& statuses, const corev1::PodSpec& spec, const Path& path,
                FieldErrors& errors) {
  for (int i = 0; i < statuses.size(); ++i) {
    if (!statuses[i].has_user() || !statuses[i].user().has_linux()) continue;
    const Path item = path.Index(i), owner = item.Child("user"), field = owner.Child("linux");
    const corev1::LinuxContainerUser& user = statuses[i].user().linux();
    if (spec.os().name() == "windows") {
      errors.push_back(Forbidden(field, "cannot be set for a windows pod"));
      continue;
    }
    constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();
    CheckRange(user.uid(), 0, kMaxId, field.Child("uid"), errors);
    CheckRange(user.gid(), 0, kMaxId, field.Child("gid"), errors);
    const Path groups = field.Child("supplementalGroups");
    for (int j = 0; j < user.supplemental_groups_size(); ++j) {
      CheckRange(user.supplemental_groups(j), 0, kMaxId, groups.Index(j), errors);
    }
  }
}

bool Uses(const corev1::Container& container, const std::string& resource) {
  if (!resource.starts_with("claim:")) return container.resources().requests().contains(resource);
  for (const corev1::ResourceClaim& claim : container.resources().claims()) {
    const std::string name =
        claim.request().empty() ? "claim:" + claim.name() : "claim:" + claim.name() + "/" + claim.request();
    if (name == resource) return true;
  }
  return false;
}

void CheckHealth(const corev1::ResourceStatus& status, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (int i = 0; i < status.resources_size(); ++i) {
    const corev1::ResourceHealth& one = status.resources(i);
    const Path item = path.Index(i);
    const std::string& health = one.health();
    if (health != "Healthy" && health != "Unhealthy" && health != "Unknown") {
      errors.push_back(NotSupported(item.Child("health"), health, {"Healthy", "Unhealthy", "Unknown"}));
    }
    if (one.has_message() && one.message().empty()) {
      errors.push_back(Required(item.Child("message"), "must be non-empty if specified"));
    } else if (one.message().size() > kMaxHealthMessage) {
      errors.push_back(TooLong(item.Child("message"), kMaxHealthMessage));
    }
    if (!seen.insert(one.resource_id()).second) {
      errors.push_back(Duplicate(item.Child("resourceID"), one.resource_id()));
    }
  }
}

void CheckResourceStatuses(const Statuses& statuses, const Containers& containers, const Path& path,
                           FieldErrors& errors) {
  for (int i = 0; i < statuses.size(); ++i) {
    const Path item = path.Index(i), list = item.Child("allocatedResourcesStatus");
    const auto container = std::find_if(containers.begin(), containers.end(),
                                        [&](const auto& one) { return one.name() == statuses[i].name(); });
    for (int j = 0; j < statuses[i].allocated_resources_status_size(); ++j) {
      const corev1::ResourceStatus& status = statuses[i].allocated_resources_status(j);
      const Path entry = list.Index(j);
      if (container != containers.end() && !Uses(*container, status.name())) {
        const bool claim = status.name().starts_with("claim:");
        errors.push_back(Invalid(entry.Child("name"), status.name(),
                                 claim ? "must match one of the container's resource claims in a format "
                                         "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is "
                                         "empty"
                                       : "must match one of the container's resource requests"));
      }
      CheckHealth(status, entry.Child("resources"), errors);
    }
  }
}

void CheckContainerStatuses(const corev1::Pod& pod, const Path& path, FieldErrors& errors) {
  const corev1::PodStatus& status = pod.status();
  const corev1::PodSpec& spec = pod.spec();
  const Path regular = path.Child("containerStatuses"), init = path.Child("initContainerStatuses");
  const Path ephemeral = path.Child("ephemeralContainerStatuses");
  CheckUsers(status.container_statuses(), spec, regular, errors);
  CheckUsers(status.init_container_statuses(), spec, init, errors);
  CheckUsers(status.ephemeral_container_statuses(), spec, ephemeral, errors);
  CheckResourceStatuses(status.container_statuses(), spec.containers(), regular, errors);
  CheckResourceStatuses(status.init_container_statuses(), spec.init_containers(), init, errors);
  for (int i = 0; i < status.ephemeral_container_statuses_size(); ++i) {
    if (status.ephemeral_container_statuses(i).allocated_resources_status().empty()) continue;
    errors.push_back(Forbidden(ephemeral.Index(i).Child("allocatedResourcesStatus"),
                               "must not be specified in container status"));
  }
}

}  // namespace

void CheckPodStatus(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors) {
  const Path metadata("metadata"), path("status");
  const corev1::PodStatus& status = pod.status();
  const corev1::PodStatus& before = old.status();
  CheckPodAnnotationsUpdate(pod, old, metadata.Child("annotations"), errors);
  CheckConditions(status, path.Child("conditions"), errors);
  const Path nominated = path.Child("nominatedNodeName");
  if (!status.nominated_node_name().empty() && status.nominated_node_name() != before.nominated_node_name()) {
    AddProblems(CheckDns1123Subdomain(status.nominated_node_name()), status.nominated_node_name(), nominated,
                errors);
    if (!old.spec().node_name().empty()) {
      errors.push_back(Forbidden(nominated, "may not be set on pods that are already bound to a node"));
    }
  }
  if (status.observed_generation() < 0) {
    errors.push_back(Invalid(path.Child("observedGeneration"), status.observed_generation(),
                             "must be a non-negative integer"));
  }
  CheckImmutable(status.qos_class(), before.qos_class(), path.Child("qosClass"), errors);
  CheckAllTransitions(status, old, path, errors);
  CheckClaimStatuses(pod, path.Child("resourceClaimStatuses"), errors);
  if (status.has_extended_resource_claim_status()) {
    CheckExtendedClaim(pod, path.Child("extendedResourceClaimStatus"), errors);
  }
  CheckAddresses(status, path, errors);
  CheckContainerStatuses(pod, path, errors);
}

}  // namespace keelson::k8s
