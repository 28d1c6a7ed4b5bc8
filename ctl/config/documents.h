// What kubeadm's configuration documents (kubeadm.k8s.io/v1beta4) say, as far as Keelson acts on it. Fields that exist
// and change nothing here are read too, and named in warnings (read.h).
#pragma once

#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace keelson::ctl {

inline constexpr char kKubeadmVersion[] = "kubeadm.k8s.io/v1beta4";
inline constexpr char kDefaultTokenGroup[] = "system:bootstrappers:kubeadm:default-node-token";
inline constexpr char kControlPlaneRole[] = "node-role.kubernetes.io/control-plane";
inline constexpr uint16_t kDefaultApiPort = 6443;

// A flag for a program: the name has no dashes in front.
struct Argument {
  std::string name, value;
  bool operator==(const Argument&) const = default;
};

struct Taint {
  std::string key, value, effect;
  bool operator==(const Taint&) const = default;
};

struct NodeRegistration {
  std::string name;                          // of the Node; empty: the host's
  std::string cri_socket;                    // unix:///run/...
  std::optional<std::vector<Taint>> taints;  // nullopt: the default; empty: none
  std::vector<Argument> kubelet_extra_args;
  std::vector<std::string> ignore_preflight_errors;
};

struct Timeouts {
  std::chrono::seconds control_plane{240}, kubelet{240}, api_call{60}, etcd_api_call{120}, tls_bootstrap{300},
      discovery{300};
};

struct BootstrapToken {
  std::string token;  // abcdef.0123456789abcdef
  std::string description;
  std::optional<std::chrono::seconds> ttl;  // 0: it never expires; nullopt: see `expires`
  std::string expires;                      // RFC 3339; empty: see `ttl`
  std::vector<std::string> usages, groups;
};

struct ExternalEtcd {
  std::vector<std::string> endpoints;
  std::string ca_file, certificate_file, key_file;
};

struct ClusterConfiguration {
  std::string kubernetes_version;
  std::string service_subnet = "10.96.0.0/12", pod_subnet = "10.244.0.0/16", dns_domain = "cluster.local";
  std::string control_plane_endpoint;  // HOST or HOST:PORT; empty: the advertised address
  std::string certificates_dir = "/etc/kubernetes/pki";
  std::string cluster_name = "kubernetes";
  std::string encryption_algorithm = "RSA-2048";
  std::chrono::seconds certificate_validity = std::chrono::hours(24 * 365);
  std::chrono::seconds ca_validity = std::chrono::hours(24 * 3650);
  std::vector<std::string> certificate_names;  // apiServer.certSANs
  std::vector<Argument> api_server_args, controller_manager_args, scheduler_args;
  std::optional<ExternalEtcd> external_etcd;
  std::map<std::string, bool> feature_gates;
  bool dns_disabled = false, proxy_disabled = false;

  // Every machine of the control plane runs a member of etcd. Without a stable endpoint there is one machine, whose etcd nothing
  // else can reach.
  bool stacks_etcd() const { return !external_etcd && !control_plane_endpoint.empty(); }

  boost::json::object document;  // as given, for kubeadm-config; empty: nothing was given
};

struct InitConfiguration {
  ClusterConfiguration cluster;
  std::vector<BootstrapToken> bootstrap_tokens;
  NodeRegistration node;
  std::string advertise_address;  // empty: of the default route
  uint16_t bind_port = kDefaultApiPort;
  std::string
      certificate_key;  // 64 hexadecimal digits that uploaded certificates are encrypted with; empty: a random one
  std::vector<std::string> skip_phases;
  std::string patches_dir;  // of files that patch the kubelet's configuration; empty: none
  Timeouts timeouts;
  bool dry_run = false;
  // KubeletConfiguration and KubeProxyConfiguration as given; empty: the defaults.
  boost::json::object kubelet, proxy;
};

// What makes a joining machine part of the control plane.
struct JoinControlPlane {
  std::string advertise_address;  // empty: of the default route
  uint16_t bind_port = kDefaultApiPort;
  std::string certificate_key;  // empty: the shared certificates are on the machine already
};

struct JoinConfiguration {
  NodeRegistration node;
  std::optional<JoinControlPlane> control_plane;  // nullopt: a worker
  std::string ca_file = "/etc/kubernetes/pki/ca.crt";
  std::string token, api_server_endpoint;  // discovery.bootstrapToken
  std::vector<std::string> ca_hashes;
  bool unsafe_skip_ca_verification = false;
  std::string discovery_file;       // a path or an https:// URL
  std::string tls_bootstrap_token;  // empty: `token`
  std::vector<std::string> skip_phases;
  std::string patches_dir;
  Timeouts timeouts;
  bool dry_run = false;
};

struct ResetConfiguration {
  std::string certificates_dir = "/etc/kubernetes/pki";
  std::string cri_socket;
  std::vector<std::string> ignore_preflight_errors, skip_phases;
  bool clean_tmp_dir = false, force = false, dry_run = false;
  bool remove_volumes = false;  // of keelson-csi-local; no field of kubeadm
};

// What one verb of `nodectl upgrade` takes from an UpgradeConfiguration.
struct UpgradeVerbConfiguration {
  std::string version;  // of `apply` and `plan`: a check of nodectl's own; empty: none
  bool renew_certificates = true, dry_run = false, force = false;
  std::vector<std::string> ignore_preflight_errors, skip_phases;
  std::string patches_dir;
};
struct UpgradeConfiguration {
  UpgradeVerbConfiguration apply, node, plan;
  Timeouts timeouts;
};

}  // namespace keelson::ctl
