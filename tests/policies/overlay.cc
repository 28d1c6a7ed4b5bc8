#include "tests/policies/overlay.h"

#include <cstdlib>

#include "cni/agent/ipsec.h"
#include "cni/agent/wireguard.h"
#include "lib/base/file.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route.h"

namespace keelson::policies {
namespace {

constexpr const char* kNodes[] = {"node1", "node2"};

agent::NodeInfo NodeOf(const PolicyWorld& world, const std::string& name) {
  const std::string n = name == kNodes[0] ? "1" : "2";
  agent::NodeInfo out;
  out.name = name;
  out.pod_cidrs = {*IpPrefix::Parse("10." + n + ".0.0/24"), *IpPrefix::Parse("fd0" + n + "::/64")};
  out.addresses = {world.Address(name, true), world.Address(name, false)};
  return out;
}

// The world's own way from node1 to the pods of node2. The way back is a default route.
Result<> RemoveStaticRoutes(const linux::NetNs& node1) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenIn(node1));
  KEELSON_ASSIGN_OR_RETURN(const std::vector<netlink::Route> routes, netlink::ListRoutes(socket));
  for (const netlink::Route& route : routes) {
    const std::string to = route.destination.ToString();
    if (to == "10.2.0.0/24" || to == "fd02::/64") {
      KEELSON_RETURN_IF_ERROR(netlink::DeleteRoute(socket, route));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Overlay>> Overlay::Start(const PolicyWorld& world, Kind kind) {
  std::unique_ptr<Overlay> out(new Overlay());
  char dir[] = "/tmp/keelson-overlay-XXXXXX";
  if (!::mkdtemp(dir)) return ErrnoError("mkdtemp");
  out->dir_ = dir;
  KEELSON_RETURN_IF_ERROR(WriteFile(out->dir_ + "/secrets", std::string(40, 'x') + "\n"));
  KEELSON_RETURN_IF_ERROR(RemoveStaticRoutes(world.Place(kNodes[0])));
  for (const char* node : kNodes) out->nodes_[node] = NodeOf(world, node);
  for (const char* node : kNodes) KEELSON_RETURN_IF_ERROR(out->Open(world, node, kind));
  // Twice: a node publishes its WireGuard key in its first round.
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < std::size(kNodes); ++i) {
      KEELSON_RETURN_IF_ERROR(world.Place(kNodes[i]).Run([&]() -> Result<> {
        KEELSON_ASSIGN_OR_RETURN(const bool changed, out->syncers_[i]->SyncOnce());
        (void)changed;
        return {};
      }));
    }
  }
  return out;
}

Overlay::~Overlay() {
  syncers_.clear();
  if (!dir_.empty()) (void)RemoveTree(dir_);
}

agent::Config Overlay::ConfigFor(const std::string& node, Kind kind) const {
  agent::Config out;
  out.node_name = node;
  out.bridge = "br0";
  out.conf_dir = out.data_dir = dir_ + "/" + node;
  out.cluster_cidrs = *agent::ParseCidrs("10.1.0.0/24,10.2.0.0/24,fd01::/64,fd02::/64");
  out.ipsec_key_file = dir_ + "/secrets";
  switch (kind) {
    case Kind::kHostGw:
      out.mode = agent::Mode::kHostGw;
      break;
    case Kind::kVxlan:
      out.mode = agent::Mode::kVxlan;
      break;
    case Kind::kIpsec:
      out.encryption = agent::Encryption::kIpsec;
      break;
    case Kind::kWireguard:
      out.encryption = agent::Encryption::kWireguard;
      break;
  }
  return out;
}

Result<> Overlay::Open(const PolicyWorld& world, const std::string& node, Kind kind) {
  const agent::Config config = ConfigFor(node, kind);
  return world.Place(node).Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(
        std::unique_ptr<agent::Syncer> syncer,
        agent::Syncer::Open(
            config, [this] { return std::make_shared<const agent::NodeMap>(nodes_); }, health_));
    if (kind == Kind::kIpsec) {
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<agent::Ipsec> ipsec, agent::Ipsec::Open(config));
      syncer->AddExtension(std::move(ipsec));
    }
    if (kind == Kind::kWireguard) {
      auto publish = [this, node](const std::string& key) -> Result<> {
        nodes_[node].wireguard_key = key;
        return {};
      };
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<agent::Wireguard> wireguard,
                               agent::Wireguard::Open(config, std::move(publish)));
      syncer->AddExtension(std::move(wireguard));
    }
    syncers_.push_back(std::move(syncer));
    return {};
  });
}

}  // namespace keelson::policies
