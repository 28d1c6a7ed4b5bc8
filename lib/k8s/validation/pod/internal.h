// Internal to lib/k8s: rules for the parts of a pod, one file per topic.
#pragma once

#include <map>
#include <set>
#include <string_view>

#include "lib/k8s/validation/internal.h"

namespace keelson::k8s {

// Context for checking the parts of a pod spec.
struct PodScope {
  const corev1::PodSpec& spec;
  const metav1::ObjectMeta* meta = nullptr;                         // for a pod; null for a template
  std::map<std::string_view, const corev1::VolumeSource*> volumes;  // volumes without errors, by name
  std::set<std::string_view> claims;                                // names in spec.resourceClaims
  // The stored pod has init containers that a resize restarts, which new pods must not have.
  bool has_restarting_init = false;

  bool is_pod() const { return meta != nullptr; }
  bool host_users() const { return !spec.has_host_users() || spec.host_users(); }
};

using Containers = google::protobuf::RepeatedPtrField<corev1::Container>;
using ResourceClaims = google::protobuf::RepeatedPtrField<corev1::ResourceClaim>;

// Converts: ephemeral containers have the same fields and field numbers as containers.
corev1::Container AsContainer(const corev1::EphemeralContainerCommon& common);

// Calls visit(container, path) for init containers, containers and ephemeral containers. The last have
// another type.
template <typename Visit>
void VisitContainers(const corev1::PodSpec& spec, const Path& path, Visit visit) {
  const Path init = path.Child("initContainers"), containers = path.Child("containers");
  const Path ephemeral = path.Child("ephemeralContainers");
  for (int i = 0; i < spec.init_containers_size(); ++i) visit(spec.init_containers(i), init.Index(i));
  for (int i = 0; i < spec.containers_size(); ++i) visit(spec.containers(i), containers.Index(i));
  for (int i = 0; i < spec.ephemeral_containers_size(); ++i) {
    visit(spec.ephemeral_containers(i).ephemeral_container_common(), ephemeral.Index(i));
  }
}

// Checks the spec of a pod (scope.meta is set) or of a template.
void CheckPodSpecIn(PodScope& scope, const Path& path, FieldErrors& errors);

// ---- volumes: fills scope.volumes ----
void CheckVolumes(PodScope& scope, const Path& path, FieldErrors& errors);
// Sources that belong to one storage system, from gitRepo to scaleIO.
void CheckStorageSource(const corev1::VolumeSource& source, std::string_view volume, const Path& path,
                        FieldErrors& errors);
void CheckProjected(const corev1::ProjectedVolumeSource& source, const Path& path, FieldErrors& errors);
void CheckDownwardFile(const corev1::DownwardAPIVolumeFile& file, const Path& path, FieldErrors& errors);
void CheckKeyToPath(const corev1::KeyToPath& item, const Path& path, FieldErrors& errors);
void CheckFileMode(int32_t mode, const Path& path, FieldErrors& errors);
// Relative, without "..", and not starting with "..".
void CheckLocalPath(std::string_view value, const Path& path, FieldErrors& errors);
void CheckNoBacksteps(std::string_view value, const Path& path, FieldErrors& errors);
void CheckPullPolicy(std::string_view policy, const Path& path, FieldErrors& errors);

// ---- containers ----
void CheckContainers(const PodScope& scope, const Path& path, FieldErrors& errors);
void CheckEnv(const corev1::Container& container, const Path& path, FieldErrors& errors);
// Volumes named by fileKeyRefs must be emptyDirs.
void CheckFileKeyVolumes(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors);
void CheckMounts(const corev1::Container& container, const PodScope& scope, const Path& path,
                 FieldErrors& errors);
void CheckLifecycle(const corev1::Container& container, const corev1::PodSpec& spec, const Path& path,
                    FieldErrors& errors);
void CheckProbes(const corev1::Container& container, const Path& path, FieldErrors& errors);
void CheckSecurityContext(const corev1::SecurityContext& context, bool host_users, const Path& path,
                          FieldErrors& errors);
// Images of a pod (not of a template) must have no surrounding spaces. CheckContainers() covers ephemeral
// containers.
void CheckTrimmedImages(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors);
// restartPolicy and restartPolicyRules of a container; `path` is the container's.
void CheckRestartRules(const corev1::Container& container, const Path& path, FieldErrors& errors);
void CheckResizePolicy(const corev1::Container& container, std::string_view pod_restart_policy,
                       const Path& path, FieldErrors& errors);

// ---- resources ----
void CheckContainerResources(const corev1::ResourceRequirements& resources,
                             const std::set<std::string_view>& claims, const Path& path, FieldErrors& errors);
void CheckPodResources(const PodScope& scope, const Path& path, FieldErrors& errors);
void CheckPodClaims(const PodScope& scope, const Path& path, FieldErrors& errors);

// ---- security and operating systems ----
void CheckPodSecurityContext(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors);
void CheckWindowsOptions(const corev1::WindowsSecurityContextOptions& options, const Path& path,
                         FieldErrors& errors);
void CheckHostProcess(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors);
void CheckOs(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors);
// Checks the seccomp, AppArmor, deletion cost and mirror annotations.
void CheckPodAnnotations(const StringMap& annotations, const corev1::PodSpec& spec, const Path& path,
                         FieldErrors& errors);
// An annotation and a field with the same meaning must agree.
void CheckAnnotationsMatchFields(const StringMap& annotations, const corev1::PodSpec& spec, const Path& path,
                                 FieldErrors& errors);
void CheckPodAnnotationsUpdate(const corev1::Pod& pod, const corev1::Pod& old, const Path& path,
                               FieldErrors& errors);

// ---- scheduling ----
void CheckSpreadConstraints(const corev1::PodSpec& spec, const Path& path, FieldErrors& errors);

// ---- pods ----
// Checks the spec and pod-specific annotations; the caller checks the rest of the metadata. `old` is null
// for a new pod.
void CheckPodMetadataAndSpec(const corev1::Pod& pod, const corev1::Pod* old, FieldErrors& errors);
void CheckPodUpdate(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors);
void CheckPodStatus(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors);
void CheckEphemeralContainersUpdate(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors);
void CheckPodResize(const corev1::Pod& pod, const corev1::Pod& old, FieldErrors& errors);

}  // namespace keelson::k8s
