// This node's network as it is now: rules, addresses, routes, tracked connections.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ctl/ebpf/socket_maps.h"
#include "lib/base/error.h"
#include "lib/base/ip.h"
#include "lib/netlink/conntrack.h"
#include "lib/netlink/ipvs.h"
#include "lib/nft/trace.h"

namespace keelson::ctl {

inline constexpr uint32_t kMasqueradeBit = 14;

struct Hop {
  bool local = false;  // the address is this node's own
  std::string link;
  std::optional<IpAddress> gateway;
  std::optional<IpAddress> source;  // what a packet of this node's own would come from
};

class NodeView {
 public:
  virtual ~NodeView() = default;
  virtual const std::vector<nft::LiveTable>& tables() const = 0;
  virtual const std::vector<IpAddress>& addresses() const = 0;  // without loopback and link-local ones
  // The error carries ENETUNREACH and the like when there is no way.
  virtual Result<Hop> Route(const IpAddress& to) = 0;
  virtual Result<std::vector<netlink::Flow>> Flows(bool v4, uint8_t protocol) = 0;
  // What IPVS has at that address: its scheduler, and whom it picks from. Nullopt: no virtual server.
  struct Balancer {
    std::string scheduler;
    std::vector<netlink::FoundDestination> destinations;
  };
  virtual std::optional<Balancer> FindBalancer(const netlink::ServerAddress&) { return std::nullopt; }

  // What sockets are served with, by family; none: they are not.
  virtual const std::vector<SocketMaps>& sockets() const = 0;
  const SocketMaps* Sockets(bool v4) const;
  // By which mode ebpf tells the rules to masquerade.
  virtual uint32_t masquerade_mark() const { return 1u << kMasqueradeBit; }

  bool IsLocal(const IpAddress& ip) const;
};

// As kube-proxy has them.
struct ProxySettings {
  std::string pin_directory = kPinDirectory;
  uint32_t masquerade_bit = kMasqueradeBit;
};

// Of the calling thread's network namespace. Needs CAP_NET_ADMIN, and CAP_BPF where something is pinned.
Result<std::unique_ptr<NodeView>> ReadNode(const ProxySettings& settings);

}  // namespace keelson::ctl
