// Labels and annotations on sandboxes and containers, from which the kubelet recovers its state after a restart.
// Other node tools (crictl, log collectors) know the io.kubernetes names.
#pragma once

namespace keelson::kubelet {

inline constexpr char kPodNameLabel[] = "io.kubernetes.pod.name";
inline constexpr char kPodNamespaceLabel[] = "io.kubernetes.pod.namespace";
inline constexpr char kPodUidLabel[] = "io.kubernetes.pod.uid";
inline constexpr char kContainerNameLabel[] = "io.kubernetes.container.name";

inline constexpr char kHashAnnotation[] = "io.kubernetes.container.hash";
inline constexpr char kRestartCountAnnotation[] = "io.kubernetes.container.restartCount";
inline constexpr char kMessagePathAnnotation[] = "io.kubernetes.container.terminationMessagePath";
inline constexpr char kMessagePolicyAnnotation[] = "io.kubernetes.container.terminationMessagePolicy";
inline constexpr char kPreStopAnnotation[] = "io.kubernetes.container.preStopHandler";
inline constexpr char kResourcesAnnotation[] = "io.keelson.container.resources";
// The pod's spec.resources when the container was started; absent: none.
inline constexpr char kPodResourcesAnnotation[] = "io.keelson.pod.resources";
inline constexpr char kGraceAnnotation[] = "io.kubernetes.pod.terminationGracePeriod";

}  // namespace keelson::kubelet
