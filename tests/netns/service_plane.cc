#include "tests/netns/service_plane.h"

#include "proxy/ebpf/dataplane.h"
#include "proxy/ipvs/mode.h"
#include "proxy/nftables/dataplane.h"

namespace keelson::netns {

Result<> ServicePlane::Sync() {
  KEELSON_ASSIGN_OR_RETURN(proxy::SyncStats stats, dataplane_->Sync());
  if (!stats.refusals.empty()) return stats.refusals[0].error;
  return {};
}

Result<bool> ServicePlane::Retire() {
  KEELSON_ASSIGN_OR_RETURN(std::optional<std::chrono::milliseconds> again, dataplane_->Retire());
  return !again.has_value();
}

Result<> Possible(const std::string& mode) {
  if (mode != "ipvs") return {};
  KEELSON_RETURN_IF_ERROR(netlink::Ipvs::Open());
  return {};
}

Result<std::unique_ptr<ServicePlane>> MakePlane(const linux::NetNs& node, const PlaneOptions& options,
                                                const NodePlaces& places) {
  proxy::nftables::Options v4{.v4 = true,
                              .pod_cidrs = options.pod_cidrs,
                              .pod_bridge = options.pod_bridge,
                              .replies_bypass_node = options.replies_bypass_node};
  proxy::nftables::Options v6 = v4;
  v6.v4 = false;
  auto open = [&node] { return nft::OpenKernel(node); };
  proxy::DataplaneMode mode;
  if (options.mode == "nftables") {
    mode = proxy::nftables::Mode(v4, v6, open);
  } else if (options.mode == "ebpf") {
    mode = proxy::ebpf::Mode(v4, v6, open, places.cgroup, places.pins, {.direct = options.direct});
  } else if (options.mode == "ipvs") {
    v4.table = v6.table = "keelson-proxy-ipvs";
    // Datagrams of one round are not to be taken for the next one's.
    const proxy::ipvs::HostOptions host{.timeouts = {.udp = std::chrono::seconds(1)}};
    mode = proxy::ipvs::Mode({}, host, v4, v6, open);
  } else {
    return Error(Code::kInvalid, "no mode " + options.mode);
  }
  std::unique_ptr<proxy::Dataplane> made;
  KEELSON_RETURN_IF_ERROR(node.Run([&]() -> Result<> {
    if (mode.check) KEELSON_RETURN_IF_ERROR(mode.check());
    // What the first family sets up is both families'.
    if (!options.v4 && options.mode == "ipvs") KEELSON_RETURN_IF_ERROR(mode.make(true, std::nullopt));
    KEELSON_ASSIGN_OR_RETURN(made, mode.make(options.v4, std::nullopt));
    return {};
  }));
  return std::make_unique<ServicePlane>(std::move(made));
}

}  // namespace keelson::netns
