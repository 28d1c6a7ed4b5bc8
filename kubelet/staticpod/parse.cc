#include "kubelet/staticpod/parse.h"

#include <fmt/format.h>

#include <algorithm>

#include "kubelet/staticpod/pod_uid.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/text.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/text/yaml.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::kubelet {

namespace {

// 128 bits of FNV-1a, as hexadecimal digits.
std::string EarlierHash(std::initializer_list<std::string_view> parts) {
  uint64_t low = 14695981039346656037ull, high = 0x6c62272e07bb0142ull;
  for (std::string_view part : parts) {
    for (unsigned char c : part) {
      low = (low ^ c) * 1099511628211ull;
      high = (high ^ static_cast<unsigned char>(c + 1)) * 1099511628211ull;
    }
    low = (low ^ 0xff) * 1099511628211ull;
    high = (high ^ 0xff) * 1099511628211ull;
  }
  return fmt::format("{:016x}{:016x}", high, low);
}

std::string ReferencedResource(const corev1::VolumeSource& source) {
  if (source.has_csi()) return "csidrivers (via CSI volumes)";
  if (source.has_glusterfs()) return "endpoints (via glusterFS volumes)";
  if (source.has_persistent_volume_claim()) return "persistentvolumeclaims";
  if (source.has_ephemeral()) return "persistentvolumeclaims (via ephemeral volumes)";
  for (const auto& item : source.projected().sources()) {
    if (item.has_service_account_token()) return "serviceaccounts (via projected volumes)";
    if (item.has_cluster_trust_bundle()) return "clustertrustbundles";
    if (item.has_pod_certificate()) return "podcertificates";
  }
  return "";
}

// What a pod without an API object cannot have: objects of the API that it would need.
std::string ReferencedResource(const corev1::PodSpec& spec) {
  if (!spec.service_account_name().empty()) return "serviceaccounts";
  if (!k8s::ReferencedSecrets(spec).empty()) return "secrets";
  if (!k8s::ReferencedConfigMaps(spec).empty()) return "configmaps";
  if (!spec.resource_claims().empty()) return "resourceclaims";
  for (const auto& volume : spec.volumes()) {
    if (std::string resource = ReferencedResource(volume.volume_source()); !resource.empty()) return resource;
  }
  return "";
}

void SetPriority(corev1::PodSpec& spec) {
  if (spec.has_priority()) return;
  if (spec.priority_class_name() == "system-node-critical") spec.set_priority(2000001000);
  if (spec.priority_class_name() == "system-cluster-critical") spec.set_priority(2000000000);
}

void TolerateAll(corev1::PodSpec& spec) {
  for (const auto& toleration : spec.tolerations()) {
    if (toleration.operator_() == "Exists" && toleration.effect() == "NoExecute" &&
        toleration.key().empty()) {
      return;
    }
  }
  corev1::Toleration& all = *spec.add_tolerations();
  all.set_operator_("Exists");
  all.set_effect("NoExecute");
}

// What earlier Keelson kubelets have called the pod of this manifest.
std::string EarlierUid(const PodOrigin& origin, const corev1::Pod& pod) {
  const bool file = origin.source == "file";
  return EarlierHash(
      {file ? "host:" + origin.node_name : "", origin.source + ":" + origin.place, api::EncodeRaw(pod)});
}

// Upstream's, where the pod has nothing but what that can be made of.
std::string OwnUid(const PodOrigin& origin, const corev1::Pod& pod) {
  static const GoTypes types(PodTypes());
  corev1::Pod complete = pod;
  k8s::SetPodDefaults(complete);
  const PodPlace place{origin.node_name, origin.place, origin.source == "file"};
  return UpstreamPodUid(complete, place, types).value_or(EarlierUid(origin, pod));
}

// The pod's own name on this node.
std::string NameOf(const PodOrigin& origin, const corev1::Pod& pod) {
  return pod.metadata().name() + "-" + Lower(origin.node_name);
}

// An identity, no protection: the same as long as the manifest is.
std::string UidOf(const PodOrigin& origin, const corev1::Pod& pod) {
  const std::string earlier = EarlierUid(origin, pod);
  std::string own = OwnUid(origin, pod);
  if (!origin.running) return own;
  const std::string& ns = pod.metadata().namespace_();
  return origin.running
      ->Find((ns.empty() ? "default" : ns) + "/" + NameOf(origin, pod), {own, earlier}, origin.changed)
      .value_or(own);
}

Result<> Complete(const PodOrigin& origin, corev1::Pod& pod) {
  metav1::ObjectMeta& meta = *pod.mutable_metadata();
  if (meta.uid().empty()) meta.set_uid(UidOf(origin, pod));
  // The kubelet makes paths of it.
  if (meta.uid().find_first_of(std::string_view("/\0", 2)) != std::string::npos || meta.uid()[0] == '.') {
    return Error(Code::kInvalid, "invalid pod: metadata.uid: Invalid value: " + k8s::Quote(meta.uid()) +
                                     ": may not contain '/', nor begin with '.'");
  }
  if (meta.name().empty()) {
    return Error(Code::kInvalid,
                 "invalid pod: metadata.name: Required value: name or generateName is required");
  }
  meta.set_name(NameOf(origin, pod));
  if (meta.namespace_().empty()) meta.set_namespace_("default");
  (*meta.mutable_annotations())[std::string(k8s::kConfigHashAnnotation)] = meta.uid();
  (*meta.mutable_annotations())[std::string(k8s::kConfigSourceAnnotation)] = origin.source;
  pod.mutable_spec()->set_node_name(origin.node_name);
  TolerateAll(*pod.mutable_spec());
  SetPriority(*pod.mutable_spec());
  pod.clear_status();
  pod.mutable_status()->set_phase("Pending");
  k8s::SetPodDefaults(pod);
  if (std::string resource = ReferencedResource(pod.spec()); !resource.empty()) {
    return Error(Code::kInvalid, "static pods may not reference " + resource);
  }
  if (k8s::FieldErrors errors = k8s::ValidatePod(pod); !errors.empty()) {
    return Error(Code::kInvalid, "invalid pod: " + errors.front().ToString());
  }
  return {};
}

}  // namespace

Result<std::vector<corev1::Pod>> ParseStaticPods(std::string_view text, const PodOrigin& origin) {
  KEELSON_ASSIGN_OR_RETURN(std::string json, k8s::YamlToJson(text));
  KEELSON_ASSIGN_OR_RETURN(api::TypeMeta type, api::PeekTypeMeta(json));
  std::vector<corev1::Pod> pods;
  if (type.kind == "Pod") {
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(json, pods.emplace_back()));
  } else if (type.kind == "PodList" && origin.source == "http") {
    corev1::PodList list;
    KEELSON_RETURN_IF_ERROR(api::DecodeJson(json, list));
    for (corev1::Pod& pod : *list.mutable_items()) pods.push_back(std::move(pod));
  } else {
    return Error(Code::kInvalid, "couldn't parse as pod (kind \"" + type.kind + "\")");
  }
  for (corev1::Pod& pod : pods) KEELSON_RETURN_IF_ERROR(Complete(origin, pod));
  return pods;
}

}  // namespace keelson::kubelet
