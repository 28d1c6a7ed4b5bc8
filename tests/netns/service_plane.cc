#include "tests/netns/service_plane.h"

#include "proxy/nftables/dataplane.h"

namespace keelson::netns {
namespace {

class NftablesPlane : public ServicePlane {
 public:
  NftablesPlane(std::unique_ptr<nft::Kernel> kernel, proxy::nftables::Options options)
      : dataplane_(std::move(kernel), std::move(options)) {}

  void SetService(const std::string& key, const std::vector<proxy::ResolvedPort>& ports) override {
    dataplane_.plan().SetService(key, ports);
  }
  void SetNodeIps(const std::vector<IpAddress>& ips) override { dataplane_.plan().SetNodeIps(ips); }
  void SetServiceCidrs(const std::vector<IpPrefix>& cidrs) override {
    dataplane_.plan().SetServiceCidrs(cidrs);
  }
  Result<> Sync() override {
    ASSIGN_OR_RETURN(proxy::SyncStats stats, dataplane_.Sync());
    if (!stats.refusals.empty()) return stats.refusals[0].error;
    return {};
  }

 private:
  proxy::nftables::Dataplane dataplane_;
};

}  // namespace

Result<std::unique_ptr<ServicePlane>> MakeNftablesPlane(const linux::NetNs& node,
                                                        const PlaneOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel(node));
  return std::unique_ptr<ServicePlane>(std::make_unique<NftablesPlane>(
      std::move(kernel),
      proxy::nftables::Options{
          .v4 = options.v4, .pod_cidrs = options.pod_cidrs, .pod_bridge = options.pod_bridge}));
}

}  // namespace keelson::netns
