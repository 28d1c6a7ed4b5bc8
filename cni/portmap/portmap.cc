#include "cni/portmap/portmap.h"

#include <set>

#include "cni/lib/label.h"
#include "cni/lib/labelled_elements.h"
#include "cni/lib/linger.h"
#include "cni/portmap/plan.h"
#include "cni/portmap/stale_flows.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/link.h"
#include "lib/netlink/route_lookup.h"
#include "lib/nft/kernel.h"

namespace keelson::cni {
namespace {

constexpr int kAttempts = 10;

// The host's interfaces towards the container, at most one per family.
Outcome<std::set<std::string>> InterfacesTowards(const ContainerAddresses& addresses) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  std::set<std::string> out;
  for (const auto& address : {addresses.v4, addresses.v6}) {
    if (!address) continue;
    KEELSON_ASSIGN_OR_RETURN(netlink::Route route, netlink::LookUpRoute(socket, *address));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(socket, route.link_index));
    out.insert(link.name);
    // Packets from 127.0.0.1 may leave through this interface, and their replies may come back in.
    if (address->is_v4()) {
      KEELSON_RETURN_IF_ERROR(linux::EnsureSysctl("net/ipv4/conf/" + link.name + "/route_localnet", "1"));
    }
  }
  return out;
}

// Deletes elements that conflict with `planned`: the latest mapping wins, whoever had the port.
Outcome<> MakeRoom(nft::Kernel& kernel, const std::vector<PlannedElement>& planned, nft::Transaction& t) {
  KEELSON_ASSIGN_OR_RETURN(auto found, kernel.ReadSets(PortmapTable()));
  if (!found) return {};
  for (const PlannedElement& item : planned) {
    auto set = found->sets.find(item.set.name);
    if (set == found->sets.end()) continue;
    auto element = set->second.elements.find(item.element.key);
    if (element == set->second.elements.end()) continue;
    t.DeleteElements(item.set, {element->second});
    set->second.elements.erase(element);
  }
  return {};
}

Outcome<> Install(const PortmapConfig& config, const ContainerAddresses& addresses,
                  const std::string& label) {
  std::vector<PlannedElement> planned = PlanElements(config, addresses, label);
  if (planned.empty()) return {};
  std::set<std::string> near;
  if (config.snat) {
    KEELSON_ASSIGN_OR_RETURN(near, InterfacesTowards(addresses));
  }
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  bool make_room = false;
  for (int attempt = 1;; ++attempt) {
    KEELSON_ASSIGN_OR_RETURN(bool there, kernel->HasChain(PortmapTable(), HostPortsChain(config)));
    nft::Transaction t(PortmapTable());
    if (!there) MakeChains(t, config);
    if (make_room) KEELSON_RETURN_IF_ERROR(MakeRoom(*kernel, planned, t));
    for (const std::string& ifname : near) AddNear(t, ifname);
    std::set<std::pair<std::string, std::string>> seen;  // duplicate mappings count once
    for (const PlannedElement& item : planned) {
      if (seen.emplace(item.set.name, item.element.key).second) t.CreateElements(item.set, {item.element});
    }
    Result<> applied = kernel->Apply(t);
    if (applied) return {};
    // The chain was made or a port taken at the same time, or the port was taken before.
    bool again = applied.error().Is(Code::kAlreadyExists) || applied.error().Is(Code::kNotFound);
    if (!again || attempt == kAttempts) return applied.error();
    make_room = true;
  }
}

Outcome<AddResult> Add(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(PortmapConfig config, ReadPortmapConfig(request));
  if (!request.prev_result) return CniError{kInvalidConfig, "must be called as chained plugin", ""};
  if (config.mappings.empty()) return *request.prev_result;
  ContainerAddresses addresses = FindAddresses(*request.prev_result, request.ifname);
  KEELSON_RETURN_IF_ERROR(Install(config, addresses, LabelOf(request)));
  // Best effort: without it, only senders that started before the mapping miss it.
  (void)DropFlowsElsewhere(config, addresses);
  return *request.prev_result;
}

Outcome<> Remove(const std::function<bool(std::string_view)>& unwanted) {
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  KEELSON_ASSIGN_OR_RETURN(auto removed, RemoveElements(*kernel, PortmapTable(), unwanted));
  std::vector<MappedPort> ports;
  for (const LabelledElement& item : removed) {
    if (std::optional<MappedPort> port = ParseElement(item.set, item.element)) ports.push_back(*port);
  }
  (void)DropFlowsTo(ports);
  if (!removed.empty()) CloseSocketsInChild();
  return {};
}

// By label, not by configuration: removes what was mapped, whatever the configuration is now.
Outcome<> Del(const Request& request) {
  std::string mine = LabelOf(request);
  return Remove([&](std::string_view label) { return label == mine; });
}

Outcome<> Gc(const Request& request) {
  StaleLabels stale(request);
  return Remove([&](std::string_view label) { return stale.Contains(label); });
}

Outcome<> Check(const Request& request) {
  KEELSON_ASSIGN_OR_RETURN(PortmapConfig config, ReadPortmapConfig(request));
  if (config.mappings.empty()) return {};
  ContainerAddresses addresses = FindAddresses(*request.prev_result, request.ifname);
  KEELSON_ASSIGN_OR_RETURN(auto kernel, nft::OpenKernel());
  KEELSON_ASSIGN_OR_RETURN(auto found, kernel->Read(PortmapTable()));
  std::string chain = HostPortsChain(config);
  if (!found || !found->chains.contains(chain) || found->chains[chain].rules.empty()) {
    return CniError{kCheckFailed, "nftables chain " + chain + " is missing", ""};
  }
  for (const PlannedElement& item : PlanElements(config, addresses, LabelOf(request))) {
    auto& elements = found->sets[item.set.name].elements;
    auto element = elements.find(item.element.key);
    if (element == elements.end() || element->second.data != item.element.data) {
      MappedPort port = *ParseElement(item.set, item.element);
      return CniError{
          kCheckFailed,
          "host port " + std::to_string(port.host_port) + " is not mapped to " + port.container.ToString(),
          ""};
    }
  }
  return {};
}

Outcome<> Status(const Request& request) {
  KEELSON_RETURN_IF_ERROR(ReadPortmapConfig(request));
  auto kernel = nft::OpenKernel();
  Result<uint32_t> generation = kernel ? (*kernel)->Generation() : kernel.error();
  if (!generation) return CniError{kPluginNotAvailable, "nftables: " + generation.error().message(), ""};
  return {};
}

}  // namespace

Plugin PortmapPlugin() {
  return {.about = "CNI portmap plugin", .add = Add, .del = Del, .check = Check, .status = Status, .gc = Gc};
}

}  // namespace keelson::cni
