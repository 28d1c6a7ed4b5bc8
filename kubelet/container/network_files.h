// A pod's name service: resolver configuration, host name, /etc/hosts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kubelet/container/node_context.h"
#include "lib/api/types.h"
#include "lib/base/error.h"

namespace keelson::kubelet {

struct DnsConfig {
  std::vector<std::string> servers, searches, options;
  // (reason, message) of warning events: what had to be left out.
  std::vector<std::pair<std::string, std::string>> left_out;
  bool operator==(const DnsConfig&) const = default;
};

// resolv.conf(5): the last search line wins; comments and unknown words are skipped.
DnsConfig ParseResolvConf(std::string_view text);
// The pod's resolver configuration, by dnsPolicy and dnsConfig. ClusterFirst without cluster DNS addresses falls
// back to `host`. Keeps the first 3 servers, 32 search domains and 2048 bytes of them.
DnsConfig PodDns(const corev1::Pod& pod, const NodeContext& node, const DnsConfig& host);

// The host name in the pod's UTS namespace: spec.hostname or the pod's name, at most 63 bytes; the node's name in
// pods on the host network. `domain` gets "subdomain.namespace.svc.cluster.local", empty without subdomain.
std::string PodHostname(const corev1::Pod& pod, const NodeContext& node, std::string* domain = nullptr);

// kInvalid: longer than the kernel's 64 bytes, which spec.setHostnameAsFQDN makes possible.
Result<> CheckHostname(const std::string& hostname);

// The content of the pod's /etc/hosts. `host_file`: the node's, for pods on the host network.
std::string EtcHosts(const corev1::Pod& pod, const NodeContext& node, const std::vector<std::string>& pod_ips,
                     std::string_view host_file);

}  // namespace keelson::kubelet
