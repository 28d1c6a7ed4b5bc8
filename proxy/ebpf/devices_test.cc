#include "proxy/ebpf/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/netlink/xdp_features.h"

namespace keelson::proxy::ebpf {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

netlink::Link Link(int index, const char* name, const char* kind, bool ethernet = true) {
  netlink::Link out{.index = index, .name = name, .kind = kind, .up = true};
  if (ethernet) out.mac = netlink::MacAddress({2, 0, 0, 0, 0, static_cast<uint8_t>(index)});
  return out;
}

netlink::Address At(int index, const char* prefix, bool link_scope = false) {
  return {.link_index = index, .prefix = *IpPrefix::Parse(prefix), .link_scope = link_scope};
}

TEST(ExternalDevices, AreThoseWithAddresses) {
  netlink::Link lo = Link(1, "lo", "", false);
  lo.loopback = true;
  const std::vector<netlink::Link> links = {lo,
                                            Link(2, "eth0", ""),
                                            Link(3, "cni0", "bridge"),
                                            Link(4, "veth1", "veth"),
                                            Link(5, "kube-dns0", "dummy"),
                                            Link(6, "wg0", "wireguard", false),
                                            Link(7, "ib0", "", false),
                                            Link(8, "eth1", "")};
  const std::vector<netlink::Address> addresses = {
      At(1, "127.0.0.1/8", true), At(2, "192.0.2.10/24"), At(3, "10.1.0.254/24"),  At(4, "fe80::1/64", true),
      At(5, "10.96.0.10/32"),     At(6, "192.0.2.77/32"), At(7, "198.51.100.7/24")};
  EXPECT_THAT(ExternalDevices(links, addresses, {.pod_cidrs = {*IpPrefix::Parse("10.1.0.0/16")}}),
              ElementsAre(Pair(2, 14), Pair(6, 0)));
  EXPECT_THAT(ExternalDevices(links, addresses, {.pod_bridge = "cni0"}),
              ElementsAre(Pair(2, 14), Pair(6, 0)));
  EXPECT_THAT(ExternalDevices(links, addresses, {.pod_interface_prefix = "cni"}),
              ElementsAre(Pair(2, 14), Pair(6, 0)));
  EXPECT_THAT(ExternalDevices(links, addresses, {}), ElementsAre(Pair(2, 14), Pair(3, 14), Pair(6, 0)))
      << "who is a pod is not known";
}

TEST(ExternalDevices, OrThoseNamed) {
  const std::vector<netlink::Link> links = {Link(2, "eth0", ""), Link(3, "eth1", ""), Link(4, "ens3", ""),
                                            Link(5, "ib0", "", false)};
  EXPECT_THAT(ExternalDevices(links, {}, {.names = {"eth?"}}), ElementsAre(Pair(2, 14), Pair(3, 14)));
  EXPECT_THAT(ExternalDevices(links, {}, {.names = {"ens*", "eth0"}}), ElementsAre(Pair(2, 14), Pair(4, 14)));
  EXPECT_THAT(ExternalDevices(links, {}, {.names = {"ib0"}}), IsEmpty()) << "its headers are not known";
}

TEST(DirectDevices, HaveAnAddressOfTheFamily) {
  std::vector<netlink::Link> links = {Link(2, "eth0", ""), Link(3, "eth1", ""), Link(4, "eth2", "")};
  for (netlink::Link& link : links) link.mtu = 1500 + link.index;
  const std::vector<netlink::Address> addresses = {At(2, "fe80::1/64", true), At(2, "192.0.2.10/24"),
                                                   At(2, "192.0.2.11/24"), At(3, "2001:db8::3/64"),
                                                   At(4, "192.0.2.12/24")};
  const std::map<int, uint32_t> devices = {{2, 14}, {3, 14}};
  EXPECT_THAT(DirectDevices(devices, links, addresses, true),
              ElementsAre(Pair(2, DirectDevice{*IpAddress::Parse("192.0.2.10"), 1502})));
  EXPECT_THAT(DirectDevices(devices, links, addresses, false),
              ElementsAre(Pair(3, DirectDevice{*IpAddress::Parse("2001:db8::3"), 1503})));
}

TEST(FastDevices, AreThoseNamedOrNoVeths) {
  const netlink::Link nic = Link(2, "eth0", ""), veth = Link(3, "veth0", "veth"),
                      bare = Link(4, "wg0", "wireguard", false);
  struct {
    std::vector<std::string> names;
    bool nic, veth;
  } const cases[] = {{{"auto"}, true, false}, {{"off"}, false, false},  {{"eth*"}, true, false},
                     {{"*"}, true, true},     {{"veth?"}, false, true}, {{"eth0", "veth0"}, true, true}};
  for (const auto& c : cases) {
    EXPECT_EQ(WantsXdp(nic, c.names), c.nic) << c.names[0];
    EXPECT_EQ(WantsXdp(veth, c.names), c.veth) << c.names[0];
    EXPECT_FALSE(WantsXdp(bare, c.names)) << c.names[0];
  }
}

TEST(FastDevices, AreUsedForWhatTheirDriversCan) {
  using netlink::kXdpBasic, netlink::kXdpReceive, netlink::kXdpRedirect;
  const netlink::Link nic = Link(2, "eth0", ""), veth = Link(3, "veth0", "veth");
  struct {
    const char* what;
    netlink::Link link;
    std::optional<uint64_t> features;
    bool used, receives;
  } const cases[] = {
      {"an old kernel's", nic, std::nullopt, true, false},
      {"sends back only", nic, kXdpBasic | kXdpRedirect, true, false},
      {"takes other devices' frames", nic, kXdpBasic | kXdpRedirect | kXdpReceive, true, true},
      {"has nothing any more", nic, 0, false, false},
      {"a veth whose other end is ready", veth, kXdpBasic | kXdpRedirect | kXdpReceive, true, true},
      {"a veth whose other end is not", veth, kXdpBasic | kXdpRedirect, false, false},
      {"a veth on an old kernel", veth, std::nullopt, false, false},
  };
  for (const auto& c : cases) {
    const std::optional<dataplane::XdpDeviceEntry> use = XdpUse(c.link, c.features);
    ASSERT_EQ(use.has_value(), c.used) << c.what;
    if (!use) continue;
    EXPECT_EQ(use->receives, c.receives) << c.what;
    EXPECT_EQ(use->mac[5], c.link.index) << c.what;
  }
}

}  // namespace
}  // namespace keelson::proxy::ebpf
