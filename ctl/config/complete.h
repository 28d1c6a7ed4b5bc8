// Fills in what a configuration leaves open, and checks it as kubeadm does.
#pragma once

#include <string>
#include <vector>

#include "ctl/config/documents.h"
#include "lib/base/error.h"

namespace keelson::ctl {

// What the machine adds to a configuration.
struct MachineFacts {
  std::string host_name;
  std::string default_address;           // source address of packets to the outside; empty: there is none
  std::vector<std::string> cri_sockets;  // paths of known runtimes' sockets that exist
};

// kInvalid: everything that is wrong, in kubeadm's words; several with line breaks between them. Both add warnings.
Result<> Complete(InitConfiguration& config, const MachineFacts& machine, std::vector<std::string>& warnings);
Result<> Complete(JoinConfiguration& config, const MachineFacts& machine, std::vector<std::string>& warnings);

// Fills in and checks tokens alone.
Result<> CompleteTokens(std::vector<BootstrapToken>& tokens);

// Of a completed cluster: what follows from its settings.
std::string HostAndPort(const std::string& host, uint16_t port);  // "10.0.0.1:6443", "[fd00::1]:6443"
std::string HostOf(const std::string& endpoint);  // of "10.0.0.1:6443", "[fd00::1]:6443", "host"
// HOST:PORT of the API server as clients reach it.
Result<std::string> ApiEndpoint(const InitConfiguration& config);
// The first subnet's address number `index`: 1 is the kubernetes Service's, 10 the cluster's DNS's.
Result<std::string> ServiceAddress(const ClusterConfiguration& cluster, int index);
// One address of DNS for each service subnet, comma separated.
Result<std::string> DnsAddresses(const ClusterConfiguration& cluster);

}  // namespace keelson::ctl
