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
  // Reasons and messages of events: why something that was asked for is missing.
  std::vector<std::pair<std::string, std::string>> left_out;
  bool operator==(const DnsConfig&) const = default;
};

// resolv.conf(5): the last search line wins; comments and unknown words are skipped.
DnsConfig ParseResolvConf(std::string_view text);
// By dnsPolicy and dnsConfig. ClusterFirst without cluster DNS addresses falls back to the node's. At most
// 3 servers, 32 search domains and 2048 bytes of those: the first ones.
DnsConfig PodDns(const corev1::Pod& pod, const NodeContext& node, const DnsConfig& host);

// What the pod's UTS namespace gets: spec.hostname or the pod's name, at most 63 bytes; the node's name in
// pods on the host network. `domain` gets "subdomain.namespace.svc.cluster.local", empty without subdomain.
std::string PodHostname(const corev1::Pod& pod, const NodeContext& node, std::string* domain = nullptr);

// The kernel takes 64 bytes, spec.setHostnameAsFQDN may make more: kInvalid.
Result<> CheckHostname(const std::string& hostname);

// `host_file` is the node's own /etc/hosts, used by pods on the host network.
std::string EtcHosts(const corev1::Pod& pod, const NodeContext& node, const std::vector<std::string>& pod_ips,
                     std::string_view host_file);

}  // namespace keelson::kubelet
