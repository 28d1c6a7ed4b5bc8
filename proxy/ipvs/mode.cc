#include "proxy/ipvs/mode.h"

#include <sys/utsname.h>

#include <cstdio>

#include "lib/base/log.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/link.h"

namespace keelson::proxy::ipvs {
namespace {

constexpr char kConntrack[] = "net/ipv4/vs/conntrack";

// TEST-NET-2, which nobody asks for.
const ServerAddress kTrial{kTcp, *IpAddress::Parse("198.51.100.0"), 20000};

void Set(const char* key, const char* value) {
  if (Result<> set = linux::EnsureSysctl(key, value); !set) {
    log::Warn("Cannot set a kernel parameter", {{"key", key}, {"value", value}, {"err", set.error()}});
  }
}

// From 4.1 on the parameter is there; from 5.9 on the kernel's own choice is a good one.
bool NeedsConnReuseMode() {
  utsname name{};
  int major = 0, minor = 0;
  if (::uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
  const int version = major * 1000 + minor;
  return version >= 4001 && version < 5009;
}

Result<bool> HasDevice() {
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  Result<netlink::Link> link = netlink::GetLink(socket, kDevice);
  if (!link && !link.error().Is(Code::kNotFound)) return link.error();
  return link.has_value();
}

Result<> Look(const Options& options) {
  KEELSON_ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
  if (!linux::ReadSysctl(kConntrack)) {
    return Error(Code::kUnimplemented,
                 "this kernel's IPVS does not track connections: it needs CONFIG_IP_VS_NFCT");
  }
  Result<> tried = ipvs.AddServer({.address = kTrial,
                                   .scheduler = options.scheduler,
                                   .scheduler_flags = options.scheduler_flags,
                                   .affinity = std::chrono::seconds(0)});
  if (!tried && !tried.error().Is(Code::kAlreadyExists)) return tried;
  KEELSON_RETURN_IF_ERROR(ipvs.DeleteServer(kTrial));
  KEELSON_ASSIGN_OR_RETURN(bool has_device, HasDevice());
  if (has_device) return {};
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  return netlink::CreateDummy(socket, kDevice);
}

}  // namespace

uint32_t SchedulerFlags(const std::string& scheduler) {
  return scheduler == "mh" ? netlink::kSchedulerFlag2 : 0;  // mh-port
}

Result<> CheckKernel(const Options& options) {
  Result<> fit = Look(options);
  return fit ? fit : fit.error().Wrap("proxy mode \"ipvs\" is not possible here");
}

Result<> PrepareHost(const HostOptions& host) {
  // Without it what IPVS translates is not masqueraded.
  KEELSON_RETURN_IF_ERROR(linux::EnsureSysctl(kConntrack, "1"));
  if (NeedsConnReuseMode()) Set("net/ipv4/vs/conn_reuse_mode", "0");
  Set("net/ipv4/vs/expire_nodest_conn", "1");
  Set("net/ipv4/vs/expire_quiescent_template", "1");
  if (host.strict_arp) {
    Set("net/ipv4/conf/all/arp_ignore", "1");
    Set("net/ipv4/conf/all/arp_announce", "2");
  }
  const netlink::IpvsTimeouts& t = host.timeouts;
  if (t.tcp.count() == 0 && t.tcp_fin.count() == 0 && t.udp.count() == 0) return {};
  KEELSON_ASSIGN_OR_RETURN(netlink::Ipvs ipvs, netlink::Ipvs::Open());
  return ipvs.SetTimeouts(t);
}

DataplaneMode Mode(Options options, HostOptions host, nftables::Options v4, nftables::Options v6,
                   nftables::OpenKernel open_nft) {
  auto make = [=](bool is_v4, const std::optional<std::vector<IpPrefix>>& pod_cidrs)
      -> Result<std::unique_ptr<proxy::Dataplane>> {
    if (is_v4) KEELSON_RETURN_IF_ERROR(PrepareHost(host));
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, OpenKernel());
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> nft, open_nft());
    return std::unique_ptr<proxy::Dataplane>(std::make_unique<Dataplane>(
        std::move(kernel), std::move(nft), options, nftables::WithPods(is_v4 ? v4 : v6, pod_cidrs)));
  };
  return {.name = "ipvs",
          .check = [options] { return CheckKernel(options); },
          .left = HasDevice,
          .make = std::move(make)};
}

}  // namespace keelson::proxy::ipvs
