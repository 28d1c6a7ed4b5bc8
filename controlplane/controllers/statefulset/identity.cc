#include "controlplane/controllers/statefulset/identity.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "controlplane/controllers/common/history.h"
#include "controlplane/controllers/common/pod_control.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

bool HasLabel(const corev1::Pod& pod, const char* key, const std::string& value) {
  const auto found = pod.metadata().labels().find(key);
  return found != pod.metadata().labels().end() && found->second == value;
}

void SetIdentityLabels(const appsv1::StatefulSet& set, int32_t ordinal, corev1::Pod& pod) {
  auto& labels = *pod.mutable_metadata()->mutable_labels();
  labels[kPodNameLabel] = PodNameAt(set, ordinal);
  labels[kPodIndexLabel] = std::to_string(ordinal);
}

// Claims override the template's volumes of the same name.
void SetStorage(const appsv1::StatefulSet& set, int32_t ordinal, corev1::Pod& pod) {
  google::protobuf::RepeatedPtrField<corev1::Volume> volumes;
  for (const corev1::PersistentVolumeClaim& source : set.spec().volume_claim_templates()) {
    corev1::Volume& volume = *volumes.Add();
    volume.set_name(source.metadata().name());
    volume.mutable_volume_source()->mutable_persistent_volume_claim()->set_claim_name(
        ClaimNameAt(set, source, ordinal));
  }
  const auto& claims = set.spec().volume_claim_templates();
  for (const corev1::Volume& volume : pod.spec().volumes()) {
    const bool claimed = std::any_of(claims.begin(), claims.end(), [&](const auto& source) {
      return source.metadata().name() == volume.name();
    });
    if (!claimed) *volumes.Add() = volume;
  }
  pod.mutable_spec()->mutable_volumes()->Swap(&volumes);
}

using Owners = google::protobuf::RepeatedPtrField<metav1::OwnerReference>;

// True when one of `owners` is `owner`, as the controller.
bool IsController(const Owners& owners, const metav1::ObjectMeta& owner) {
  return std::any_of(owners.begin(), owners.end(), [&](const metav1::OwnerReference& reference) {
    return reference.uid() == owner.uid() && reference.controller();
  });
}

bool Drop(Owners& owners, const metav1::ObjectMeta& owner) {
  const int before = owners.size();
  owners.erase(std::remove_if(owners.begin(), owners.end(),
                              [&](const auto& reference) { return reference.uid() == owner.uid(); }),
               owners.end());
  return owners.size() != before;
}

bool Match(const google::protobuf::Message& owner, bool wanted, Owners& owners) {
  const metav1::ObjectMeta& meta = api::Meta(owner);
  if (!wanted) return Drop(owners, meta);
  if (IsController(owners, meta)) return false;
  Drop(owners, meta);
  *owners.Add() = api::ControllerRef(owner);
  return true;
}

}  // namespace

int32_t FirstOrdinal(const appsv1::StatefulSet& set) { return set.spec().ordinals().start(); }

bool InRange(const appsv1::StatefulSet& set, int32_t ordinal) {
  const int64_t first = FirstOrdinal(set);
  return ordinal >= first && ordinal < first + set.spec().replicas();
}

std::optional<int32_t> OrdinalOf(const appsv1::StatefulSet& set, const corev1::Pod& pod) {
  const std::string& name = pod.metadata().name();
  const std::string prefix = set.metadata().name() + "-";
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = std::string_view(name).substr(prefix.size());
  int32_t ordinal = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || ordinal < 0) {
    return std::nullopt;
  }
  if (std::to_string(ordinal) != digits) return std::nullopt;
  return ordinal;
}

std::string PodNameAt(const appsv1::StatefulSet& set, int32_t ordinal) {
  return fmt::format("{}-{}", set.metadata().name(), ordinal);
}

std::string ClaimNameAt(const appsv1::StatefulSet& set, const corev1::PersistentVolumeClaim& source,
                        int32_t ordinal) {
  return fmt::format("{}-{}", source.metadata().name(), PodNameAt(set, ordinal));
}

corev1::Pod NewPodAt(const appsv1::StatefulSet& set, int32_t ordinal, const std::string& revision) {
  corev1::Pod pod = PodFromTemplate(set.spec().template_(), set);
  pod.mutable_metadata()->clear_generate_name();
  pod.mutable_metadata()->set_name(PodNameAt(set, ordinal));
  pod.mutable_spec()->set_hostname(pod.metadata().name());
  if (!set.spec().service_name().empty()) pod.mutable_spec()->set_subdomain(set.spec().service_name());
  (*pod.mutable_metadata()->mutable_labels())[kPodRevisionLabel] = revision;
  Mend(set, ordinal, pod);
  return pod;
}

std::vector<corev1::PersistentVolumeClaim> ClaimsAt(const appsv1::StatefulSet& set, int32_t ordinal) {
  std::vector<corev1::PersistentVolumeClaim> claims;
  for (const corev1::PersistentVolumeClaim& source : set.spec().volume_claim_templates()) {
    corev1::PersistentVolumeClaim& claim = claims.emplace_back(source);
    claim.clear_status();
    metav1::ObjectMeta& meta = *claim.mutable_metadata();
    meta.set_name(ClaimNameAt(set, source, ordinal));
    meta.set_namespace_(set.metadata().namespace_());
    for (const auto& [key, value] : set.spec().selector().match_labels()) {
      (*meta.mutable_labels())[key] = value;
    }
  }
  return claims;
}

bool HasIdentity(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal) {
  return HasLabel(pod, kPodNameLabel, PodNameAt(set, ordinal)) &&
         HasLabel(pod, kPodIndexLabel, std::to_string(ordinal));
}

bool HasStorage(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal) {
  const auto& volumes = pod.spec().volumes();
  const auto& sources = set.spec().volume_claim_templates();
  return std::all_of(sources.begin(), sources.end(), [&](const corev1::PersistentVolumeClaim& source) {
    return std::any_of(volumes.begin(), volumes.end(), [&](const corev1::Volume& volume) {
      return volume.name() == source.metadata().name() &&
             volume.volume_source().persistent_volume_claim().claim_name() ==
                 ClaimNameAt(set, source, ordinal);
    });
  });
}

void Mend(const appsv1::StatefulSet& set, int32_t ordinal, corev1::Pod& pod) {
  SetIdentityLabels(set, ordinal, pod);
  if (!HasStorage(set, pod, ordinal)) SetStorage(set, ordinal, pod);
}

bool UpdateOwners(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal,
                  corev1::PersistentVolumeClaim& claim) {
  Owners& owners = *claim.mutable_metadata()->mutable_owner_references();
  const metav1::OwnerReference* controller = api::ControllerOf(claim.metadata());
  if (controller && controller->uid() != set.metadata().uid() && controller->uid() != pod.metadata().uid()) {
    return false;
  }
  const auto& policy = set.spec().persistent_volume_claim_retention_policy();
  const bool with_set = policy.when_deleted() == "Delete", with_pod = policy.when_scaled() == "Delete";
  const bool goes_with_pod = with_pod && !InRange(set, ordinal);
  const bool set_changed = Match(set, with_set && !goes_with_pod, owners);
  return Match(pod, goes_with_pod, owners) || set_changed;
}

bool IsStale(const corev1::PersistentVolumeClaim& claim, const corev1::Pod& pod) {
  const auto& owners = claim.metadata().owner_references();
  return std::any_of(owners.begin(), owners.end(), [&](const metav1::OwnerReference& reference) {
    return reference.kind() == "Pod" && reference.name() == pod.metadata().name() &&
           reference.uid() != pod.metadata().uid();
  });
}

}  // namespace keelson::controllers
