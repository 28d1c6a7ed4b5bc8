// For tests: a node for nodectl, with a dataplane's plan in place of the kernel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ctl/trace/node_view.h"
#include "proxy/ebpf/plan.h"
#include "proxy/ipvs/plan.h"
#include "proxy/nftables/plan.h"

namespace keelson::netns {

// The node of packet_fixture.h, in one address family. `mode`: nftables, ipvs or ebpf.
class PlannedNode final : public ctl::NodeView {
 public:
  PlannedNode(const std::string& mode, proxy::nftables::Options options);

  void SetService(const std::string& key, const std::vector<proxy::ResolvedPort>& ports);
  // Call before the node is inspected.
  void Write();

  const std::vector<nft::LiveTable>& tables() const override { return tables_; }
  const std::vector<IpAddress>& addresses() const override { return addresses_; }
  const std::vector<ctl::EbpfMaps>& ebpf() const override { return ebpf_; }
  Result<ctl::Hop> Route(const IpAddress& to) override;
  Result<std::vector<netlink::Flow>> Flows(bool, uint8_t) override { return std::vector<netlink::Flow>(); }
  std::optional<Balancer> FindBalancer(const netlink::ServerAddress& address) override;

 private:
  IpAddress Own(const char* v4, const char* v6) const;
  proxy::nftables::Plan rules_;
  std::optional<proxy::ipvs::Plan> servers_;
  std::optional<proxy::ebpf::Plan> socket_plan_;
  std::vector<IpAddress> machine_;  // the node's addresses, without Service addresses
  std::vector<nft::LiveTable> tables_;
  std::vector<IpAddress> addresses_;
  std::vector<ctl::EbpfMaps> ebpf_;
  std::set<IpAddress> bound_;
};

}  // namespace keelson::netns
