// nodectl proxy dump [--nft-table NAME] [--ebpf-pin-directory DIRECTORY]
#include <CLI/CLI.hpp>
#include <algorithm>

#include "ctl/ebpf/external_packet.h"
#include "ctl/ebpf/socket_lb.h"
#include "ctl/inspect_verbs.h"
#include "ctl/proxy/dump.h"
#include "lib/base/file.h"
#include "lib/dataplane/nftables_names.h"
#include "lib/linux/netns.h"
#include "lib/nft/kernel.h"

namespace keelson::ctl {
namespace {

struct Places {
  std::string table = dataplane::kDefaultTable, pins = dataplane::kDefaultPinDirectory;
};

Result<> ReadTables(const std::string& table, std::vector<DumpedService>& out) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
  for (const auto& [name, mode] :
       {std::pair(table, "nftables"), std::pair(table + dataplane::kIpvsTableSuffix, "ipvs"),
        std::pair(table + dataplane::kEbpfTableSuffix, "ebpf")}) {
    for (nft::Family family : {nft::Family::kIpv4, nft::Family::kIpv6}) {
      Result<std::optional<nft::Ruleset>> found = kernel->ReadSets({family, name});
      if (!found && family == nft::Family::kIpv6) continue;  // a kernel without it
      if (!found) return found.error();
      if (!*found) continue;
      for (DumpedService& one : DumpTable(**found, mode)) out.push_back(std::move(one));
    }
  }
  return {};
}

Result<> ReadServers(std::vector<DumpedService>& out) {
  // To ask a kernel for IPVS loads its module: only where it is in use.
  if (!ReadFile("/proc/thread-self/net/ip_vs")) return {};
  KEELSON_ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
  KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::FoundServer> servers, ipvs.Servers());
  for (const netlink::FoundServer& server : servers) {
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::FoundDestination> destinations,
                             ipvs.Destinations(server.server.address));
    out.push_back(DumpServer(server, destinations));
  }
  return {};
}

Result<Dump> ReadAll(const Places& places) {
  Dump out;
  KEELSON_ASSIGN_OR_RETURN(out.sockets, ReadEbpfMaps(places.pins));
  for (const EbpfMaps& maps : out.sockets) {
    for (DumpedService& one : DumpSocketLb(maps)) out.services.push_back(std::move(one));
    for (DumpedService& one : DumpExternal(maps)) out.services.push_back(std::move(one));
  }
  std::vector<DumpedService> rules;
  KEELSON_RETURN_IF_ERROR(ReadTables(places.table, rules));
  const bool below =
      std::any_of(rules.begin(), rules.end(), [](const DumpedService& one) { return one.mode == "ebpf"; });
  out.problems = SocketLbFaults(out.sockets, below, places.pins, linux::NetnsCookie().value_or(0));
  for (Problem& problem : ExternalFaults(out.sockets)) out.problems.push_back(std::move(problem));
  out.services.insert(out.services.end(), rules.begin(), rules.end());
  KEELSON_RETURN_IF_ERROR(ReadServers(out.services));
  return out;
}

}  // namespace

void AddProxyDump(CLI::App& parent, Run& chosen) {
  auto places = std::make_shared<Places>();
  CLI::App* verb = parent.add_subcommand("dump", "what kube-proxy has put into this node's kernel");
  verb->fallthrough();
  verb->add_option("--nft-table", places->table, "As kube-proxy has it");
  verb->add_option("--ebpf-pin-directory", places->pins, "As kube-proxy has it");
  verb->callback([&chosen, places] {
    chosen = [places](const Settings& settings) -> Result<int> {
      KEELSON_ASSIGN_OR_RETURN(Dump dump, ReadAll(*places));
      PrintAnswer(settings, ToTable(dump), ToDocument(dump));
      return dump.problems.empty() ? 0 : kFoundProblems;
    };
  });
}

}  // namespace keelson::ctl
