#include "proxy/ebpf/testing/direct.h"

#include "lib/linux/sysctl.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/neigh.h"
#include "lib/netlink/route.h"

namespace keelson::proxy::ebpf {
namespace {

Result<> MakePlace() {
  KEELSON_RETURN_IF_ERROR(linux::WriteSysctl("net/ipv4/ip_forward", "1"));
  KEELSON_RETURN_IF_ERROR(linux::WriteSysctl("net/ipv6/conf/all/forwarding", "1"));
  KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
  KEELSON_ASSIGN_OR_RETURN(netlink::Link lo, netlink::GetLink(socket, 1));
  KEELSON_RETURN_IF_ERROR(netlink::SetUp(socket, lo.index));
  for (auto [name, mac] : {std::pair("in", kIn), std::pair("out", kOut)}) {
    const std::string peer = std::string(name) + "-peer";
    KEELSON_RETURN_IF_ERROR(
        netlink::CreateVeth(socket, {.name = name, .mac = mac, .up = true}, {.name = peer}, 0));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link other, netlink::GetLink(socket, peer));
    KEELSON_RETURN_IF_ERROR(netlink::SetUp(socket, other.index));
  }
  struct {
    const char *device, *address, *neighbor, *destination;
    MacAddress mac;
  } const ways[] = {{"in", "172.30.0.1/24", "172.30.0.2", "0.0.0.0/0", kClients},
                    {"in", "", "172.30.0.3", "10.3.0.0/24", kNear},
                    {"out", "172.31.0.1/24", "172.31.0.2", "10.2.0.0/24", kElsewhere},
                    {"in", "fd30::1/64", "fd30::2", "::/0", kClients},
                    {"in", "", "fd30::3", "fd03::/64", kNear},
                    {"out", "fd31::1/64", "fd31::2", "fd02::/64", kElsewhere}};
  for (const auto& way : ways) {
    KEELSON_ASSIGN_OR_RETURN(netlink::Link device, netlink::GetLink(socket, way.device));
    if (*way.address) {
      KEELSON_RETURN_IF_ERROR(netlink::AddAddress(socket, device.index, *IpPrefix::Parse(way.address)));
    }
    KEELSON_RETURN_IF_ERROR(netlink::ReplaceNeighbor(
        socket,
        {.link_index = device.index, .address = Ip(way.neighbor), .mac = way.mac, .permanent = true}));
    KEELSON_RETURN_IF_ERROR(netlink::AddRoute(socket, {.destination = *IpPrefix::Parse(way.destination),
                                                       .gateway = Ip(way.neighbor),
                                                       .link_index = device.index}));
  }
  return {};
}

}  // namespace

void DirectTest::SetUp() {
  auto place = linux::NetNs::Make();
  if (!place) GTEST_SKIP() << place.error().message();
  place_ = std::make_unique<linux::NetNs>(std::move(*place));
  kernel_ = std::make_unique<Kernel>(GetParam(), place_.get(), dsr_);
  n_ = kernel_->names;
  v4_ = GetParam();
  if (Result<> loaded = kernel_->Load(); !loaded) {
    if (loaded.error().errnum() == EPERM) GTEST_SKIP() << loaded.error().message();
    FAIL() << loaded.error().message();
  }
  Result<> made = place_->RunHere([&]() -> Result<> {
    KEELSON_RETURN_IF_ERROR(MakePlace());
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
    KEELSON_ASSIGN_OR_RETURN(netlink::Link in, netlink::GetLink(socket, "in"));
    KEELSON_ASSIGN_OR_RETURN(netlink::Link out, netlink::GetLink(socket, "out"));
    in_ = static_cast<uint32_t>(in.index);
    out_ = static_cast<uint32_t>(out.index);
    return {};
  });
  ASSERT_TRUE(made) << made.error().message();
  node_ = Ip(v4_ ? "172.31.0.1" : "fd31::1");
  for (auto [device, address] : {std::pair(in_, n_.node), std::pair(out_, node_)}) {
    ASSERT_TRUE(kernel_->Map("devices").Put(device, dataplane::DeviceEntry{.link_header = 14}));
    PutDirect(device, address, 1500);
  }
  PutXdp(in_, kIn, true);
  PutXdp(out_, kOut, true);
}

}  // namespace keelson::proxy::ebpf
