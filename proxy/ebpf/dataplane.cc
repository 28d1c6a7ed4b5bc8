#include "proxy/ebpf/dataplane.h"

#include <utility>

#include "lib/base/file.h"
#include "lib/dataplane/ebpf_layout.h"
#include "lib/dataplane/ebpf_maps.h"
#include "lib/dataplane/nftables_names.h"
#include "lib/linux/netns.h"

namespace keelson::proxy::ebpf {
namespace {

// Whether connections from outside have ended.
constexpr std::chrono::seconds kLookAgain{10};

Options PlanOptions(const nftables::Options& packets) {
  return {.v4 = packets.v4,
          .masquerade_all = packets.masquerade_all,
          .detects_pods = packets.DetectsPods(),
          .pod_cidrs = packets.pod_cidrs};
}

}  // namespace

Dataplane::Dataplane(std::unique_ptr<nft::Kernel> kernel, nftables::Options packets, DatapathOptions datapath,
                     std::unique_ptr<Devices> devices)
    : packets_(std::move(kernel), packets),
      plan_(PlanOptions(packets)),
      datapath_(std::move(datapath), packets.v4, std::move(devices)) {}

void Dataplane::SetService(const std::string& key, const std::vector<ResolvedPort>& ports) {
  packets_.SetService(key, ports);
  plan_.SetService(key, ports);
}

void Dataplane::SetNodeIps(const std::vector<IpAddress>& ips) {
  packets_.SetNodeIps(ips);
  plan_.SetNodeIps(ips);
}

Result<SyncStats> Dataplane::WithDatapath(Result<SyncStats> stats) {
  if (!stats) return stats;
  KEELSON_ASSIGN_OR_RETURN(Datapath::Written written, datapath_.Write(plan_));
  stats->operations += written.entries;
  stats->full = stats->full || written.compared;
  return stats;
}

Result<SyncStats> Dataplane::Sync() { return WithDatapath(packets_.Sync()); }
Result<SyncStats> Dataplane::Verify() { return WithDatapath(packets_.Verify()); }

void Dataplane::Distrust() {
  packets_.Distrust();
  datapath_.Distrust();
}

Result<std::optional<std::chrono::milliseconds>> Dataplane::Retire() {
  KEELSON_ASSIGN_OR_RETURN(bool gone, datapath_.Retire());
  KEELSON_RETURN_IF_ERROR(packets_.Retire());
  if (gone) return std::optional<std::chrono::milliseconds>();
  return std::optional<std::chrono::milliseconds>(kLookAgain);
}

std::string TableName(const std::string& nftables_table) {
  return nftables_table + dataplane::kEbpfTableSuffix;
}

DataplaneMode Mode(nftables::Options v4, nftables::Options v6, nftables::OpenKernel open_kernel,
                   std::string cgroup, std::string pin_directory, ExternalTrafficOptions external,
                   MapSizes map_sizes) {
  v4.table = TableName(v4.table);
  v6.table = TableName(v6.table);
  auto make = [=](bool is_v4, const std::optional<std::vector<IpPrefix>>& pod_cidrs)
      -> Result<std::unique_ptr<proxy::Dataplane>> {
    nftables::Options packets = nftables::WithPods(is_v4 ? v4 : v6, pod_cidrs);
    // The ports above are those of connections that are sent on past the rules.
    if (external.direct) packets.masquerade_below = KP_FIRST_SNAT_PORT;
    // Also where this mode cannot run one is made: to take away what is left of it.
    DatapathOptions datapath{.cgroup = cgroup,
                             .pin_directory = pin_directory,
                             .node_netns = linux::NetnsCookie().value_or(0),
                             .masquerade_mark = packets.masquerade_bit,
                             .dsr = external.dsr,
                             .map_sizes = map_sizes};
    KEELSON_ASSIGN_OR_RETURN(linux::NetNs netns, linux::NetNs::OpenCurrent());
    DeviceOptions devices{.names = external.devices,
                          .direct = external.direct,
                          .xdp = external.xdp,
                          .pod_cidrs = nftables::WithPods(v4, pod_cidrs).pod_cidrs,
                          .pod_bridge = packets.pod_bridge,
                          .pod_interface_prefix = packets.pod_interface_prefix,
                          .pin_directory = pin_directory};
    for (const IpPrefix& cidr : nftables::WithPods(v6, pod_cidrs).pod_cidrs) {
      devices.pod_cidrs.push_back(cidr);
    }
    Result<std::unique_ptr<nft::Kernel>> kernel = open_kernel();
    if (!kernel) return kernel.error().Wrap("reach the kernel's nftables");
    return std::unique_ptr<proxy::Dataplane>(
        std::make_unique<Dataplane>(std::move(*kernel), std::move(packets), std::move(datapath),
                                    std::make_unique<Devices>(std::move(netns), std::move(devices), is_v4)));
  };
  auto left = [pin_directory, rules = nftables::Mode(v4, v6, open_kernel).left]() -> Result<bool> {
    for (const char* part : {dataplane::kPinsV4, dataplane::kPinsV6, dataplane::kPinsXdp}) {
      if (PathExists(pin_directory + part)) return true;
    }
    return rules();
  };
  return {.name = "ebpf", .check = Datapath::Check, .left = std::move(left), .make = std::move(make)};
}

}  // namespace keelson::proxy::ebpf
