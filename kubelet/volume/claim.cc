#include "kubelet/volume/claim.h"

#include <algorithm>
#include <charconv>

#include "lib/api/meta.h"
#include "lib/k8s/pods/node_affinity.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

namespace {

Result<> CheckClaim(const corev1::Pod& pod, const corev1::Volume& volume,
                    const corev1::PersistentVolumeClaim& claim) {
  if (volume.volume_source().has_ephemeral()) {
    const auto& owners = claim.metadata().owner_references();
    bool ours = std::any_of(owners.begin(), owners.end(), [&](const auto& owner) {
      return owner.controller() && owner.uid() == pod.metadata().uid();
    });
    if (!ours) {
      return Error(Code::kInvalid, "PVC " + api::KeyOf(claim) + " was not created for pod " +
                                       api::KeyOf(pod) + " (pod is not owner)");
    }
  }
  // A claim that is going away serves the pods that have it, and no new ones.
  if (claim.metadata().has_deletion_timestamp()) return Error(Code::kUnavailable, "PVC is being deleted");
  if (claim.status().phase() != "Bound" || claim.spec().volume_name().empty()) {
    return Error(Code::kUnavailable, "PVC is not bound");
  }
  return {};
}

Result<> CheckBinding(const corev1::PersistentVolumeClaim& claim, const corev1::PersistentVolume& volume) {
  const std::string& name = volume.metadata().name();
  if (!volume.spec().has_claim_ref()) {
    return Error(Code::kUnavailable, "found PV object " + name +
                                         " but it has a nil pv.Spec.ClaimRef indicating it is not yet bound "
                                         "to the claim");
  }
  if (volume.spec().claim_ref().uid() != claim.metadata().uid()) {
    return Error(Code::kUnavailable, "found PV object " + name + " but its pv.Spec.ClaimRef.UID " +
                                         volume.spec().claim_ref().uid() + " does not point to claim.UID " +
                                         claim.metadata().uid());
  }
  return {};
}

bool Names(const corev1::PodSpec& spec, const std::string& volume, bool devices) {
  bool found = false;
  k8s::ForEachContainer(spec, [&](const corev1::Container& container) {
    if (devices) {
      for (const auto& item : container.volume_devices()) found = found || item.name() == volume;
    } else {
      for (const auto& item : container.volume_mounts()) found = found || item.name() == volume;
    }
  });
  return found;
}

}  // namespace

std::string ClaimName(const corev1::Pod& pod, const corev1::Volume& volume) {
  const corev1::VolumeSource& source = volume.volume_source();
  if (source.has_persistent_volume_claim()) return source.persistent_volume_claim().claim_name();
  if (source.has_ephemeral()) return pod.metadata().name() + "-" + volume.name();
  return "";
}

Result<> ResolveClaim(ObjectSource& objects, VolumeInput& input) {
  std::string name = ClaimName(input.pod, input.volume);
  if (name.empty()) return {};
  const std::string& ns = input.pod.metadata().namespace_();
  std::string context = "error processing PVC " + ns + "/" + name;
  auto claim = objects.GetClaim(ns, name);
  if (!claim) return claim.error().Wrap(context + ": failed to fetch PVC from API server");
  if (auto good = CheckClaim(input.pod, input.volume, **claim); !good) return good.error().Wrap(context);
  const std::string& volume_name = (*claim)->spec().volume_name();
  auto volume = objects.GetPersistentVolume(volume_name);
  if (!volume) {
    return volume.error().Wrap(context + ": failed to fetch PV " + volume_name + " from API server");
  }
  if (auto bound = CheckBinding(**claim, **volume); !bound) return bound.error().Wrap(context);
  input.read_only = input.volume.volume_source().persistent_volume_claim().read_only();
  input.claim = std::move(*claim);
  input.persistent = std::move(*volume);
  return {};
}

bool IsBlock(const VolumeInput& input) {
  return input.persistent && input.persistent->spec().volume_mode() == "Block";
}

Result<> CheckMode(const VolumeInput& input) {
  if (!input.persistent) return {};
  const std::string& name = input.volume.name();
  const bool block = IsBlock(input);
  if (block && Names(input.pod.spec(), name, false)) {
    return Error(Code::kInvalid,
                 "volume " + name + " has volumeMode Block, but is specified in volumeMounts");
  }
  if (!block && Names(input.pod.spec(), name, true)) {
    return Error(Code::kInvalid,
                 "volume " + name + " has volumeMode Filesystem, but is specified in volumeDevices");
  }
  return {};
}

Result<> CheckNode(const VolumeInput& input, const corev1::Node* node) {
  if (!input.persistent || !node) return {};
  const corev1::PersistentVolumeSpec& spec = input.persistent->spec();
  if (!spec.node_affinity().has_required() ||
      k8s::MatchesNodeSelector(spec.node_affinity().required(), *node)) {
    return {};
  }
  return Error(Code::kInvalid, "no matching NodeSelectorTerms");
}

std::optional<int64_t> GroupOf(const VolumeInput& input) {
  if (!input.persistent) return std::nullopt;
  const auto& annotations = input.persistent->metadata().annotations();
  auto it = annotations.find("pv.beta.kubernetes.io/gid");
  int64_t group = 0;
  if (it == annotations.end()) return std::nullopt;
  const std::string& text = it->second;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), group);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return group;
}

}  // namespace keelson::kubelet
