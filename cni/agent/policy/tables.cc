#include "cni/agent/policy/tables.h"

#include <algorithm>
#include <optional>
#include <set>

#include "cni/policy/ports.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/netlink/link.h"
#include "lib/nft/diff.h"

namespace keelson::cni::agent {

namespace {

std::string MacOf(const netlink::Link& link) {
  return {reinterpret_cast<const char*>(link.mac.bytes().data()), link.mac.bytes().size()};
}

}  // namespace

Result<std::optional<std::string>> BridgeMac(netlink::Socket& socket, const std::string& bridge) {
  Result<netlink::Link> link = netlink::GetLink(socket, bridge);
  if (!link && !link.error().Is(Code::kNotFound)) return link.error();
  if (!link || link->kind != "bridge") return std::optional<std::string>();
  return std::optional<std::string>(MacOf(*link));
}

Result<bool> SyncPorts(nft::Kernel& kernel, netlink::Socket& socket, const std::string& bridge) {
  for (int attempt = 1;; ++attempt) {
    // In this order: a port of an element has been there before the element.
    KEELSON_ASSIGN_OR_RETURN(std::optional<nft::Ruleset> found, kernel.Read(dataplane::PolicyPortsTable()));
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::Link> links, netlink::ListLinks(socket));
    std::optional<std::string> mac;
    std::set<std::string> ports;
    auto device = std::find_if(links.begin(), links.end(), [&](const netlink::Link& link) {
      return link.name == bridge && link.kind == "bridge";
    });
    if (device != links.end()) {
      mac = MacOf(*device);
      for (const netlink::Link& link : links) {
        if (link.master == device->index && link.kind == "veth") ports.insert(link.name);
      }
    }
    nft::Transaction changes = nft::Diff(found, policy::PortRules(mac, ports, found));
    if (changes.empty()) return false;
    Result<> applied = kernel.Apply(changes);
    if (applied) return true;
    if (!IsRace(applied.error()) || attempt == kWriteAttempts) return applied.error();
  }
}

Result<> CheckPolicyLog(nft::Kernel& kernel, uint16_t group) {
  nft::Transaction probe({nft::Family::kInet, "keelson-policy-probe"});
  probe.AddTable();
  probe.AddChain({"log"});
  nft::Rule rule("log");
  rule.Limit(1, 1).Log(group, "probe");
  probe.AddRule(std::move(rule));
  probe.DeleteTable();
  Result<> applied = kernel.Apply(probe);
  if (applied) return {};
  return Error(
      Code::kUnimplemented,
      "--network-policy-log-group: this kernel cannot log packets to a group (modules nft_limit, nft_log "
      "and nfnetlink_log): " +
          applied.error().message());
}

Result<> RemovePolicyTables(nft::Kernel& kernel) {
  // First what drops, then what leads there.
  for (const nft::Table& table : {dataplane::PolicyTable(), dataplane::PolicyPortsTable()}) {
    nft::Transaction t(table);
    t.DeleteTable();
    Result<> removed = kernel.Apply(t);
    if (!removed && !removed.error().Is(Code::kNotFound)) return removed.error();
  }
  return {};
}

}  // namespace keelson::cni::agent
