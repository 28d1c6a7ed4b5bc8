#include "lib/k8s/warnings/warnings.h"

#include <arpa/inet.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/quantity.h"
#include "lib/k8s/text/names.h"
#include "lib/k8s/validation/network/service_rules.h"
#include "lib/k8s/warnings/internal.h"

namespace keelson::k8s {

using google::protobuf::Message;

namespace {

namespace batchv1 = api::batch::v1;
namespace networkingv1 = api::networking::v1;
using Definition = api::apiextensions::v1::CustomResourceDefinition;

void WarnOfName(const metav1::ObjectMeta& meta, std::string_view use, Warnings& out) {
  const Problems problems = CheckDns1123Label(meta.name());
  if (problems.empty()) return;
  out.push_back(
      fmt::format("metadata.name: this is used in {}, which can result in surprising behavior; a DNS "
                  "label is recommended: [{}]",
                  use, fmt::join(problems, " ")));
}

// For kinds with spec.template. `names_pods`: pods get names and hostnames from the object's.
template <typename T, bool kNamesPods>
void WarnOfTemplate(const T& object, bool is_new, Warnings& out) {
  if (is_new && kNamesPods) WarnOfName(object.metadata(), "Pod names and hostnames", out);
  const Path spec("spec"), path = spec.Child("template");
  if (!object.spec().has_template_()) return;
  WarnOfPod(object.spec().template_().spec(), object.spec().template_().metadata(), &path, out);
}

void WarnOfStatefulSet(const appsv1::StatefulSet& object, bool is_new, Warnings& out) {
  WarnOfTemplate<appsv1::StatefulSet, false>(object, is_new, out);
  const Path spec("spec"), list = spec.Child("volumeClaimTemplates");
  for (int i = 0; i < object.spec().volume_claim_templates_size(); ++i) {
    WarnOfClaimSpec(object.spec().volume_claim_templates(i).spec(), list.Index(i).Child("Spec"), out);
  }
  if (object.spec().revision_history_limit() < 0) {
    Warn(spec.Child("revisionHistoryLimit"),
         "a negative value retains all historical revisions; a value >= 0 is recommended", out);
  }
}

void WarnOfPodTemplate(const corev1::PodTemplate& object, bool, Warnings& out) {
  const Path path("template");
  WarnOfPod(object.template_().spec(), object.template_().metadata(), &path, out);
}

void WarnOfNewPod(const corev1::Pod& pod, bool is_new, Warnings& out) {
  // Controllers update pods all the time, and their warnings have no reader.
  if (!is_new) return;
  WarnOfName(pod.metadata(), "the Pod's hostname", out);
  WarnOfPod(pod.spec(), pod.metadata(), nullptr, out);
}

void WarnOfJobSpec(const batchv1::JobSpec& spec, const Path& path, Warnings& out) {
  if (spec.completion_mode() == "Indexed" && spec.completions() > 100'000 && spec.parallelism() > 10'000) {
    Warn(path,
         "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
         "Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
         out);
  }
  const Path at = path.Child("template");
  WarnOfPod(spec.template_().spec(), spec.template_().metadata(), &at, out);
}

void WarnOfJob(const batchv1::Job& object, bool is_new, Warnings& out) {
  if (is_new) WarnOfName(object.metadata(), "Pod names and hostnames", out);
  WarnOfJobSpec(object.spec(), Path("spec"), out);
}

void WarnOfCronJob(const batchv1::CronJob& object, bool is_new, Warnings& out) {
  if (is_new) WarnOfName(object.metadata(), "Pod names and hostnames", out);
  if (object.spec().schedule().find("TZ") != std::string::npos) {
    out.push_back(
        "CRON_TZ or TZ used in spec.spec.schedule is not officially supported, see "
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
  }
  const Path spec("spec"), job = spec.Child("jobTemplate");
  WarnOfJobSpec(object.spec().job_template().spec(), job.Child("spec"), out);
}

void WarnOfFraction(const google::protobuf::Map<std::string, Quantity>& quantities, const Path& path,
                    Warnings& out) {
  const auto found = quantities.find("storage");
  if (found == quantities.end()) return;
  const api::Amount amount = api::Amount::Of(found->second);
  if (amount.MilliValue() % 1000 == 0) return;
  Warn(path.Key("storage"),
       fmt::format("fractional byte value {} is invalid, must be an integer", Quote(amount.ToString())), out);
}

constexpr std::string_view kStorageClass =
    "deprecated since v1.8; use \"storageClassName\" attribute instead";

void WarnOfClaim(const corev1::PersistentVolumeClaim& object, bool, Warnings& out) {
  const Path metadata("metadata"), annotations = metadata.Child("annotations");
  const std::string key = "volume.beta.kubernetes.io/storage-class";
  if (object.metadata().annotations().contains(key)) Warn(annotations.Key(key), kStorageClass, out);
  WarnOfClaimSpec(object.spec(), Path("spec"), out);
}

void WarnOfVolume(const corev1::PersistentVolume& object, bool, Warnings& out) {
  const Path metadata("metadata"), annotations = metadata.Child("annotations"), spec("spec");
  const std::pair<const char*, std::string_view> deprecated[] = {
      {"volume.beta.kubernetes.io/storage-class", kStorageClass},
      {"volume.beta.kubernetes.io/mount-options",
       "deprecated since v1.31; use \"mountOptions\" attribute instead"}};
  for (const auto& [key, text] : deprecated) {
    if (object.metadata().annotations().contains(key)) Warn(annotations.Key(key), text, out);
  }
  const auto& terms = object.spec().node_affinity().required().node_selector_terms();
  const Path affinity = spec.Child("nodeAffinity"), required = affinity.Child("required");
  const Path list = required.Child("nodeSelectorTerms");
  for (int i = 0; i < terms.size(); ++i) WarnOfNodeTerm(terms[i], false, list.Index(i), out);
  if (object.spec().persistent_volume_reclaim_policy() == "Recycle") {
    Warn(spec.Child("persistentVolumeReclaimPolicy"),
         "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic "
         "provisioning.",
         out);
  }
  const corev1::PersistentVolumeSource& source = object.spec().persistent_volume_source();
  const std::tuple<bool, std::string_view, std::string_view> gone[] = {
      {source.has_cephfs(), "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
      {source.has_photon_persistent_disk(), "photonPersistentDisk",
       "deprecated in v1.11, non-functional in v1.16+"},
      {source.has_scale_io(), "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
      {source.has_storageos(), "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
      {source.has_glusterfs(), "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
      {source.has_rbd(), "rbd", "deprecated in v1.28, non-functional in v1.31+"}};
  for (const auto& [present, field, text] : gone) {
    if (present) Warn(spec.Child(field), text, out);
  }
  WarnOfFraction(object.spec().capacity(), spec.Child("capacity"), out);
}

void WarnOfService(const corev1::Service& object, bool, Warnings& out) {
  for (std::string& text : ServiceWarnings(object)) out.push_back(std::move(text));
}

void WarnOfAccount(const corev1::ServiceAccount& object, bool is_new, Warnings& out) {
  constexpr char kEnforce[] = "kubernetes.io/enforce-mountable-secrets";
  if (!is_new || !object.metadata().annotations().contains(kEnforce)) return;
  const Path metadata("metadata"), annotations = metadata.Child("annotations");
  Warn(annotations.Key(kEnforce),
       "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets", out);
}

void WarnOfNode(const corev1::Node& object, bool, Warnings& out) {
  const Path spec("spec");
  if (object.spec().has_config_source()) Warn(spec.Child("configSource"), "the feature is removed", out);
  if (!object.spec().external_id().empty()) {
    Warn(spec.Child("externalID"), "this field is deprecated, and is unused by Kubernetes", out);
  }
}

void WarnOfIngress(const networkingv1::Ingress& object, bool is_new, Warnings& out) {
  if (!is_new || !object.metadata().annotations().contains("kubernetes.io/ingress.class")) return;
  out.push_back(
      "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead");
}

using Rule = void (*)(const Message& object, bool is_new, Warnings& out);

template <typename T, void (*kRule)(const T&, bool, Warnings&)>
void Wrapped(const Message& object, bool is_new, Warnings& out) {
  kRule(static_cast<const T&>(object), is_new, out);
}

struct Entry {
  Rule rule;
  bool counts_generation;  // warn on update only when the generation changes
};

const Entry* Find(const Message& object) {
  static const auto* const table = new std::unordered_map<const google::protobuf::Descriptor*, Entry>{
      {corev1::Pod::descriptor(), {Wrapped<corev1::Pod, WarnOfNewPod>, false}},
      {corev1::PodTemplate::descriptor(), {Wrapped<corev1::PodTemplate, WarnOfPodTemplate>, false}},
      {corev1::ReplicationController::descriptor(),
       {Wrapped<corev1::ReplicationController, WarnOfTemplate<corev1::ReplicationController, true>>, true}},
      {appsv1::Deployment::descriptor(),
       {Wrapped<appsv1::Deployment, WarnOfTemplate<appsv1::Deployment, true>>, true}},
      {appsv1::ReplicaSet::descriptor(),
       {Wrapped<appsv1::ReplicaSet, WarnOfTemplate<appsv1::ReplicaSet, true>>, true}},
      {appsv1::DaemonSet::descriptor(),
       {Wrapped<appsv1::DaemonSet, WarnOfTemplate<appsv1::DaemonSet, false>>, true}},
      {appsv1::StatefulSet::descriptor(), {Wrapped<appsv1::StatefulSet, WarnOfStatefulSet>, true}},
      {batchv1::Job::descriptor(), {Wrapped<batchv1::Job, WarnOfJob>, true}},
      {batchv1::CronJob::descriptor(), {Wrapped<batchv1::CronJob, WarnOfCronJob>, true}},
      {corev1::PersistentVolumeClaim::descriptor(),
       {Wrapped<corev1::PersistentVolumeClaim, WarnOfClaim>, false}},
      {corev1::PersistentVolume::descriptor(), {Wrapped<corev1::PersistentVolume, WarnOfVolume>, false}},
      {corev1::ServiceAccount::descriptor(), {Wrapped<corev1::ServiceAccount, WarnOfAccount>, false}},
      {corev1::Node::descriptor(), {Wrapped<corev1::Node, WarnOfNode>, false}},
      {networkingv1::Ingress::descriptor(), {Wrapped<networkingv1::Ingress, WarnOfIngress>, false}},
      {corev1::Service::descriptor(), {Wrapped<corev1::Service, WarnOfService>, false}}};
  const auto found = table->find(object.GetDescriptor());
  return found == table->end() ? nullptr : &found->second;
}

// Prints an address as Go does: IPv4 for mapped addresses, RFC 5952 otherwise. Empty: not an address.
std::string CanonicalIp(const std::string& value) {
  char text[INET6_ADDRSTRLEN] = {};
  if (IsIpv6(value)) {
    in6_addr address;
    if (inet_pton(AF_INET6, value.c_str(), &address) != 1) return {};
    if (IN6_IS_ADDR_V4MAPPED(&address)) return inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof text);
    return inet_ntop(AF_INET6, &address, text, sizeof text);
  }
  if (!IsIpv4(value)) return {};
  // Leading zeros, which Go once read as decimal.
  std::string out;
  for (size_t at = 0; at <= value.size();) {
    const size_t dot = std::min(value.find('.', at), value.size());
    out += fmt::format("{}{}", out.empty() ? "" : ".", std::stoi(value.substr(at, dot - at)));
    at = dot + 1;
  }
  return out;
}

}  // namespace

void Warn(const Path& path, std::string_view text, Warnings& out) {
  out.push_back(fmt::format("{}: {}", path.ToString(), text));
}

std::string_view DeprecatedNodeLabel(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kLabels[] = {
      {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
      {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
      {"failure-domain.beta.kubernetes.io/region",
       "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
      {"failure-domain.beta.kubernetes.io/zone",
       "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
      {"beta.kubernetes.io/instance-type",
       "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"}};
  for (const auto& [label, text] : kLabels) {
    if (label == key) return text;
  }
  return {};
}

void WarnOfNodeTerm(const corev1::NodeSelectorTerm& term, bool preferred, const Path& path, Warnings& out) {
  const Path list = path.Child("matchExpressions");
  for (int i = 0; i < term.match_expressions_size(); ++i) {
    const corev1::NodeSelectorRequirement& requirement = term.match_expressions(i);
    const Path item = list.Index(i), values = item.Child("values");
    const std::string_view text = DeprecatedNodeLabel(requirement.key());
    if (!text.empty()) Warn(item.Child("key"), fmt::format("{} is {}", requirement.key(), text), out);
    if (!preferred) continue;
    for (int j = 0; j < requirement.values_size(); ++j) {
      for (const std::string& problem : CheckLabelValue(requirement.values(j))) {
        Warn(values.Index(j), fmt::format("{} is invalid, {}", requirement.values(j), problem), out);
      }
    }
  }
}

void WarnOfClaimSpec(const corev1::PersistentVolumeClaimSpec& spec, const Path& path, Warnings& out) {
  const Path resources = path.Child("resources");
  WarnOfFraction(spec.resources().requests(), resources.Child("requests"), out);
}

void WarnOfIp(const std::string& value, const Path& path, Warnings& out) {
  const std::string canonical = CanonicalIp(value);
  if (canonical.empty() || canonical == value) return;
  if (IsIpv4(canonical)) {
    Warn(path,
         fmt::format("non-standard IP address {} will be considered invalid in a future Kubernetes release: "
                     "use {}",
                     Quote(value), Quote(canonical)),
         out);
    return;
  }
  Warn(path,
       fmt::format("IPv6 address {} should be in RFC 5952 canonical format ({})", Quote(value),
                   Quote(canonical)),
       out);
}

Warnings WarningsOnCreate(const Message& object) {
  Warnings out;
  if (object.GetDescriptor() == Definition::descriptor()) {
    WarnOfDefinition(static_cast<const Definition&>(object), nullptr, out);
  }
  if (const Entry* entry = Find(object)) entry->rule(object, true, out);
  return out;
}

Warnings WarningsOnUpdate(const Message& object, const Message& old) {
  Warnings out;
  if (object.GetDescriptor() == Definition::descriptor()) {
    WarnOfDefinition(static_cast<const Definition&>(object), &static_cast<const Definition&>(old), out);
  }
  const Entry* entry = Find(object);
  if (!entry) return out;
  const auto generation = [](const Message& one) {
    const auto* field = one.GetDescriptor()->FindFieldByName("metadata");
    return static_cast<const metav1::ObjectMeta&>(one.GetReflection()->GetMessage(one, field)).generation();
  };
  if (entry->counts_generation && generation(object) == generation(old)) return out;
  entry->rule(object, false, out);
  return out;
}

}  // namespace keelson::k8s
