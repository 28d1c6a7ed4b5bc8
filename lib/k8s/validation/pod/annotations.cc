// Pod annotations with a meaning: seccomp, AppArmor, deletion cost, mirror pods.
#include <charconv>

#include <fmt/format.h>

#include "lib/k8s/pods/pod_util.h"
#include "lib/k8s/validation/pod/internal.h"

namespace keelson::k8s {

namespace {

constexpr std::string_view kSeccompPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompContainer = "container.seccomp.security.alpha.kubernetes.io/";
constexpr std::string_view kAppArmorContainer = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";
constexpr std::string_view kLocalhost = "localhost/";

const std::string* Find(const StringMap& annotations, std::string_view key) {
  const auto found = annotations.find(std::string(key));
  return found == annotations.end() ? nullptr : &found->second;
}

// A 32-bit number without a plus sign or leading zeros.
bool IsDeletionCost(std::string_view text) {
  if (text.empty() || text.front() == '+') return false;
  if (text.size() > 1 && text.front() == '0') return false;
  int32_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

void CheckSeccompName(const std::string& profile, const Path& path, FieldErrors& errors) {
  if (profile == "runtime/default" || profile == "docker/default" || profile == "unconfined") return;
  if (profile.starts_with(kLocalhost)) {
    CheckDescendingPath(std::string_view(profile).substr(kLocalhost.size()), path, errors);
  } else {
    errors.push_back(Invalid(path, profile, "must be a valid seccomp profile"));
  }
}

void CheckAppArmorName(const std::string& key, const std::string& profile, const corev1::PodSpec& spec,
                       const Path& path, FieldErrors& errors) {
  const std::string_view name = std::string_view(key).substr(kAppArmorContainer.size());
  bool found = false;
  VisitContainers(spec, path,
                  [&](const auto& container, const Path&) { found = found || container.name() == name; });
  if (!found) errors.push_back(Invalid(path.Key(key), name, "container not found"));
  if (profile.empty() || profile == "runtime/default" || profile == "unconfined" ||
      profile.starts_with(kLocalhost)) {
    return;
  }
  errors.push_back(
      Invalid(path.Key(key), profile, fmt::format("invalid AppArmor profile name: {}", Quote(profile))));
}

// Reports where an annotation and a profile (of either kind) disagree.
template <typename Profile>
void CheckMatch(const std::string& annotation, const Profile& profile, std::string_view what,
                bool docker_default, const Path& path, FieldErrors& errors) {
  const auto type_differs = [&] {
    errors.push_back(
        Forbidden(path.Child("type"), fmt::format("{} type in annotation and field must match", what)));
  };
  if (profile.type() == "Unconfined") {
    if (annotation != "unconfined") type_differs();
  } else if (profile.type() == "RuntimeDefault") {
    if (annotation != "runtime/default" && !(docker_default && annotation == "docker/default")) {
      type_differs();
    }
  } else if (profile.type() == "Localhost") {
    if (!annotation.starts_with(kLocalhost)) {
      type_differs();
    } else if (!profile.has_localhost_profile() ||
               std::string_view(annotation).substr(kLocalhost.size()) != profile.localhost_profile()) {
      errors.push_back(Forbidden(path.Child("localhostProfile"),
                                 fmt::format("{} profile in annotation and field must match", what)));
    }
  }
}

void CheckSeccompMatch(const StringMap& annotations, const corev1::PodSpec& spec, const Path& path,
                       FieldErrors& errors) {
  const std::string* pod = Find(annotations, kSeccompPod);
  if (pod && spec.security_context().has_seccomp_profile()) {
    CheckMatch(*pod, spec.security_context().seccomp_profile(), "seccomp", true,
               path.Child("securityContext").Child("seccompProfile"), errors);
  }
  VisitContainers(spec, path, [&](const auto& container, const Path& here) {
    if (!container.security_context().has_seccomp_profile()) return;
    const std::string* own = Find(annotations, std::string(kSeccompContainer) + container.name());
    if (!own) return;
    CheckMatch(*own, container.security_context().seccomp_profile(), "seccomp", true,
               here.Child("securityContext").Child("seccompProfile"), errors);
  });
}

void CheckAppArmorMatch(const StringMap& annotations, const corev1::PodSpec& spec, const Path& path,
                        FieldErrors& errors) {
  if (spec.os().name() == "windows") return;
  VisitContainers(spec, path, [&](const auto& container, const Path& here) {
    const corev1::SecurityContext& own = container.security_context();
    if (!own.has_app_armor_profile() && !spec.security_context().has_app_armor_profile()) return;
    const std::string* name = Find(annotations, std::string(kAppArmorContainer) + container.name());
    if (!name) return;
    const corev1::AppArmorProfile& profile =
        own.has_app_armor_profile() ? own.app_armor_profile() : spec.security_context().app_armor_profile();
    CheckMatch(*name, profile, "apparmor", false, here.Child("securityContext").Child("appArmorProfile"),
               errors);
  });
}

}  // namespace

void CheckPodAnnotations(const StringMap& annotations, const corev1::PodSpec& spec, const Path& path,
                         FieldErrors& errors) {
  if (annotations.empty()) return;
  if (const std::string* mirror = Find(annotations, kMirrorAnnotation); mirror && spec.node_name().empty()) {
    errors.push_back(Invalid(path.Key(kMirrorAnnotation), *mirror,
                             "must set spec.nodeName if mirror pod annotation is set"));
  }
  if (const std::string* cost = Find(annotations, kDeletionCost); cost && !IsDeletionCost(*cost)) {
    errors.push_back(Invalid(path.Key(kDeletionCost), *cost, "must be a 32bit integer"));
  }
  if (const std::string* pod = Find(annotations, kSeccompPod)) {
    CheckSeccompName(*pod, path.Child(kSeccompPod), errors);
  }
  for (const auto& [key, value] : annotations) {
    if (key.starts_with(kSeccompContainer)) CheckSeccompName(value, path.Child(key), errors);
    if (key.starts_with(kAppArmorContainer)) CheckAppArmorName(key, value, spec, path, errors);
  }
}

void CheckAnnotationsMatchFields(const StringMap& annotations, const corev1::PodSpec& spec, const Path& path,
                                 FieldErrors& errors) {
  if (annotations.empty()) return;
  CheckSeccompMatch(annotations, spec, path, errors);
  CheckAppArmorMatch(annotations, spec, path, errors);
}

void CheckPodAnnotationsUpdate(const corev1::Pod& pod, const corev1::Pod& old, const Path& path,
                               FieldErrors& errors) {
  const StringMap& now = pod.metadata().annotations();
  const StringMap& before = old.metadata().annotations();
  for (const auto& [key, value] : before) {
    const std::string* kept = Find(now, key);
    if (kept && *kept == value) continue;
    if (key.starts_with(kAppArmorContainer)) {
      errors.push_back(Forbidden(path.Key(key), "may not remove or update AppArmor annotations"));
    }
    if (key == kMirrorAnnotation) {
      errors.push_back(Forbidden(path.Key(key), "may not remove or update mirror pod annotation"));
    }
  }
  for (const auto& [key, value] : now) {
    if (before.contains(key)) continue;
    if (key.starts_with(kAppArmorContainer)) {
      errors.push_back(Forbidden(path.Key(key), "may not add AppArmor annotations"));
    }
    if (key == kMirrorAnnotation) {
      errors.push_back(Forbidden(path.Key(key), "may not add mirror pod annotation"));
    }
  }
  CheckPodAnnotations(now, pod.spec(), path, errors);
}

}  // namespace keelson::k8s
