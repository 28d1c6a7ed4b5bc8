// This node's network as it is now: rules, addresses, routes, IPVS servers, eBPF maps, tracked connections.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctl/ebpf/ebpf_maps.h"
#include "lib/base/error.h"
#include "lib/base/ip.h"
#include "lib/dataplane/nftables_names.h"
#include "lib/netlink/conntrack.h"
#include "lib/netlink/ipvs.h"
#include "lib/nft/trace.h"

namespace keelson::ctl {

struct Hop {
  bool local = false;  // the address is this node's own
  std::string link;
  std::optional<IpAddress> gateway;
  std::optional<IpAddress> source;  // what a packet of this node's own would come from
};

class NodeView {
 public:
  virtual ~NodeView() = default;
  // nftables of families inet, ip and ip6.
  virtual const std::vector<nft::LiveTable>& tables() const = 0;
  // The node's own, without loopback and link-local ones.
  virtual const std::vector<IpAddress>& addresses() const = 0;
  // The kernel's route. The error carries ENETUNREACH or the like when there is none.
  virtual Result<Hop> Route(const IpAddress& to) = 0;
  // Connections of that protocol that the kernel tracks.
  virtual Result<std::vector<netlink::Flow>> Flows(bool v4, uint8_t protocol) = 0;
  // An IPVS virtual server: its scheduler and its destinations. nullopt: there is none at that address.
  struct Balancer {
    std::string scheduler;
    std::vector<netlink::FoundDestination> destinations;
  };
  virtual std::optional<Balancer> FindBalancer(const netlink::ServerAddress&) { return std::nullopt; }

  // Maps and programs of mode ebpf, one of each family; empty: kube-proxy has another mode.
  virtual const std::vector<EbpfMaps>& ebpf() const = 0;
  const EbpfMaps* Ebpf(bool v4) const;
  // The packet mark by which mode ebpf tells the rules to masquerade.
  virtual uint32_t masquerade_mark() const { return 1u << dataplane::kDefaultMasqueradeBit; }

  bool IsLocal(const IpAddress& ip) const;
};

// kube-proxy's options of the same names.
struct ProxySettings {
  std::string pin_directory = dataplane::kDefaultPinDirectory;
  uint32_t masquerade_bit = dataplane::kDefaultMasqueradeBit;
};

// Reads the calling thread's network namespace. Needs CAP_NET_ADMIN, and CAP_BPF where something is pinned.
Result<std::unique_ptr<NodeView>> ReadNode(const ProxySettings& settings);

}  // namespace keelson::ctl
