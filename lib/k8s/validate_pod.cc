// Pods, pod templates, and what may change in a pod once it exists.
#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "lib/k8s/rule_table.h"

namespace keelson::k8s {

namespace {

constexpr int64_t kMaxSeconds = std::numeric_limits<int32_t>::max();

void CheckPodSecurityContext(const corev1::PodSecurityContext& context, const Path& path,
                             FieldErrors& errors) {
  const std::pair<std::string_view, std::optional<int64_t>> ids[] = {
      {"fsGroup", context.has_fs_group() ? std::optional(context.fs_group()) : std::nullopt},
      {"runAsUser", context.has_run_as_user() ? std::optional(context.run_as_user()) : std::nullopt},
      {"runAsGroup", context.has_run_as_group() ? std::optional(context.run_as_group()) : std::nullopt}};
  for (const auto& [field, id] : ids) {
    if (id) CheckRange(*id, 0, kMaxSeconds, path.Child(field), errors);
  }
  const Path groups = path.Child("supplementalGroups");
  for (int i = 0; i < context.supplemental_groups_size(); ++i) {
    CheckRange(context.supplemental_groups(i), 0, kMaxSeconds, groups.Index(i), errors);
  }
  const Path sysctls = path.Child("sysctls");
  std::set<std::string_view> seen;
  for (int i = 0; i < context.sysctls_size(); ++i) {
    const std::string& name = context.sysctls(i).name();
    const Path item = sysctls.Index(i);
    if (name.empty()) {
      errors.push_back(Required(item.Child("name")));
    } else if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_./") != std::string::npos) {
      errors.push_back(Invalid(item.Child("name"), name,
                               "must have at most 253 characters and match regex "
                               "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"));
    } else if (!seen.insert(name).second) {
      errors.push_back(Duplicate(item.Child("name"), name));
    }
  }
  if (context.has_fs_group_change_policy()) {
    CheckEnum(context.fs_group_change_policy(), {"Always", "OnRootMismatch"},
              path.Child("fsGroupChangePolicy"), errors);
  }
}

void CheckDns(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  CheckEnum(spec.dns_policy(), {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"},
            path.Child("dnsPolicy"), errors);
  const Path config = path.Child("dnsConfig");
  const Path servers = config.Child("nameservers");
  const corev1::PodDNSConfig& dns = spec.dns_config();
  if (spec.dns_policy() == "None") {
    if (!spec.has_dns_config()) {
      errors.push_back(Required(config, "must provide `dnsConfig` when `dnsPolicy` is None"));
    } else if (dns.nameservers().empty()) {
      errors.push_back(
          Required(servers, "must provide at least one DNS nameserver when `dnsPolicy` is None"));
    }
  }
  if (dns.nameservers_size() > 3) {
    errors.push_back(
        InvalidRaw(servers, PrintStrings(dns.nameservers()), "must not have more than 3 nameservers"));
  }
  for (int i = 0; i < dns.nameservers_size(); ++i)
    CheckIpAddress(dns.nameservers(i), servers.Index(i), errors);
  const Path searches = config.Child("searches");
  if (dns.searches_size() > 32) {
    errors.push_back(
        InvalidRaw(searches, PrintStrings(dns.searches()), "must not have more than 32 search paths"));
  }
  const Path options = config.Child("options");
  for (int i = 0; i < dns.options_size(); ++i) {
    if (!dns.options(i).name().empty()) continue;
    errors.push_back(Required(options.Index(i), "must not be empty"));
  }
}

void CheckNames(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const auto check = [&](const std::string& value, NameRule rule, std::string_view field) {
    if (!value.empty()) AddProblems(rule(value), value, path.Child(field), errors);
  };
  check(spec.service_account_name(), CheckDns1123Subdomain, "serviceAccountName");
  check(spec.node_name(), CheckDns1123Subdomain, "nodeName");
  check(spec.hostname(), CheckDns1123Label, "hostname");
  check(spec.subdomain(), CheckDns1123Label, "subdomain");
  check(spec.priority_class_name(), CheckDns1123Subdomain, "priorityClassName");
  check(spec.runtime_class_name(), CheckDns1123Subdomain, "runtimeClassName");
  const Path secrets = path.Child("imagePullSecrets");
  for (int i = 0; i < spec.image_pull_secrets_size(); ++i) {
    const Path item = secrets.Index(i);
    if (spec.image_pull_secrets(i).name().empty()) errors.push_back(Required(item.Child("name")));
  }
  const Path aliases = path.Child("hostAliases");
  for (int i = 0; i < spec.host_aliases_size(); ++i) {
    const corev1::HostAlias& alias = spec.host_aliases(i);
    const Path item = aliases.Index(i);
    CheckIpAddress(alias.ip(), item.Child("ip"), errors);
    for (const std::string& name : alias.hostnames()) {
      AddProblems(CheckDns1123Subdomain(name), name, item.Child("hostnames"), errors);
    }
  }
}

void CheckGates(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const Path gates = path.Child("schedulingGates");
  std::set<std::string_view> seen;
  for (int i = 0; i < spec.scheduling_gates_size(); ++i) {
    const std::string& name = spec.scheduling_gates(i).name();
    const Path item = gates.Index(i);
    AddProblems(CheckQualifiedName(name), name, item, errors);
    if (!seen.insert(name).second) errors.push_back(Duplicate(item, name));
  }
  const Path readiness = path.Child("readinessGates");
  for (int i = 0; i < spec.readiness_gates_size(); ++i) {
    const std::string& type = spec.readiness_gates(i).condition_type();
    const Path item = readiness.Index(i);
    AddProblems(CheckQualifiedName(type), type, item.Child("conditionType"), errors);
  }
}

void CheckSpread(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  const Path list = path.Child("topologySpreadConstraints");
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (int i = 0; i < spec.topology_spread_constraints_size(); ++i) {
    const corev1::TopologySpreadConstraint& constraint = spec.topology_spread_constraints(i);
    const Path item = list.Index(i);
    if (constraint.max_skew() <= 0) {
      errors.push_back(
          Invalid(item.Child("maxSkew"), int64_t{constraint.max_skew()}, "must be greater than zero"));
    }
    if (constraint.topology_key().empty()) {
      errors.push_back(Required(item.Child("topologyKey"), "can not be empty"));
    } else {
      CheckLabelKey(constraint.topology_key(), item.Child("topologyKey"), errors);
    }
    CheckEnum(constraint.when_unsatisfiable(), {"DoNotSchedule", "ScheduleAnyway"},
              item.Child("whenUnsatisfiable"), errors);
    if (!seen.emplace(constraint.topology_key(), constraint.when_unsatisfiable()).second) {
      errors.push_back(Duplicate(
          item, fmt::format("{{{}, {}}}", constraint.topology_key(), constraint.when_unsatisfiable())));
    }
    if (constraint.has_label_selector()) {
      CheckLabelSelector(constraint.label_selector(), item.Child("labelSelector"), errors);
    }
  }
}

void CheckPodLevelResources(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  if (!spec.has_resources()) return;
  const Path resources = path.Child("resources");
  for (const auto& [name, limits] : {std::pair{"limits", &spec.resources().limits()},
                                     std::pair{"requests", &spec.resources().requests()}}) {
    const Path list = resources.Child(name);
    for (const auto& [resource, quantity] : *limits) {
      if (!IsPodLevelResource(resource)) {
        errors.push_back(NotSupported(list, resource, {"cpu", "hugepages-", "memory"}));
      }
    }
  }
  CheckResources(spec.resources(), resources, errors);
}

void CheckPod(const corev1::Pod& pod, FieldErrors& errors) {
  const Path spec("spec");
  CheckPodSpec(pod.spec(), spec, errors);
  if (!pod.spec().node_name().empty() && !pod.spec().scheduling_gates().empty()) {
    errors.push_back(
        Forbidden(spec.Child("nodeName"), "cannot be set until all schedulingGates have been cleared"));
  }
  if (!pod.spec().ephemeral_containers().empty()) {
    errors.push_back(Forbidden(spec.Child("ephemeralContainers"), "cannot be set on create"));
  }
}

void CheckPodTemplateObject(const corev1::PodTemplate& object, FieldErrors& errors) {
  CheckPodTemplate(object.template_(), Path("template"), errors);
}

// ---- updates ----

using Containers = google::protobuf::RepeatedPtrField<corev1::Container>;

// False: the lists cannot be compared further.
bool CheckContainerUpdates(const Containers& containers, const Containers& old, const Path& path,
                           FieldErrors& errors) {
  if (containers.size() != old.size()) {
    errors.push_back(Forbidden(path, "pod updates may not add or remove containers"));
    return false;
  }
  for (int i = 0; i < containers.size(); ++i) {
    if (!containers[i].image().empty()) continue;
    const Path item = path.Index(i);
    errors.push_back(Required(item.Child("image")));
  }
  return true;
}

bool CheckDeadlineUpdate(const corev1::PodSpec& spec, const corev1::PodSpec& old, const Path& path,
                         FieldErrors& errors) {
  const Path field = path.Child("activeDeadlineSeconds");
  if (!spec.has_active_deadline_seconds()) {
    if (!old.has_active_deadline_seconds()) return true;
    errors.push_back(InvalidRaw(field, "null", "must not update from a positive integer to nil value"));
    return true;
  }
  const int64_t seconds = spec.active_deadline_seconds();
  if (seconds < 0 || seconds > kMaxSeconds) {
    CheckRange(seconds, 0, kMaxSeconds, field, errors);
    return false;
  }
  if (old.has_active_deadline_seconds() && old.active_deadline_seconds() < seconds) {
    errors.push_back(Invalid(field, seconds, "must be less than or equal to previous value"));
    return false;
  }
  return true;
}

// Every old toleration must still be there; only its tolerationSeconds may differ.
void CheckTolerationUpdate(const corev1::PodSpec& spec, const corev1::PodSpec& old, const Path& path,
                           FieldErrors& errors) {
  for (const corev1::Toleration& before : old.tolerations()) {
    const bool kept = std::any_of(spec.tolerations().begin(), spec.tolerations().end(), [&](const auto& now) {
      return now.key() == before.key() && now.operator_() == before.operator_() &&
             now.value() == before.value() && now.effect() == before.effect();
    });
    if (kept) continue;
    errors.push_back(Forbidden(path.Child("tolerations"),
                               "existing toleration can not be modified except its tolerationSeconds"));
    return;
  }
  CheckTolerations(spec.tolerations(), path.Child("tolerations"), errors);
}

void CheckGateUpdate(const corev1::PodSpec& spec, const corev1::PodSpec& old, const Path& path,
                     FieldErrors& errors) {
  std::set<std::string_view> before;
  for (const auto& gate : old.scheduling_gates()) before.insert(gate.name());
  for (const auto& gate : spec.scheduling_gates()) {
    if (before.contains(gate.name())) continue;
    errors.push_back(
        Forbidden(path.Child("schedulingGates"),
                  fmt::format("only deletion is allowed, but found new scheduling gate '{}'", gate.name())));
  }
}

bool IsSuperset(const StringMap& map, const StringMap& of) {
  return std::all_of(of.begin(), of.end(), [&](const auto& item) {
    const auto it = map.find(item.first);
    return it != map.end() && it->second == item.second;
  });
}

// While a pod is gated, its node affinity may become stricter.
bool IsStricter(const corev1::NodeAffinity& affinity, const corev1::NodeAffinity& old) {
  if (!old.has_required_during_scheduling_ignored_during_execution()) return true;
  const auto& terms = affinity.required_during_scheduling_ignored_during_execution().node_selector_terms();
  const auto& before = old.required_during_scheduling_ignored_during_execution().node_selector_terms();
  if (terms.size() != before.size()) return false;
  for (int i = 0; i < terms.size(); ++i) {
    const auto begins_with = [](const auto& list, const auto& prefix) {
      return list.size() >= prefix.size() &&
             std::equal(prefix.begin(), prefix.end(), list.begin(), SameMessage);
    };
    if (!begins_with(terms[i].match_expressions(), before[i].match_expressions()) ||
        !begins_with(terms[i].match_fields(), before[i].match_fields())) {
      return false;
    }
  }
  return true;
}

// `spec` with everything that may change put back to what it was.
corev1::PodSpec WithoutAllowedChanges(const corev1::PodSpec& spec, const corev1::PodSpec& old) {
  corev1::PodSpec out = spec;
  for (int i = 0; i < out.containers_size(); ++i) {
    out.mutable_containers(i)->set_image(old.containers(i).image());
  }
  for (int i = 0; i < out.init_containers_size(); ++i) {
    out.mutable_init_containers(i)->set_image(old.init_containers(i).image());
  }
  out.clear_active_deadline_seconds();
  if (old.has_active_deadline_seconds()) out.set_active_deadline_seconds(old.active_deadline_seconds());
  *out.mutable_tolerations() = old.tolerations();
  *out.mutable_scheduling_gates() = old.scheduling_gates();
  if (spec.termination_grace_period_seconds() == 1 && old.termination_grace_period_seconds() < 0) {
    out.set_termination_grace_period_seconds(old.termination_grace_period_seconds());
  }
  if (old.scheduling_gates().empty()) return out;
  if (IsSuperset(out.node_selector(), old.node_selector()))
    *out.mutable_node_selector() = old.node_selector();
  if (IsStricter(out.affinity().node_affinity(), old.affinity().node_affinity())) {
    if (old.affinity().has_node_affinity()) {
      *out.mutable_affinity()->mutable_node_affinity() = old.affinity().node_affinity();
    } else {
      out.mutable_affinity()->clear_node_affinity();
      if (!old.has_affinity()) out.clear_affinity();
    }
  }
  return out;
}

std::string ChangedFields(const corev1::PodSpec& spec, const corev1::PodSpec& old) {
  std::string out;
  const auto* descriptor = spec.GetDescriptor();
  const auto* reflection = spec.GetReflection();
  corev1::PodSpec left = spec, right = old;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    corev1::PodSpec a, b;
    const std::vector<const google::protobuf::FieldDescriptor*> one = {descriptor->field(i)};
    reflection->SwapFields(&a, &left, one);
    reflection->SwapFields(&b, &right, one);
    if (!SameMessage(a, b)) out += fmt::format("\n  spec.{}", descriptor->field(i)->json_name());
  }
  return out;
}

void CheckPodUpdate(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors) {
  const Path path("spec");
  const corev1::PodSpec& spec = pod.spec();
  const corev1::PodSpec& before = old.spec();
  if (!CheckContainerUpdates(spec.containers(), before.containers(), path.Child("containers"), errors))
    return;
  if (!CheckContainerUpdates(spec.init_containers(), before.init_containers(), path.Child("initContainers"),
                             errors)) {
    return;
  }
  if (!CheckDeadlineUpdate(spec, before, path, errors)) return;
  CheckTolerationUpdate(spec, before, path, errors);
  CheckGateUpdate(spec, before, path, errors);
  const corev1::PodSpec rest = WithoutAllowedChanges(spec, before);
  if (SameMessage(rest, before)) return;
  errors.push_back(Forbidden(
      path,
      "pod updates may not change fields other than "
      "`spec.containers[*].image`,`spec.initContainers[*].image`,"
      "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)" +
          ChangedFields(rest, before)));
}

// A container that has ended for good cannot come back.
void CheckStateTransitions(const google::protobuf::RepeatedPtrField<corev1::ContainerStatus>& now,
                           const google::protobuf::RepeatedPtrField<corev1::ContainerStatus>& before,
                           std::string_view restart_policy, const Path& path, FieldErrors& errors) {
  if (restart_policy == "Always") return;
  for (const corev1::ContainerStatus& old : before) {
    if (!old.state().has_terminated()) continue;
    if (restart_policy == "OnFailure" && old.state().terminated().exit_code() != 0) continue;
    for (int i = 0; i < now.size(); ++i) {
      if (now[i].name() != old.name() || now[i].state().has_terminated()) continue;
      const Path item = path.Index(i);
      errors.push_back(Forbidden(item.Child("state"), "may not be transitioned to non-terminated state"));
    }
  }
}

void CheckPodStatus(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors) {
  const Path path("status");
  const corev1::PodStatus& status = pod.status();
  if (!status.nominated_node_name().empty()) {
    AddProblems(CheckDns1123Subdomain(status.nominated_node_name()), status.nominated_node_name(),
                path.Child("nominatedNodeName"), errors);
  }
  if (!old.status().qos_class().empty() && !status.qos_class().empty() &&
      status.qos_class() != old.status().qos_class()) {
    errors.push_back(Invalid(path.Child("qosClass"), status.qos_class(), kImmutable));
  }
  CheckStateTransitions(status.container_statuses(), old.status().container_statuses(),
                        old.spec().restart_policy(), path.Child("containerStatuses"), errors);
  const Path ips = path.Child("podIPs");
  for (int i = 0; i < status.pod_ips_size(); ++i) {
    CheckIpAddress(status.pod_ips(i).ip(), ips.Index(i), errors);
  }
  const Path host_ips = path.Child("hostIPs");
  for (int i = 0; i < status.host_ips_size(); ++i) {
    CheckIpAddress(status.host_ips(i).ip(), host_ips.Index(i), errors);
  }
}

// `metadata.labels['app']`
bool IsSubscript(std::string_view field) {
  for (std::string_view map : {"metadata.labels['", "metadata.annotations['"}) {
    if (field.starts_with(map) && field.ends_with("']") && field.size() > map.size() + 2) return true;
  }
  return false;
}

}  // namespace

void CheckObjectField(const corev1::ObjectFieldSelector& field,
                      const std::vector<std::string_view>& supported, const Path& path, FieldErrors& errors) {
  if (field.api_version().empty()) {
    errors.push_back(Required(path.Child("apiVersion")));
    return;
  }
  const Path field_path = path.Child("fieldPath");
  if (field.field_path().empty()) {
    errors.push_back(Required(field_path));
    return;
  }
  if (IsSubscript(field.field_path())) return;
  if (std::find(supported.begin(), supported.end(), field.field_path()) != supported.end()) return;
  errors.push_back(
      Invalid(field_path, field.field_path(),
              fmt::format("error converting fieldPath: field label not supported: {}", field.field_path())));
}

void CheckResourceField(const corev1::ResourceFieldSelector& field, bool in_volume, const Path& path,
                        FieldErrors& errors) {
  static const std::vector<std::string_view> kSupported = {
      "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
      "requests.cpu", "requests.ephemeral-storage", "requests.memory"};
  if (in_volume && field.container_name().empty()) {
    errors.push_back(Required(path.Child("containerName")));
  } else if (field.resource().empty()) {
    errors.push_back(Required(path.Child("resource")));
  } else if (!field.resource().starts_with("limits.hugepages-") &&
             !field.resource().starts_with("requests.hugepages-")) {
    CheckEnum(field.resource(), kSupported, path.Child("resource"), errors);
  }
}

void CheckPodSpec(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors) {
  CheckVolumes(spec, path.Child("volumes"), errors);
  CheckContainers(spec, path, errors);
  CheckPodLevelResources(spec, path, errors);
  CheckEnum(spec.restart_policy(), {"Always", "OnFailure", "Never"}, path.Child("restartPolicy"), errors);
  CheckDns(spec, path, errors);
  CheckLabels(spec.node_selector(), path.Child("nodeSelector"), errors);
  CheckPodSecurityContext(spec.security_context(), path.Child("securityContext"), errors);
  if (spec.has_affinity()) CheckAffinity(spec.affinity(), path.Child("affinity"), errors);
  CheckGates(spec, path, errors);
  CheckSpread(spec, path, errors);
  CheckNames(spec, path, errors);
  if (spec.has_active_deadline_seconds()) {
    CheckRange(spec.active_deadline_seconds(), 1, kMaxSeconds, path.Child("activeDeadlineSeconds"), errors);
  }
  CheckTolerations(spec.tolerations(), path.Child("tolerations"), errors);
  if (spec.has_preemption_policy()) {
    CheckEnum(spec.preemption_policy(), {"PreemptLowerPriority", "Never"}, path.Child("preemptionPolicy"),
              errors);
  }
  const Path overhead = path.Child("overhead");
  for (const auto& [name, quantity] : spec.overhead()) {
    CheckQuantity(name, quantity, overhead.Key(name), errors);
  }
  if (spec.has_os()) {
    const Path os = path.Child("os");
    CheckEnum(spec.os().name(), {"linux", "windows"}, os.Child("name"), errors);
  }
}

void CheckPodTemplate(const corev1::PodTemplateSpec& object, const Path& path, FieldErrors& errors) {
  const Path metadata = path.Child("metadata");
  CheckLabels(object.metadata().labels(), metadata.Child("labels"), errors);
  CheckAnnotations(object.metadata().annotations(), metadata.Child("annotations"), errors);
  const Path spec = path.Child("spec");
  CheckPodSpec(object.spec(), spec, errors);
  if (!object.spec().ephemeral_containers().empty()) {
    errors.push_back(
        Forbidden(spec.Child("ephemeralContainers"), "ephemeral containers not allowed in pod template"));
  }
}

void RegisterPodRules(RuleTable& table) {
  table.Add<corev1::Pod, CheckPod>();
  // A pod's spec is valid already; only images and few others change, and they are checked there.
  table.AddUpdate<corev1::Pod, CheckPodUpdate>(true);
  table.AddStatus<corev1::Pod, CheckPodStatus>();
  table.Add<corev1::PodTemplate, CheckPodTemplateObject>();
}

}  // namespace keelson::k8s
