#include "kubelet/container/sandbox_config.h"

#include "kubelet/container/labels.h"
#include "kubelet/container/resources.h"
#include "kubelet/container/security.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::kubelet {

namespace {

void AddPorts(const corev1::Container& container, std::vector<cri::PortMapping>& out) {
  for (const auto& port : container.ports()) {
    cri::PortMapping mapping;
    if (port.protocol() == "UDP") mapping.protocol = cri::PortMapping::Protocol::kUdp;
    if (port.protocol() == "SCTP") mapping.protocol = cri::PortMapping::Protocol::kSctp;
    mapping.container_port = port.container_port();
    mapping.host_port = port.host_port();
    mapping.host_ip = port.host_ip();
    out.push_back(std::move(mapping));
  }
}

}  // namespace

Result<cri::SandboxConfig> BuildSandboxConfig(const corev1::Pod& pod, const NodeContext& node,
                                              const DnsConfig& host_dns, const std::string& cgroup_parent,
                                              uint32_t attempt) {
  const metav1::ObjectMeta& meta = pod.metadata();
  cri::SandboxConfig out;
  out.metadata = {meta.name(), meta.uid(), meta.namespace_(), attempt};
  // On the host network the pod shares the host's UTS namespace: runtimes refuse to set a name there.
  if (!pod.spec().host_network()) {
    out.hostname = PodHostname(pod, node);
    KEELSON_RETURN_IF_ERROR(CheckHostname(out.hostname));
  }
  out.log_directory = node.paths.PodLogs(meta.namespace_(), meta.name(), meta.uid());
  DnsConfig dns = PodDns(pod, node, host_dns);
  out.dns_servers = std::move(dns.servers);
  out.dns_searches = std::move(dns.searches);
  out.dns_options = std::move(dns.options);
  if (!pod.spec().host_network()) {
    for (const auto& container : pod.spec().init_containers()) {
      if (k8s::IsSidecar(container)) AddPorts(container, out.port_mappings);
    }
    for (const auto& container : pod.spec().containers()) AddPorts(container, out.port_mappings);
  }
  out.labels = cri::Labels(meta.labels().begin(), meta.labels().end());
  out.labels[kPodNameLabel] = meta.name();
  out.labels[kPodNamespaceLabel] = meta.namespace_();
  out.labels[kPodUidLabel] = meta.uid();
  out.annotations = cri::Labels(meta.annotations().begin(), meta.annotations().end());
  out.cgroup_parent = cgroup_parent;
  KEELSON_RETURN_IF_ERROR(ApplySandboxSecurity(pod.spec(), node, out));

  linux::CgroupLimits limits = PodCgroupLimits(pod, node, 0);
  out.resources.cpu_shares = static_cast<int64_t>(limits.cpu_shares.value_or(0));
  if (limits.cpu_quota_us.value_or(-1) > 0) {
    out.resources.cpu_period = static_cast<int64_t>(limits.cpu_period_us);
    out.resources.cpu_quota = *limits.cpu_quota_us;
  }
  if (limits.memory_limit_bytes.value_or(-1) > 0) {
    out.resources.memory_limit_bytes = *limits.memory_limit_bytes;
  }
  out.overhead = OverheadResources(pod.spec(), node);
  return out;
}

}  // namespace keelson::kubelet
