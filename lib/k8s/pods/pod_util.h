// Helpers for pods that every program needs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/k8s/pods/fit.h"

namespace keelson::k8s {

inline constexpr std::string_view kPodScheduled = "PodScheduled";
inline constexpr std::string_view kPodInitialized = "Initialized";
inline constexpr std::string_view kPodReady = "Ready";
inline constexpr std::string_view kContainersReady = "ContainersReady";
inline constexpr std::string_view kPodReadyToStartContainers = "PodReadyToStartContainers";
inline constexpr std::string_view kDisruptionTarget = "DisruptionTarget";

inline constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
inline constexpr std::string_view kConfigSourceAnnotation = "kubernetes.io/config.source";
inline constexpr std::string_view kConfigHashAnnotation = "kubernetes.io/config.hash";

// Null when absent.
const corev1::PodCondition* FindCondition(const corev1::PodStatus& status, std::string_view type);
const corev1::NodeCondition* FindCondition(const corev1::NodeStatus& status, std::string_view type);

// Adds the condition or replaces the one of its type. lastTransitionTime becomes `now` when the status
// changes; otherwise it stays. True: something other than the times has changed.
bool SetCondition(corev1::PodStatus& status, corev1::PodCondition condition, WallTime now);
bool SetCondition(corev1::NodeStatus& status, corev1::NodeCondition condition, WallTime now);

bool IsReady(const corev1::Pod& pod);  // condition Ready is True
bool IsReady(const corev1::Node& node);
// Has been Ready for at least `min_ready_seconds`.
bool IsAvailable(const corev1::Pod& pod, int32_t min_ready_seconds, WallTime now);
bool IsTerminal(const corev1::Pod& pod);     // phase Succeeded or Failed
bool IsTerminating(const corev1::Pod& pod);  // deletionTimestamp is set
// Neither terminal nor terminating: counts as a replica.
bool IsActive(const corev1::Pod& pod);
bool IsMirror(const corev1::Pod& pod);
bool IsStatic(const corev1::Pod& pod);  // comes from a file or URL, or is the mirror of such a pod

// Searches containerStatuses, initContainerStatuses and ephemeralContainerStatuses; null when absent.
const corev1::ContainerStatus* FindContainerStatus(const corev1::PodStatus& status, std::string_view name);
// Searches containers and init containers; null when absent.
const corev1::Container* FindContainer(const corev1::PodSpec& spec, std::string_view name);
// Visits init containers, then containers.
void ForEachContainer(const corev1::PodSpec& spec,
                      const std::function<void(const corev1::Container&)>& visit);

// The host ports of containers and sidecars.
std::vector<HostPort> HostPorts(const corev1::PodSpec& spec);

// Resolves a named or numeric container port (targetPort of a Service, port of a probe). 0 when not found.
int32_t ResolvePort(const corev1::PodSpec& spec, const intstr::IntOrString& port, std::string_view protocol);

int32_t Priority(const corev1::PodSpec& spec);  // 0 when absent

// The ConfigMaps and Secrets that the pod refers to (volumes, env, image pull secrets); names sorted,
// unique.
std::vector<std::string> ReferencedConfigMaps(const corev1::PodSpec& spec);
std::vector<std::string> ReferencedSecrets(const corev1::PodSpec& spec);

}  // namespace keelson::k8s
