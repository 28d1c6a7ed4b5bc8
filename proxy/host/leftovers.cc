#include "proxy/host/leftovers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/event/process.h"
#include "lib/netlink/ipvs.h"
#include "lib/netlink/link.h"
#include "lib/nft/text.h"
#include "proxy/ipvs/kernel.h"

namespace keelson::proxy {
namespace {

constexpr char kUpstreamTable[] = "kube-proxy";
constexpr std::chrono::seconds kLimit{30};
constexpr int kAttempts = 5;

// KUBE-FIREWALL, KUBE-KUBELET-CANARY and KUBE-MARK-MASQ are the kubelet's, or were.
constexpr std::array kChains = {
    "KUBE-SERVICES",       "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS",
    "KUBE-NODE-PORT",      "KUBE-POSTROUTING",       "KUBE-FORWARD",
    "KUBE-PROXY-FIREWALL", "KUBE-PROXY-CANARY",      "KUBE-SOURCE-RANGES-FIREWALL",
    "KUBE-IPVS-FILTER",    "KUBE-IPVS-OUT-FILTER",   "KUBE-LOAD-BALANCER"};
constexpr std::array kPrefixes = {"KUBE-SVC-", "KUBE-SVL-", "KUBE-SEP-",
                                  "KUBE-FW-",  "KUBE-EXT-", "KUBE-XLB-"};

bool IsProxyChain(std::string_view name) {
  for (const char* chain : kChains) {
    if (name == chain) return true;
  }
  for (const char* prefix : kPrefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

std::string_view Word(std::string_view line, size_t begin) {
  return line.substr(begin, std::min(line.find(' ', begin), line.size()) - begin);
}

// Where a rule leads; empty when nowhere.
std::string_view TargetOf(std::string_view rule) {
  for (std::string_view option : {" -j ", " -g "}) {
    auto at = rule.rfind(option);
    if (at != std::string_view::npos) return Word(rule, at + option.size());
  }
  return {};
}

// One table of iptables-save's output.
std::string CleanTable(std::string_view header, const std::vector<std::string_view>& lines) {
  std::string flush, rules, chains;
  for (std::string_view line : lines) {
    if (line.starts_with(":")) {
      std::string name(Word(line, 1));
      if (!IsProxyChain(name)) continue;
      flush += ":" + name + " - [0:0]\n";
      chains += "-X " + name + "\n";
    } else if (line.starts_with("-A ") && !IsProxyChain(Word(line, 3)) && IsProxyChain(TargetOf(line))) {
      rules += "-D" + std::string(line.substr(2)) + "\n";
    }
  }
  if (chains.empty()) return "";
  return std::string(header) + "\n" + flush + rules + chains + "COMMIT\n";
}

// Runs a program to its end; what it prints.
Result<std::string> Run(const std::vector<std::string>& arguments, const std::string& input = "") {
  UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
  if (!output) return ErrnoError("memfd_create");
  KEELSON_ASSIGN_OR_RETURN(
      event::Process process,
      event::Process::Start({.argv = arguments, .input = input, .output_fd = output.get()}));
  KEELSON_ASSIGN_OR_RETURN(event::ExitStatus status, process.Wait({}, kLimit));
  if (!status.ok()) return Error(Code::kInternal, arguments[0] + ": " + status.ToString());
  std::string out;
  char buffer[65536];
  for (off_t at = 0;;) {
    ssize_t got = ::pread(output.get(), buffer, sizeof buffer, at);
    if (got <= 0) return out;
    out.append(buffer, static_cast<size_t>(got));
    at += got;
  }
}

// Of iptables-legacy: `tool` is "iptables" or "ip6tables".
Result<> CleanLegacyTables(const std::string& tool) {
  Result<std::string> saved = Run({tool + "-legacy-save"});
  if (!saved) {
    // Whose they are cannot be told then.
    log::Warn(
        "There are tables of iptables-legacy, and no program to look into them: rules of another proxy "
        "mode may stay",
        {{"tool", tool + "-legacy-save"}, {"err", saved.error()}});
    return {};
  }
  std::string script = WithoutProxyChains(*saved);
  if (script.empty()) return {};
  KEELSON_RETURN_IF_ERROR(Run({tool + "-legacy-restore", "--noflush"}, script));
  log::Info("Removed the rules of proxy mode iptables", {{"tool", tool + "-legacy"}});
  return {};
}

// The tables that iptables-nft makes. Other programs may change them at the same moment.
Result<> CleanIptablesNft(nft::Kernel& kernel, const nft::Table& table) {
  Result<> applied;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    KEELSON_ASSIGN_OR_RETURN(std::optional<nft::LiveTable> found, nft::ReadLiveTable(table));
    if (!found) return {};
    nft::Transaction changes = WithoutProxyChains(*found);
    if (changes.empty()) return {};
    applied = kernel.Apply(changes);
    if (!applied) continue;
    log::Info("Removed the rules of proxy mode iptables", {{"table", nft::ToText(table)}});
    return {};
  }
  return applied;
}

bool HasLegacyTables(bool v4) {
  Result<std::string> names =
      ReadFile(v4 ? "/proc/thread-self/net/ip_tables_names" : "/proc/thread-self/net/ip6_tables_names");
  return names && !names->empty();
}

Result<> RemoveUpstreamTable(nft::Kernel& kernel, nft::Family family) {
  nft::Transaction t({family, kUpstreamTable});
  t.DeleteTable();
  Result<> gone = kernel.Apply(t);
  if (gone) log::Info("Removed the rules of another proxy in mode nftables");
  return gone || gone.error().Is(Code::kNotFound) ? Result<>() : gone;
}

Result<bool> HasIpvsDevice() {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  Result<netlink::Link> device = netlink::GetLink(socket, ipvs::kDevice);
  if (!device && !device.error().Is(Code::kNotFound)) return device.error();
  return device.has_value();
}

// The device tells that mode ipvs was here, and without a table of ours that it was upstream's. Rules that
// spoke of the sets have gone with the chains.
Result<> RemoveIpvsSets(nft::Kernel& kernel, const std::string& own_table) {
  KEELSON_ASSIGN_OR_RETURN(bool was_here, HasIpvsDevice());
  if (!was_here) return {};
  KEELSON_ASSIGN_OR_RETURN(bool ours,
                           kernel.HasChain({nft::Family::kIpv4, IpvsTable(own_table)}, "services"));
  if (ours) return {};
  Result<std::string> sets = Run({"ipset", "list", "-name"});
  if (!sets) log::Warn("Sets of proxy mode ipvs stay", {{"err", sets.error()}});
  for (size_t begin = 0; sets && begin < sets->size();) {
    size_t end = std::min(sets->find('\n', begin), sets->size());
    std::string name = sets->substr(begin, end - begin);
    if (name.starts_with("KUBE-")) (void)Run({"ipset", "destroy", name});
    begin = end + 1;
  }
  return {};
}

}  // namespace

nft::Transaction WithoutProxyChains(const nft::LiveTable& table) {
  nft::Transaction out(table.contents.table);
  for (const auto& [chain, programs] : table.programs) {
    if (IsProxyChain(chain)) {
      out.FlushChain(chain);
      continue;
    }
    for (const nft::Program& rule : programs) {
      if (std::any_of(rule.leads_to.begin(), rule.leads_to.end(), IsProxyChain)) {
        out.DeleteRule(chain, rule.handle);
      }
    }
  }
  for (const auto& [chain, contents] : table.contents.chains) {
    if (IsProxyChain(chain)) out.DeleteChain(chain);
  }
  return out;
}

std::string WithoutProxyChains(std::string_view saved) {
  std::string out;
  std::string_view header;
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < saved.size();) {
    size_t end = std::min(saved.find('\n', begin), saved.size());
    std::string_view line = saved.substr(begin, end - begin);
    if (line.starts_with("*")) {
      header = line;
      lines.clear();
    } else if (line == "COMMIT") {
      out += CleanTable(header, lines);
    } else {
      lines.push_back(line);
    }
    begin = end + 1;
  }
  return out;
}

Result<> RemoveLeftovers(nft::Kernel& kernel, const std::string& own_table) {
  Result<> all;
  auto note = [&](Result<> one) {
    if (!one && all) all = std::move(one);
  };
  for (bool v4 : {true, false}) {
    const nft::Family family = v4 ? nft::Family::kIpv4 : nft::Family::kIpv6;
    if (own_table != kUpstreamTable) note(RemoveUpstreamTable(kernel, family));
    for (const char* name : {"mangle", "nat", "filter"}) note(CleanIptablesNft(kernel, {family, name}));
    if (HasLegacyTables(v4)) note(CleanLegacyTables(v4 ? "iptables" : "ip6tables"));
  }
  note(RemoveIpvsSets(kernel, own_table));
  return all;
}

// The device goes last: who is killed on the way begins anew.
Result<> RemoveVirtualServers() {
  KEELSON_ASSIGN_OR_RETURN(bool was_here, HasIpvsDevice());
  if (!was_here) return {};
  Result<netlink::Ipvs> ipvs = netlink::Ipvs::Open();
  Result<> flushed = ipvs ? ipvs->Flush() : Result<>(ipvs.error());
  if (!flushed && !flushed.error().Is(Code::kUnimplemented)) return flushed;
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_RETURN_IF_ERROR(netlink::DeleteLink(socket, ipvs::kDevice));
  log::Info("Removed the virtual servers of proxy mode ipvs");
  return {};
}

}  // namespace keelson::proxy
