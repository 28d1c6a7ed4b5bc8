#include "proxy/leftovers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/event/process.h"
#include "lib/netlink/link.h"

namespace keelson::proxy {
namespace {

constexpr char kUpstreamTable[] = "kube-proxy";
constexpr char kIpvsDevice[] = "kube-ipvs0";
constexpr std::chrono::seconds kLimit{30};

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
  ASSIGN_OR_RETURN(event::Process process,
                   event::Process::Start({.argv = arguments, .input = input, .output_fd = output.get()}));
  ASSIGN_OR_RETURN(event::ExitStatus status, process.Wait({}, kLimit));
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

// `tool`: "iptables-nft", "ip6tables-legacy", ...
Result<> CleanIptables(const std::string& tool) {
  Result<std::string> saved = Run({tool + "-save"});
  if (!saved) return {};  // not installed: then nobody has made rules with it
  std::string script = WithoutProxyChains(*saved);
  if (script.empty()) return {};
  RETURN_IF_ERROR(Run({tool + "-restore", "--noflush"}, script));
  log::Info("Removed the rules of proxy mode iptables", {{"tool", tool}});
  return {};
}

Result<bool> HasIptablesNftRules(nft::Kernel& kernel, nft::Family family) {
  for (const char* table : {"nat", "filter"}) {
    for (const char* chain : {"KUBE-SERVICES", "KUBE-POSTROUTING", "KUBE-FORWARD", "KUBE-PROXY-CANARY"}) {
      ASSIGN_OR_RETURN(bool has, kernel.HasChain({family, table}, chain));
      if (has) return true;
    }
  }
  return false;
}

bool HasLegacyTables(bool v4) {
  Result<std::string> names = ReadFile(v4 ? "/proc/net/ip_tables_names" : "/proc/net/ip6_tables_names");
  return names && !names->empty();
}

Result<> RemoveUpstreamTable(nft::Kernel& kernel, nft::Family family) {
  nft::Transaction t({family, kUpstreamTable});
  t.DeleteTable();
  Result<> gone = kernel.Apply(t);
  if (gone) log::Info("Removed the rules of another proxy in mode nftables");
  return gone || gone.error().Is(Code::kNotFound) ? Result<>() : gone;
}

Result<> RemoveIpvs() {
  ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  ASSIGN_OR_RETURN(bool was_there, netlink::DeleteLink(socket, kIpvsDevice));
  if (!was_there) return {};
  Result<std::string> cleared = Run({"ipvsadm", "--clear"});
  if (!cleared) log::Warn("Virtual servers of proxy mode ipvs stay", {{"err", cleared.error()}});
  // Rules that spoke of the sets have gone with the chains.
  Result<std::string> sets = Run({"ipset", "list", "-name"});
  for (size_t begin = 0; sets && begin < sets->size();) {
    size_t end = std::min(sets->find('\n', begin), sets->size());
    std::string name = sets->substr(begin, end - begin);
    if (name.starts_with("KUBE-")) (void)Run({"ipset", "destroy", name});
    begin = end + 1;
  }
  log::Info("Removed the device of proxy mode ipvs");
  return {};
}

}  // namespace

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
    const std::string tool = v4 ? "iptables" : "ip6tables";
    if (own_table != kUpstreamTable) note(RemoveUpstreamTable(kernel, family));
    Result<bool> has = HasIptablesNftRules(kernel, family);
    if (has && *has) note(CleanIptables(tool + "-nft"));
    if (HasLegacyTables(v4)) note(CleanIptables(tool + "-legacy"));
  }
  note(RemoveIpvs());
  return all;
}

}  // namespace keelson::proxy
