// Where a cluster's files are: kubeadm's layout, and what Keelson's units read beside it.
#pragma once

namespace keelson::ctl::paths {

inline constexpr char kKubernetes[] = "/etc/kubernetes";
inline constexpr char kManifests[] = "/etc/kubernetes/manifests";
inline constexpr char kPki[] = "/etc/kubernetes/pki";
inline constexpr char kAdminConf[] = "/etc/kubernetes/admin.conf";
inline constexpr char kSuperAdminConf[] = "/etc/kubernetes/super-admin.conf";
inline constexpr char kKubeletConf[] = "/etc/kubernetes/kubelet.conf";
inline constexpr char kBootstrapConf[] = "/etc/kubernetes/bootstrap-kubelet.conf";
inline constexpr char kControllerManagerConf[] = "/etc/kubernetes/controller-manager.conf";
inline constexpr char kSchedulerConf[] = "/etc/kubernetes/scheduler.conf";
inline constexpr char kProxyConf[] = "/etc/kubernetes/kube-proxy.conf";
inline constexpr char kCniConf[] = "/etc/kubernetes/kube-cni.conf";
inline constexpr char kCsiConf[] = "/etc/kubernetes/csi-controller.conf";

// Flags of the units kube-controlplane, kube-proxy and kube-cni.
inline constexpr char kControlPlaneEnv[] = "/etc/kubernetes/kube-controlplane.env";
// The manifest of kube-controlplane where it is a static pod, not a unit.
inline constexpr char kControlPlaneManifest[] = "/etc/kubernetes/manifests/kube-controlplane.yaml";
inline constexpr char kProxyEnv[] = "/etc/kubernetes/kube-proxy.env";
inline constexpr char kCniEnv[] = "/etc/kubernetes/kube-cni.env";
// The node's name, for keelson-csi-local and keelson-csi-controller.
inline constexpr char kCsiEnv[] = "/etc/kubernetes/csi.env";

inline constexpr char kKubelet[] = "/var/lib/kubelet";
inline constexpr char kKubeletConfig[] = "/var/lib/kubelet/config.yaml";
inline constexpr char kKubeletInstanceConfig[] = "/var/lib/kubelet/instance-config.yaml";
inline constexpr char kKubeletFlags[] = "/var/lib/kubelet/kubeadm-flags.env";
inline constexpr char kKubeletPem[] = "/var/lib/kubelet/pki/kubelet-client-current.pem";
inline constexpr char kCsiData[] =
    "/var/lib/keelson-csi-local";  // volumes, unless a flag of the unit names another one
inline constexpr char kProxyConfig[] = "/var/lib/kube-proxy/config.conf";
inline constexpr char kEtcdData[] = "/var/lib/keelson/controlplane/etcd";
inline constexpr char kControlPlaneData[] = "/var/lib/keelson/controlplane";
inline constexpr char kControlPlaneLogs[] = "/var/log/keelson";
// Of an init or a join that has begun and not ended.
inline constexpr char kUnfinished[] = "/var/lib/keelson/nodectl-unfinished";
// A reset that has begun and has taken this machine's member out of etcd.
inline constexpr char kEtcdRemoved[] = "/var/lib/keelson/nodectl-etcd-removed";
inline constexpr char kCniConflist[] = "/etc/cni/net.d/10-keelson.conflist";

// Of container runtimes that nodectl looks for.
inline constexpr const char* kRuntimeSockets[] = {"/var/run/containerd/containerd.sock",
                                                  "/var/run/crio/crio.sock", "/var/run/cri-dockerd.sock"};

// Who kube-controlplane runs as: user and group.
inline constexpr char kControlPlaneGroup[] = "kube-controlplane";

}  // namespace keelson::ctl::paths
