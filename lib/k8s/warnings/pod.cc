// Warnings about pods and pod templates.
#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "lib/api/quantity.h"
#include "lib/k8s/validation/pod/internal.h"
#include "lib/k8s/warnings/internal.h"

namespace keelson::k8s {

namespace {

using Terms = google::protobuf::RepeatedPtrField<corev1::PodAffinityTerm>;
using WeightedTerms = google::protobuf::RepeatedPtrField<corev1::WeightedPodAffinityTerm>;

constexpr std::string_view kNullSelector = "a null labelSelector results in matching no pod";

void WarnOfNodeLabels(const corev1::PodSpec& spec, const Path& path, Warnings& out) {
  const Path selector = path.Child("nodeSelector");
  for (const auto& [key, value] : spec.node_selector()) {
    const std::string_view text = DeprecatedNodeLabel(key);
    if (!text.empty()) Warn(selector.Key(key), text, out);
  }
  const corev1::NodeAffinity& affinity = spec.affinity().node_affinity();
  const Path above = path.Child("affinity"), node = above.Child("nodeAffinity");
  const Path required = node.Child("requiredDuringSchedulingIgnoredDuringExecution");
  const Path terms = required.Child("nodeSelectorTerms");
  const auto& hard = affinity.required_during_scheduling_ignored_during_execution().node_selector_terms();
  for (int i = 0; i < hard.size(); ++i) WarnOfNodeTerm(hard[i], false, terms.Index(i), out);
  const Path preferred = node.Child("preferredDuringSchedulingIgnoredDuringExecution");
  for (int i = 0; i < affinity.preferred_during_scheduling_ignored_during_execution_size(); ++i) {
    WarnOfNodeTerm(affinity.preferred_during_scheduling_ignored_during_execution(i).preference(), true,
                   preferred.Index(i).Child("preference"), out);
  }
}

void WarnOfSpread(const corev1::PodSpec& spec, const Path& path, Warnings& out) {
  for (int i = 0; i < spec.topology_spread_constraints_size(); ++i) {
    const corev1::TopologySpreadConstraint& one = spec.topology_spread_constraints(i);
    const Path item = path.Index(i);
    const std::string_view text = DeprecatedNodeLabel(one.topology_key());
    if (!text.empty()) {
      Warn(item.Child("topologyKey"), fmt::format("{} is {}", one.topology_key(), text), out);
    }
    if (!one.has_label_selector()) Warn(item.Child("labelSelector"), kNullSelector, out);
  }
}

void WarnOfAnnotations(const metav1::ObjectMeta& meta, const Path& path, Warnings& out) {
  const std::pair<const char*, std::string_view> deprecated[] = {
      {"scheduler.alpha.kubernetes.io/critical-pod",
       "non-functional in v1.16+; use the \"priorityClassName\" field instead"},
      {"security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"},
      {"security.alpha.kubernetes.io/unsafe-sysctls",
       "non-functional in v1.11+; use the \"sysctls\" field instead"}};
  for (const auto& [key, text] : deprecated) {
    if (meta.annotations().contains(key)) Warn(path.Key(key), text, out);
  }
}

void WarnOfVolumes(const corev1::PodSpec& spec, const Path& path, Warnings& out) {
  for (int i = 0; i < spec.volumes_size(); ++i) {
    const corev1::VolumeSource& source = spec.volumes(i).volume_source();
    const Path item = path.Index(i);
    const std::tuple<bool, std::string_view, std::string_view> gone[] = {
        {source.has_photon_persistent_disk(), "photonPersistentDisk",
         "deprecated in v1.11, non-functional in v1.16+"},
        {source.has_git_repo(), "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
        {source.has_scale_io(), "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
        {source.has_flocker(), "flocker", "deprecated in v1.22, non-functional in v1.25+"},
        {source.has_storageos(), "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
        {source.has_quobyte(), "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
        {source.has_glusterfs(), "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
        {source.has_cephfs(), "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
        {source.has_rbd(), "rbd", "deprecated in v1.28, non-functional in v1.31+"}};
    for (const auto& [present, field, text] : gone) {
      if (present) Warn(item.Child(field), text, out);
    }
    if (source.ephemeral().has_volume_claim_template()) {
      WarnOfClaimSpec(source.ephemeral().volume_claim_template().spec(),
                      item.Child("ephemeral").Child("volumeClaimTemplate").Child("spec"), out);
    }
  }
}

// Warns when another source of the volume would write a token's file too. Paths are upstream's.
void WarnOfTokenPaths(const corev1::PodSpec& spec, const Path& path, Warnings& out) {
  std::set<std::string> tokens;
  for (const corev1::Volume& volume : spec.volumes()) {
    for (const auto& source : volume.volume_source().projected().sources()) {
      if (source.has_service_account_token()) tokens.insert(source.service_account_token().path());
    }
  }
  if (tokens.empty()) return;
  for (int i = 0; i < spec.volumes_size(); ++i) {
    const Path item = path.Index(i), projected = item.Child("projected"),
               sources = projected.Child("sources");
    const auto check = [&](const auto& items, std::string_view kind) {
      const Path list = sources.Child(kind);
      for (int j = 0; j < items.size(); ++j) {
        if (!tokens.contains(items[j].path())) continue;
        Warn(list.Index(j),
             fmt::format("has duplicated path with ServiceAccountToken {}", Quote(items[j].path())), out);
      }
    };
    for (const auto& source : spec.volumes(i).volume_source().projected().sources()) {
      check(source.config_map().items(), "configMap");
      check(source.secret().items(), "secrets");
      check(source.downward_api().items(), "downwardAPI");
    }
  }
}

void WarnOfLists(const corev1::PodSpec& spec, const Path& path, Warnings& out) {
  const Path aliases = path.Child("hostAliases"), secrets = path.Child("imagePullSecrets");
  std::set<std::string_view> ips, names;
  for (int i = 0; i < spec.host_aliases_size(); ++i) {
    const std::string& ip = spec.host_aliases(i).ip();
    if (!ips.insert(ip).second) Warn(aliases.Index(i).Child("ip"), "duplicate ip " + Quote(ip), out);
    WarnOfIp(ip, aliases.Index(i).Child("ip"), out);
  }
  for (int i = 0; i < spec.image_pull_secrets_size(); ++i) {
    const std::string& name = spec.image_pull_secrets(i).name();
    if (!names.insert(name).second) {
      Warn(secrets.Index(i).Child("name"), "duplicate name " + Quote(name), out);
    }
    if (name.empty()) Warn(secrets.Index(i).Child("name"), "invalid empty name \"\"", out);
  }
  const Path dns = path.Child("dnsConfig"), servers = dns.Child("nameservers");
  for (int i = 0; i < spec.dns_config().nameservers_size(); ++i) {
    WarnOfIp(spec.dns_config().nameservers(i), servers.Index(i), out);
  }
}

// There is no half byte.
void WarnOfFractions(const QuantityMap& quantities, const Path& path, Warnings& out) {
  for (const char* name : {"memory", "ephemeral-storage"}) {
    const auto found = quantities.find(name);
    if (found == quantities.end()) continue;
    const api::Amount amount = api::Amount::Of(found->second);
    if (amount.MilliValue() % 1000 == 0) continue;
    Warn(path.Key(name),
         fmt::format("fractional byte value {} is invalid, must be an integer", Quote(amount.ToString())),
         out);
  }
}

template <typename C>
void WarnOfEnv(const C& container, const Path& path, Warnings& out) {
  std::set<std::string_view> seen;
  for (int i = 0; i < container.env_size(); ++i) {
    const corev1::EnvVar& variable = container.env(i);
    if (seen.insert(variable.name()).second) continue;
    // A variable may extend its earlier value: A=x, A=$(A)y.
    const std::string ref = "$(" + variable.name() + ")";
    const bool extends = variable.value().find(ref) != std::string::npos && variable.value() != ref;
    if (!variable.has_value_from() && extends) continue;
    Warn(path.Index(i),
         fmt::format("hides previous definition of {}, which may be dropped when using apply",
                     Quote(variable.name())),
         out);
  }
}

void WarnOfContainers(const corev1::PodSpec& spec, const metav1::ObjectMeta& meta, const Path& annotations,
                      bool is_template, const Path& path, Warnings& out) {
  constexpr std::string_view kSeccomp = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
  const std::string pod = "seccomp.security.alpha.kubernetes.io/pod";
  if (!spec.security_context().has_seccomp_profile() && meta.annotations().contains(pod)) {
    Warn(annotations.Key(pod), kSeccomp, out);
  }
  VisitContainers(spec, path, [&](const auto& container, const Path& here) {
    if (!meta.annotations().empty()) {
      const std::string seccomp = "container.seccomp.security.alpha.kubernetes.io/" + container.name();
      if (!container.security_context().has_seccomp_profile() && meta.annotations().contains(seccomp)) {
        Warn(annotations.Key(seccomp), kSeccomp, out);
      }
      const std::string armor = "container.apparmor.security.beta.kubernetes.io/" + container.name();
      const bool has_field = spec.security_context().has_app_armor_profile() ||
                             container.security_context().has_app_armor_profile();
      if (is_template && !has_field && meta.annotations().contains(armor)) {
        Warn(annotations.Key(armor), "deprecated since v1.30; use the \"appArmorProfile\" field instead",
             out);
      }
    }
    const Path resources = here.Child("resources");
    WarnOfFractions(container.resources().limits(), resources.Child("limits"), out);
    WarnOfFractions(container.resources().requests(), resources.Child("requests"), out);
    WarnOfEnv(container, here.Child("env"), out);
  });
}

void WarnOfPodTerms(const Terms& required, const WeightedTerms& preferred, const Path& path, Warnings& out) {
  const Path hard = path.Child("requiredDuringSchedulingIgnoredDuringExecution");
  for (int i = 0; i < required.size(); ++i) {
    if (!required[i].has_label_selector()) Warn(hard.Index(i).Child("labelSelector"), kNullSelector, out);
  }
  const Path soft = path.Child("preferredDuringSchedulingIgnoredDuringExecution");
  for (int i = 0; i < preferred.size(); ++i) {
    if (preferred[i].pod_affinity_term().has_label_selector()) continue;
    Warn(soft.Index(i).Child("podAffinityTerm").Child("labelSelector"), kNullSelector, out);
  }
}

void WarnOfPodAffinity(const corev1::Affinity& affinity, const Path& path, Warnings& out) {
  const corev1::PodAffinity& with = affinity.pod_affinity();
  WarnOfPodTerms(with.required_during_scheduling_ignored_during_execution(),
                 with.preferred_during_scheduling_ignored_during_execution(), path.Child("podAffinity"), out);
  const corev1::PodAntiAffinity& without = affinity.pod_anti_affinity();
  WarnOfPodTerms(without.required_during_scheduling_ignored_during_execution(),
                 without.preferred_during_scheduling_ignored_during_execution(),
                 path.Child("podAntiAffinity"), out);
}

void WarnAt(const corev1::PodSpec& spec, const metav1::ObjectMeta& meta, bool is_template, const Path& path,
            const Path& annotations, Warnings& out) {
  WarnOfNodeLabels(spec, path, out);
  WarnOfSpread(spec, path.Child("topologySpreadConstraints"), out);
  WarnOfAnnotations(meta, annotations, out);
  WarnOfVolumes(spec, path.Child("volumes"), out);
  WarnOfTokenPaths(spec, path.Child("volumes"), out);
  WarnOfLists(spec, path, out);
  WarnOfFractions(spec.overhead(), path.Child("overhead"), out);
  WarnOfContainers(spec, meta, annotations, is_template, path, out);
  WarnOfPorts(spec, path, out);
  if (spec.termination_grace_period_seconds() < 0) {
    Warn(path.Child("terminationGracePeriodSeconds"),
         "must be >= 0; negative values are invalid and will be treated as 1", out);
  }
  if (spec.has_affinity()) WarnOfPodAffinity(spec.affinity(), path.Child("affinity"), out);
}

}  // namespace

void WarnOfPod(const corev1::PodSpec& spec, const metav1::ObjectMeta& meta, const Path* path, Warnings& out) {
  if (!path) {
    const Path metadata("metadata");
    WarnAt(spec, meta, false, Path("spec"), metadata.Child("annotations"), out);
    return;
  }
  const Path metadata = path->Child("metadata");
  WarnAt(spec, meta, true, path->Child("spec"), metadata.Child("annotations"), out);
}

}  // namespace keelson::k8s
