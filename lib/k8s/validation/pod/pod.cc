// Pods and pod templates.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "lib/k8s/validation/pod/internal.h"
#include "lib/k8s/validation/rule_table.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::k8s {

namespace {

constexpr int64_t kMaxSeconds = std::numeric_limits<int32_t>::max();
constexpr size_t kSearchListBytes = 2048;
constexpr size_t kHostnameBytes = 64;  // Linux' limit

void CheckSearches(const Strings& searches, const Path& path, FieldErrors& errors) {
  if (searches.size() > 32) {
    errors.push_back(InvalidRaw(path, PrintStrings(searches), "must not have more than 32 search paths"));
  }
  size_t bytes = searches.empty() ? 0 : static_cast<size_t>(searches.size()) - 1;  // the spaces
  for (const std::string& search : searches) bytes += search.size();
  if (bytes > kSearchListBytes) {
    errors.push_back(
        InvalidRaw(path, PrintStrings(searches),
                   "must not have more than 2048 characters (including spaces) in the search list"));
  }
  for (int i = 0; i < searches.size(); ++i) {
    if (searches[i] == ".") continue;
    std::string_view name = searches[i];
    if (name.ends_with('.')) name.remove_suffix(1);
    AddProblems(CheckDns1123SubdomainWithUnderscore(name), name, path.Index(i), errors);
  }
}

void CheckDnsConfig(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const corev1::PodDNSConfig& dns = spec.dns_config();
  const Path servers = path.Child("nameservers");
  if (spec.dns_policy() == "None") {
    if (!spec.has_dns_config()) {
      errors.push_back(Required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
      return;
    }
    if (dns.nameservers().empty()) {
      errors.push_back(
          Required(servers, "must provide at least one DNS nameserver when `dnsPolicy` is None"));
      return;
    }
  }
  if (dns.nameservers_size() > 3) {
    errors.push_back(
        InvalidRaw(servers, PrintStrings(dns.nameservers()), "must not have more than 3 nameservers"));
  }
  for (int i = 0; i < dns.nameservers_size(); ++i) {
    CheckIpAddress(dns.nameservers(i), servers.Index(i), errors);
  }
  CheckSearches(dns.searches(), path.Child("searches"), errors);
  const Path options = path.Child("options");
  for (int i = 0; i < dns.options_size(); ++i) {
    if (dns.options(i).name().empty()) errors.push_back(Required(options.Index(i), "must not be empty"));
  }
}

// With the host's network, a port is the host's too. Templates may leave hostPort to the pods made from
// them.
void CheckHostNetwork(const PodScope& scope, const Path& path, FieldErrors& errors) {
  if (!scope.spec.host_network()) return;
  const Path containers = path.Child("containers");
  for (int i = 0; i < scope.spec.containers_size(); ++i) {
    const corev1::Container& container = scope.spec.containers(i);
    const Path item = containers.Index(i), ports = item.Child("ports");
    for (int j = 0; j < container.ports_size(); ++j) {
      const corev1::ContainerPort& port = container.ports(j);
      const bool said = scope.is_pod() || port.host_port() != 0;
      if (!said || port.host_port() == port.container_port()) continue;
      errors.push_back(Invalid(ports.Index(j).Child("hostPort"), int64_t{port.host_port()},
                               "must match `containerPort` when `hostNetwork` is true"));
    }
  }
}

void CheckGates(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const Path readiness = path.Child("readinessGates");
  for (int i = 0; i < spec.readiness_gates_size(); ++i) {
    const std::string& type = spec.readiness_gates(i).condition_type();
    AddProblems(CheckQualifiedName(type), type, readiness.Index(i).Child("conditionType"), errors);
  }
  const Path gates = path.Child("schedulingGates");
  std::set<std::string_view> seen;
  for (int i = 0; i < spec.scheduling_gates_size(); ++i) {
    const std::string& name = spec.scheduling_gates(i).name();
    AddProblems(CheckQualifiedName(name), name, gates.Index(i), errors);
    if (!seen.insert(name).second) errors.push_back(Duplicate(gates.Index(i), name));
  }
}

// A pod with its own user namespace must not share other namespaces with the host.
void CheckHostUsers(const PodScope& scope, const Path& path, FieldErrors& errors) {
  if (scope.host_users()) return;
  constexpr std::string_view kWhy = "when `hostUsers` is false";
  if (scope.spec.host_network()) errors.push_back(Forbidden(path.Child("hostNetwork"), kWhy));
  if (scope.spec.host_pid()) errors.push_back(Forbidden(path.Child("HostPID"), kWhy));
  if (scope.spec.host_ipc()) errors.push_back(Forbidden(path.Child("HostIPC"), kWhy));
  VisitContainers(scope.spec, path, [&](const auto& container, const Path& here) {
    if (!container.volume_devices().empty()) errors.push_back(Forbidden(here.Child("volumeDevices"), kWhy));
  });
}

void CheckHostnameOverride(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.has_hostname_override()) return;
  const std::string& name = spec.hostname_override();
  if (spec.set_hostname_as_fqdn()) {
    errors.push_back(Forbidden(path, "may not be specified when setHostnameAsFQDN is true"));
  }
  if (spec.host_network()) errors.push_back(Forbidden(path, "may not be specified when hostNetwork is true"));
  if (name.size() > kHostnameBytes) errors.push_back(TooLong(path, kHostnameBytes));
  AddProblems(CheckDns1123Subdomain(name), name, path, errors);
}

void CheckHostAliases(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  for (int i = 0; i < spec.host_aliases_size(); ++i) {
    const corev1::HostAlias& alias = spec.host_aliases(i);
    const Path item = path.Index(i), names = item.Child("hostnames");
    CheckIpAddress(alias.ip(), item.Child("ip"), errors);
    for (int j = 0; j < alias.hostnames_size(); ++j) {
      AddProblems(CheckDns1123Subdomain(alias.hostnames(j)), alias.hostnames(j), names.Index(j), errors);
    }
  }
}

void CheckOptional(const std::string& value, NameRule rule, const Path& path, FieldErrors& errors) {
  if (!value.empty()) AddProblems(rule(value), value, path, errors);
}

// Checks names of other objects, and numbers.
void CheckReferences(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  CheckOptional(spec.service_account_name(), CheckDns1123Subdomain, path.Child("serviceAccountName"), errors);
  CheckOptional(spec.node_name(), CheckDns1123Subdomain, path.Child("nodeName"), errors);
  if (spec.has_active_deadline_seconds()) {
    CheckRange(spec.active_deadline_seconds(), 1, kMaxSeconds, path.Child("activeDeadlineSeconds"), errors);
  }
  CheckOptional(spec.hostname(), CheckDns1123Label, path.Child("hostname"), errors);
  CheckOptional(spec.subdomain(), CheckDns1123Label, path.Child("subdomain"), errors);
  CheckTolerations(spec.tolerations(), path.Child("tolerations"), errors);
  CheckHostAliases(spec, path.Child("hostAliases"), errors);
  CheckOptional(spec.priority_class_name(), CheckDns1123Subdomain, path.Child("priorityClassName"), errors);
  if (spec.has_runtime_class_name()) {
    AddProblems(CheckDns1123Subdomain(spec.runtime_class_name()), spec.runtime_class_name(),
                path.Child("runtimeClassName"), errors);
  }
  if (spec.has_preemption_policy()) {
    CheckEnum(spec.preemption_policy(), {"PreemptLowerPriority", "Never"}, path.Child("preemptionPolicy"),
              errors);
  }
  if (spec.overhead().empty()) return;
  corev1::ResourceRequirements overhead;
  *overhead.mutable_limits() = spec.overhead();
  CheckContainerResources(overhead, {}, path.Child("overhead"), errors);
}

// Without a ServiceAccount there is no identity to issue a token for.
void CheckTokenSources(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.service_account_name().empty()) return;
  const Path volumes = path.Child("volumes");
  for (int i = 0; i < spec.volumes_size(); ++i) {
    const auto& sources = spec.volumes(i).volume_source().projected().sources();
    const Path item = volumes.Index(i), projected = item.Child("projected"),
               list = projected.Child("sources");
    for (int j = 0; j < sources.size(); ++j) {
      if (!sources[j].has_service_account_token()) continue;
      errors.push_back(Forbidden(list.Index(j).Child("serviceAccountToken"),
                                 "must not be specified when serviceAccountName is not set"));
    }
  }
}

void CheckPod(const corev1::Pod& pod, FieldErrors& errors) {
  CheckPodMetadataAndSpec(pod, nullptr, errors);
  const Path spec("spec");
  if (!pod.spec().ephemeral_containers().empty()) {
    errors.push_back(Forbidden(spec.Child("ephemeralContainers"), "cannot be set on create"));
  }
  if (!pod.spec().node_name().empty() && !pod.spec().scheduling_gates().empty()) {
    errors.push_back(
        Forbidden(spec.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"));
  }
  CheckAnnotationsMatchFields(pod.metadata().annotations(), pod.spec(), spec, errors);
}

bool HasRestartingInit(const corev1::PodSpec& spec) {
  for (const corev1::Container& container : spec.init_containers()) {
    if (IsSidecar(container)) continue;
    for (const corev1::ContainerResizePolicy& policy : container.resize_policy()) {
      if (policy.restart_policy() == "RestartContainer") return true;
    }
  }
  return false;
}

void CheckPodTemplateObject(const corev1::PodTemplate& object, FieldErrors& errors) {
  CheckPodTemplate(object.template_(), Path("template"), errors);
}

}  // namespace

void CheckPodSpecIn(PodScope& scope, const Path& path, FieldErrors& errors) {
  const corev1::PodSpec& spec = scope.spec;
  if (!spec.has_termination_grace_period_seconds()) {
    errors.push_back(Required(path.Child("terminationGracePeriodSeconds")));
  }
  for (const corev1::PodResourceClaim& claim : spec.resource_claims()) {
    if (!claim.name().empty()) scope.claims.insert(claim.name());
  }
  CheckVolumes(scope, path.Child("volumes"), errors);
  CheckPodClaims(scope, path.Child("resourceClaims"), errors);
  CheckContainers(scope, path, errors);
  CheckPodResources(scope, path.Child("resources"), errors);
  CheckHostNetwork(scope, path, errors);
  CheckEnum(spec.restart_policy(), {"Always", "OnFailure", "Never"}, path.Child("restartPolicy"), errors);
  CheckEnum(spec.dns_policy(), {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"},
            path.Child("dnsPolicy"), errors);
  CheckLabels(spec.node_selector(), path.Child("nodeSelector"), errors);
  CheckPodSecurityContext(spec, path.Child("securityContext"), errors);
  if (spec.has_affinity()) CheckAffinity(spec.affinity(), path.Child("affinity"), errors);
  CheckDnsConfig(spec, path.Child("dnsConfig"), errors);
  CheckGates(spec, path, errors);
  CheckSpreadConstraints(spec, path.Child("topologySpreadConstraints"), errors);
  CheckHostProcess(spec, path, errors);
  CheckHostUsers(scope, path, errors);
  CheckHostnameOverride(spec, path.Child("hostnameOverride"), errors);
  CheckReferences(spec, path, errors);
  CheckOs(spec, path, errors);
  CheckFileKeyVolumes(spec, path, errors);
}

void CheckPodSpec(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  PodScope scope{spec, nullptr, {}, {}};
  CheckPodSpecIn(scope, path, errors);
}

void CheckPodTemplate(const corev1::PodTemplateSpec& object, const Path& path, FieldErrors& errors) {
  const Path annotations = path.Child("annotations"), spec = path.Child("spec");
  CheckLabels(object.metadata().labels(), path.Child("labels"), errors);
  CheckAnnotations(object.metadata().annotations(), annotations, errors);
  CheckPodAnnotations(object.metadata().annotations(), object.spec(), annotations, errors);
  CheckPodSpec(object.spec(), spec, errors);
  CheckAnnotationsMatchFields(object.metadata().annotations(), object.spec(), spec, errors);
  if (!object.spec().ephemeral_containers().empty()) {
    errors.push_back(
        Forbidden(spec.Child("ephemeralContainers"), "ephemeral containers not allowed in pod template"));
  }
}

void CheckPodMetadataAndSpec(const corev1::Pod& pod, const corev1::Pod* old, FieldErrors& errors) {
  const Path metadata("metadata"), spec("spec");
  CheckPodAnnotations(pod.metadata().annotations(), pod.spec(), metadata.Child("annotations"), errors);
  PodScope scope{pod.spec(), &pod.metadata(), {}, {}};
  scope.has_restarting_init = old && HasRestartingInit(old->spec());
  CheckPodSpecIn(scope, spec, errors);
  CheckTokenSources(pod.spec(), spec, errors);
  CheckTrimmedImages(pod.spec(), spec, errors);
}

void RegisterPodRules(RuleTable& table) {
  table.Add<corev1::Pod, CheckPod>();
  table.AddUpdate<corev1::Pod, CheckPodUpdate>(true);
  table.AddStatus<corev1::Pod, CheckPodStatus>();
  table.AddPart<corev1::Pod, CheckEphemeralContainersUpdate>("ephemeralcontainers");
  table.AddPart<corev1::Pod, CheckPodResize>("resize");
  table.Add<corev1::PodTemplate, CheckPodTemplateObject>();
}

FieldErrors ValidatePod(const corev1::Pod& pod) {
  static const RuleTable* const table = [] {
    auto* made = new RuleTable;
    RegisterPodRules(*made);
    return made;
  }();
  return ValidateBy(table->Find(corev1::Pod::descriptor()), pod);
}

}  // namespace keelson::k8s
