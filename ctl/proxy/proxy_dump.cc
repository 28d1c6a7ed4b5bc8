// nodectl proxy dump [--nft-table NAME]
#include <CLI/CLI.hpp>
#include <iostream>

#include "ctl/proxy/dump.h"
#include "ctl/verb.h"
#include "lib/base/file.h"
#include "lib/nft/kernel.h"

namespace keelson::ctl {
namespace {

Result<std::vector<DumpedService>> ReadAll(const std::string& table) {
  std::vector<DumpedService> out;
  ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
  for (const auto& [name, mode] : {std::pair(table, "nftables"), std::pair(table + "-ipvs", "ipvs"),
                                   std::pair(table + "-ebpf", "ebpf")}) {
    for (nft::Family family : {nft::Family::kIpv4, nft::Family::kIpv6}) {
      Result<std::optional<nft::Ruleset>> found = kernel->ReadSets({family, name});
      if (!found && family == nft::Family::kIpv6) continue;  // a kernel without it
      if (!found) return found.error();
      if (!*found) continue;
      for (DumpedService& one : DumpTable(**found, mode)) out.push_back(std::move(one));
    }
  }
  // To ask a kernel for IPVS loads its module: only where it is in use.
  if (!ReadFile("/proc/thread-self/net/ip_vs")) return out;
  ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
  ASSIGN_OR_RETURN(std::vector<netlink::FoundServer> servers, ipvs.Servers());
  for (const netlink::FoundServer& server : servers) {
    ASSIGN_OR_RETURN(std::vector<netlink::FoundDestination> destinations,
                     ipvs.Destinations(server.server.address));
    out.push_back(DumpServer(server, destinations));
  }
  return out;
}

}  // namespace

void AddProxyDump(CLI::App& parent, Run& chosen) {
  auto table = std::make_shared<std::string>("keelson-proxy");
  CLI::App* verb = parent.add_subcommand("dump", "what kube-proxy has put into this node's kernel");
  verb->fallthrough();
  verb->add_option("--nft-table", *table, "as kube-proxy has it");
  verb->callback([&chosen, table] {
    chosen = [table](const Settings& settings) -> Result<int> {
      ASSIGN_OR_RETURN(std::vector<DumpedService> services, ReadAll(*table));
      if (settings.format() == OutputFormat::kTable) {
        std::cout << ToTable(services);
      } else if (settings.format() == OutputFormat::kJson) {
        std::cout << ToJson(ToDocument(services));
      } else {
        std::cout << ToYaml(ToDocument(services));
      }
      return 0;
    };
  });
}

}  // namespace keelson::ctl
