// The static pod that is the control plane of a machine where no unit of systemd is it. Pure.
//
// There is no registry and no image of Keelson: the container's program is the package's, in the host's /usr, over an image that needs to
// have nothing in it. So a package's upgrade replaces the program, as it does for the unit, and the pod has it from its next start on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"

namespace keelson::ctl {

// Of the machine on which the pod runs.
struct StaticControlPlane {
  std::vector<std::string> flags;  // of kube-controlplane
  std::string image;               // imagePullPolicy: IfNotPresent
  uint32_t uid = 0, gid = 0;       // of the user kube-controlplane
  std::string address;             // that its API server listens at, for probes
  uint16_t port = 0;
  // Client URL of its member of etcd, where others can reach it: `kubeadm join --control-plane` looks for it. Empty: it has none, or
  // one that kubeadm's own etcd must not join.
  std::string etcd_url;
  std::vector<std::string> directories;  // of the host that the container sees and cannot write
  std::string begun;  // when the pod was wanted, RFC 3339: another time makes the kubelet start it anew
};
inline constexpr char kControlPlanePod[] = "kube-controlplane";
// The value of `begun`.
inline constexpr char kBegunAnnotation[] = "keelson.dev/control-plane-begun";
// kubeadm's, of pods with the labels component=etcd and tier=control-plane.
inline constexpr char kEtcdUrlAnnotation[] = "kubeadm.kubernetes.io/etcd.advertise-client-urls";

// The manifest, in YAML.
std::string ControlPlaneManifest(const StaticControlPlane& wanted);
// The image that a manifest names. kInvalid: the text is none.
Result<std::string> ImageOfManifest(const std::string& manifest);

// The image of the runtime's pod sandboxes, which every node has: `config` is RuntimeFacts::config. Where that does not tell, the one
// that kubeadm wants.
std::string SandboxImage(const std::string& config);

}  // namespace keelson::ctl
