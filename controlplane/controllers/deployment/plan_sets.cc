// ReplicaSets of a Deployment: the new one, revisions, annotations.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <utility>

#include "controlplane/controllers/deployment/plan.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/k8s/int_or_string.h"

namespace keelson::controllers {
namespace {

// Annotations of the Deployment that are not copied.
bool StaysWithDeployment(std::string_view key) {
  for (std::string_view own :
       {std::string_view("kubectl.kubernetes.io/last-applied-configuration"), std::string_view(kRevision),
        std::string_view(kRevisionHistory), std::string_view(kDesiredReplicas),
        std::string_view(kMaxReplicas), std::string_view(kRollbackTo)}) {
    if (key == own) return true;
  }
  return false;
}

constexpr size_t kMaxHistory = 2000;  // bytes of the revision-history annotation

void AppendHistory(metav1::ObjectMeta& meta, const std::string& revision) {
  std::string& history = (*meta.mutable_annotations())[kRevisionHistory];
  // Drops the oldest entries when the list grows too long.
  while (!history.empty() && history.size() + revision.size() + 1 > kMaxHistory) {
    history.erase(0, std::min(history.find(','), history.size() - 1) + 1);
  }
  if (!history.empty()) history += ',';
  history += revision;
}

std::string TemplateBytes(const corev1::PodTemplateSpec& pod_template) {
  if (!pod_template.metadata().labels().contains(kPodTemplateHash)) return api::EncodeRaw(pod_template);
  corev1::PodTemplateSpec copy = pod_template;
  copy.mutable_metadata()->mutable_labels()->erase(kPodTemplateHash);
  return api::EncodeRaw(copy);
}

std::optional<int64_t> Number(const std::string& text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool SetAnnotation(metav1::ObjectMeta& meta, const char* key, const std::string& value) {
  std::string& stored = (*meta.mutable_annotations())[key];
  if (stored == value) return false;
  stored = value;
  return true;
}

}  // namespace

Limits LimitsOf(const appsv1::Deployment& deployment) {
  const auto& strategy = deployment.spec().strategy();
  const int32_t replicas = deployment.spec().replicas();
  if (strategy.type() != "RollingUpdate") return {};
  const auto& rolling = strategy.rolling_update();
  auto scaled = [&](bool has, const intstr::IntOrString& value, bool up) -> int32_t {
    if (!has) return 0;
    Result<int64_t> number = k8s::ScaledValue(value, replicas, up);
    return number ? static_cast<int32_t>(*number) : 0;
  };
  Limits limits{scaled(rolling.has_max_surge(), rolling.max_surge(), true),
                scaled(rolling.has_max_unavailable(), rolling.max_unavailable(), false)};
  if (limits.surge == 0 && limits.unavailable == 0) limits.unavailable = 1;
  limits.unavailable = std::min(limits.unavailable, replicas);
  limits.surge = std::min(limits.surge, std::numeric_limits<int32_t>::max() - replicas);
  return limits;
}

bool SameTemplate(const corev1::PodTemplateSpec& a, const corev1::PodTemplateSpec& b) {
  return TemplateBytes(a) == TemplateBytes(b);
}

std::string TemplateHash(const corev1::PodTemplateSpec& pod_template, int32_t collisions) {
  uint32_t hash = 2166136261u;  // FNV-1a
  std::string bytes = TemplateBytes(pod_template);
  if (collisions > 0) bytes += "#" + std::to_string(collisions);
  for (unsigned char c : bytes) hash = (hash ^ c) * 16777619u;
  // The safe alphabet: no vowels and no look-alikes.
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string out;
  for (char digit : std::to_string(hash)) {
    out += kLetters[static_cast<unsigned char>(digit) % kLetters.size()];
  }
  return out;
}

SetPointer FindNewSet(const appsv1::Deployment& deployment, const SetPointers& sets) {
  const std::string wanted = TemplateBytes(deployment.spec().template_());
  SetPointer found;
  auto older = [](const metav1::ObjectMeta& a, const metav1::ObjectMeta& b) {
    int64_t x = a.creation_timestamp().seconds(), y = b.creation_timestamp().seconds();
    return x != y ? x < y : a.name() < b.name();
  };
  for (const SetPointer& set : sets) {
    if (found && !older(set->metadata(), found->metadata())) continue;
    if (TemplateBytes(set->spec().template_()) == wanted) found = set;
  }
  return found;
}

SetPointers Without(const SetPointers& sets, const SetPointer& one) {
  SetPointers out;
  for (const SetPointer& set : sets) {
    if (!one || set->metadata().uid() != one->metadata().uid()) out.push_back(set);
  }
  return out;
}

SetPointers WithReplicas(const SetPointers& sets) {
  SetPointers out;
  for (const SetPointer& set : sets) {
    if (set->spec().replicas() > 0) out.push_back(set);
  }
  return out;
}

int64_t RevisionOf(const metav1::ObjectMeta& meta) {
  auto it = meta.annotations().find(kRevision);
  return it == meta.annotations().end() ? 0 : Number(it->second).value_or(0);
}

int64_t MaxRevision(const SetPointers& sets) {
  int64_t max = 0;
  for (const SetPointer& set : sets) max = std::max(max, RevisionOf(set->metadata()));
  return max;
}

std::optional<int64_t> RollbackRevision(const appsv1::Deployment& deployment) {
  auto it = deployment.metadata().annotations().find(kRollbackTo);
  if (it == deployment.metadata().annotations().end()) return std::nullopt;
  return Number(it->second);
}

int64_t LastRevision(const SetPointers& sets) {
  int64_t first = 0, second = 0;
  for (const SetPointer& set : sets) {
    const int64_t revision = RevisionOf(set->metadata());
    if (revision >= first) {
      second = std::exchange(first, revision);
    } else {
      second = std::max(second, revision);
    }
  }
  return second;
}

void RestoreFrom(const appsv1::ReplicaSet& set, appsv1::Deployment& deployment) {
  corev1::PodTemplateSpec& pod_template = *deployment.mutable_spec()->mutable_template_();
  pod_template = set.spec().template_();
  pod_template.mutable_metadata()->mutable_labels()->erase(kPodTemplateHash);
  auto& annotations = *deployment.mutable_metadata()->mutable_annotations();
  for (auto it = annotations.begin(); it != annotations.end();) {
    it = StaysWithDeployment(it->first) ? std::next(it) : annotations.erase(it);
  }
  for (const auto& [key, value] : set.metadata().annotations()) {
    if (!StaysWithDeployment(key)) annotations[key] = value;
  }
}

int32_t SumSpec(const SetPointers& sets) {
  int32_t sum = 0;
  for (const SetPointer& set : sets) sum += set->spec().replicas();
  return sum;
}

int32_t SumStatus(const SetPointers& sets) {
  int32_t sum = 0;
  for (const SetPointer& set : sets) sum += set->status().replicas();
  return sum;
}

int32_t SumAvailable(const SetPointers& sets) {
  int32_t sum = 0;
  for (const SetPointer& set : sets) sum += set->status().available_replicas();
  return sum;
}

bool AnnotateReplicas(const appsv1::Deployment& deployment, appsv1::ReplicaSet& set) {
  const int32_t desired = deployment.spec().replicas();
  metav1::ObjectMeta& meta = *set.mutable_metadata();
  bool changed = SetAnnotation(meta, kDesiredReplicas, std::to_string(desired));
  changed |= SetAnnotation(meta, kMaxReplicas, std::to_string(desired + LimitsOf(deployment).surge));
  return changed;
}

bool AnnotateSet(const appsv1::Deployment& deployment, int64_t revision, bool exists,
                 appsv1::ReplicaSet& set) {
  metav1::ObjectMeta& meta = *set.mutable_metadata();
  bool changed = false;
  for (const auto& [key, value] : deployment.metadata().annotations()) {
    if (!StaysWithDeployment(key)) changed |= SetAnnotation(meta, key.c_str(), value);
  }
  auto it = meta.annotations().find(kRevision);
  const std::string before = it == meta.annotations().end() ? "" : it->second;
  if (!before.empty() && !Number(before)) return changed;  // an unknown revision format: leave it
  if (RevisionOf(meta) < revision) {
    (*meta.mutable_annotations())[kRevision] = std::to_string(revision);
    changed = true;
    if (!before.empty()) AppendHistory(meta, before);
  }
  if (!exists) changed |= AnnotateReplicas(deployment, set);
  return changed;
}

bool IsScaling(const appsv1::Deployment& deployment, const SetPointers& sets) {
  for (const SetPointer& set : WithReplicas(sets)) {
    auto it = set->metadata().annotations().find(kDesiredReplicas);
    if (it == set->metadata().annotations().end()) continue;
    std::optional<int64_t> desired = Number(it->second);
    if (desired && *desired != deployment.spec().replicas()) return true;
  }
  return false;
}

SetPointers SetsToCleanUp(const appsv1::Deployment& deployment, const SetPointers& old_sets) {
  if (!deployment.spec().has_revision_history_limit()) return {};
  SetPointers candidates;
  for (const SetPointer& set : old_sets) {
    if (!set->metadata().has_deletion_timestamp()) candidates.push_back(set);
  }
  const int64_t excess = static_cast<int64_t>(candidates.size()) - deployment.spec().revision_history_limit();
  if (excess <= 0) return {};
  std::stable_sort(candidates.begin(), candidates.end(), [](const SetPointer& a, const SetPointer& b) {
    int64_t x = RevisionOf(a->metadata()), y = RevisionOf(b->metadata());
    if (x != y) return x < y;
    return a->metadata().creation_timestamp().seconds() < b->metadata().creation_timestamp().seconds();
  });
  SetPointers out;
  for (int64_t i = 0; i < excess; ++i) {
    const appsv1::ReplicaSet& set = *candidates[static_cast<size_t>(i)];
    const bool settled = set.status().replicas() == 0 && set.spec().replicas() == 0 &&
                         set.metadata().generation() <= set.status().observed_generation();
    if (settled) out.push_back(candidates[static_cast<size_t>(i)]);
  }
  return out;
}

}  // namespace keelson::controllers
