#include "tests/netns/service_plane.h"

#include "proxy/ebpf/dataplane.h"
#include "proxy/nftables/dataplane.h"

namespace keelson::netns {

Result<> ServicePlane::Sync() {
  ASSIGN_OR_RETURN(proxy::SyncStats stats, dataplane_->Sync());
  if (!stats.refusals.empty()) return stats.refusals[0].error;
  return {};
}

Result<std::unique_ptr<ServicePlane>> MakePlane(const linux::NetNs& node, const PlaneOptions& options,
                                                const NodePlaces& places) {
  proxy::nftables::Options v4{.v4 = true, .pod_cidrs = options.pod_cidrs, .pod_bridge = options.pod_bridge};
  proxy::nftables::Options v6 = v4;
  v6.v4 = false;
  auto open = [&node] { return nft::OpenKernel(node); };
  proxy::DataplaneMode mode;
  if (options.mode == "nftables") {
    mode = proxy::nftables::Mode(v4, v6, open);
  } else if (options.mode == "ebpf") {
    mode = proxy::ebpf::Mode(v4, v6, open, places.cgroup, places.pins);
  } else {
    return Error(Code::kInvalid, "no mode " + options.mode);
  }
  std::unique_ptr<proxy::Dataplane> made;
  RETURN_IF_ERROR(node.Run([&]() -> Result<> {
    if (mode.check) RETURN_IF_ERROR(mode.check());
    ASSIGN_OR_RETURN(made, mode.make(options.v4, std::nullopt));
    return {};
  }));
  return std::make_unique<ServicePlane>(std::move(made));
}

}  // namespace keelson::netns
