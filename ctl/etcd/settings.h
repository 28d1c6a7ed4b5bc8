// The etcd of this machine's control plane, as the flags of kube-controlplane tell it, and how nodectl reaches it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/host/host.h"
#include "lib/etcd/member.h"

namespace keelson::ctl {

inline constexpr uint16_t kEtcdClientPort = 2379, kEtcdPeerPort = 2380;

// Of kube-controlplane.
struct EtcdSettings {
  bool found = false;  // there are flags at all
  // --etcd-servers; empty: kube-controlplane has an etcd of its own.
  std::vector<std::string> servers;
  std::string ca_file, certificate_file, key_file;
  // Of an own one: --etcd-address, empty where it listens on the loopback interface alone, and --etcd-name.
  std::string address, name = "default";
};

// All flags in environment files of the unit kube-controlplane, in its order: variables of later files replace those of earlier ones.
// Pure.
std::vector<std::string> ControlPlaneFlags(const std::vector<std::string>& files);
// Texts of the files that the unit reads, in its order.
std::vector<std::string> ControlPlaneFiles(const Host& host);

// The last value of --NAME=VALUE in environment files of the unit. Pure.
EtcdSettings ParseEtcdSettings(const std::vector<std::string>& files);
EtcdSettings ReadEtcdSettings(const Host& host);

std::string EtcdUrl(const std::string& address,
                    uint16_t port);  // https://10.0.0.1:2379, https://[fd00::1]:2379

// Options of the command line, with etcdctl's names.
struct EtcdOptions {
  std::vector<std::string> endpoints;
  std::string ca_file, certificate_file, key_file;
};

struct EtcdAccess {
  std::vector<std::string> endpoints;  // members to ask first
  etcd::Access credentials;
  bool chosen = false;  // by the command line: these endpoints alone, not all members
};

// Where etcd is. The command line wins; then the settings and kubeadm's client certificate
// PKI/etcd/healthcheck-client.crt, or the socket of an etcd that listens on the loopback interface. kNotFound: this machine has
// no etcd that nodectl knows.
Result<EtcdAccess> FindEtcd(const Host& host, const EtcdOptions& options);

}  // namespace keelson::ctl
