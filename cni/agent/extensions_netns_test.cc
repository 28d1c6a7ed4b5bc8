// Encryption and BGP with a real kernel and a real BIRD, where available.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "cni/agent/bird.h"
#include "cni/agent/ipsec.h"
#include "cni/agent/testing/netns_fixture.h"
#include "cni/agent/wireguard.h"
#include "lib/base/file.h"
#include "lib/event/process.h"

namespace keelson::cni::agent {
namespace {

IpPrefix Prefix(const char* text) { return *IpPrefix::Parse(text); }

#define ASSERT_DONE(expr)                                    \
  do {                                                       \
    auto done = (expr);                                      \
    ASSERT_TRUE(done.has_value()) << done.error().message(); \
  } while (false)

// Captures every frame on an interface: IP protocol numbers, and what is inside the outermost header.
class Capture {
 public:
  Capture(const linux::NetNs& netns, const char* link) {
    (void)netns.Run([&]() -> Result<> {
      fd_.Reset(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ALL)));
      sockaddr_ll address{};
      address.sll_family = AF_PACKET;
      address.sll_protocol = htons(ETH_P_ALL);
      address.sll_ifindex = static_cast<int>(::if_nametoindex(link));
      if (::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        return ErrnoError("bind");
      }
      return {};
    });
  }
  // IPv4 packets so far by protocol; `clear` counts those that contain `text`.
  std::map<int, int> Protocols(const std::string& text, int& clear) {
    std::map<int, int> out;
    clear = 0;
    char buffer[4096];
    for (ssize_t got; (got = ::recv(fd_.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;) {
      std::string_view packet(buffer, static_cast<size_t>(got));
      if ((packet[0] & 0xf0) == 0x40 && packet.size() > 20) ++out[static_cast<uint8_t>(packet[9])];
      if (packet.find(text) != std::string_view::npos) ++clear;
    }
    return out;
  }

 private:
  UniqueFd fd_;
};

class ExtensionsNetnsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = Network::Make();
    if (!made) GTEST_SKIP() << "no network namespaces here: " << made.error().message();
    network_ = std::move(*made);
    ASSERT_DONE(network_->AddNode("a"));
    ASSERT_DONE(network_->AddNode("b"));
    ASSERT_DONE(network_->AddNode("far", true));
  }
  const NodeSite& Site(const std::string& name) { return network_->site(name); }

  using Make = std::function<Result<std::unique_ptr<Extension>>(const Config&)>;
  Result<> Start(const std::string& name, const Config& config, const Make& make) {
    std::unique_ptr<Extension> extension;
    KEELSON_RETURN_IF_ERROR(Site(name).host.Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(extension, make(config));
      return {};
    }));
    agents_[name] = std::make_unique<RunningAgent>(Site(name), network_->api(), config, std::move(extension));
    return {};
  }

  std::unique_ptr<Network> network_;
  std::map<std::string, std::unique_ptr<RunningAgent>> agents_;
};

class IpsecTest : public ExtensionsNetnsTest {
 protected:
  void SetUp() override {
    ExtensionsNetnsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    key_file_ = network_->dir() + "/secrets";
    ASSERT_DONE(WriteFile(key_file_, std::string(40, 'x') + "\n"));
  }
  bool KernelHasEsp() {
    Result<> added = Site("a").host.Run([]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenXfrm());
      netlink::XfrmState probe{*IpAddress::Parse("10.0.0.9"), *IpAddress::Parse("10.0.0.8"), 999, 1,
                               std::string(36, 'k')};
      KEELSON_RETURN_IF_ERROR(netlink::AddState(socket, probe));
      KEELSON_RETURN_IF_ERROR(netlink::DeleteState(socket, probe));
      return {};
    });
    if (!added) reason_ = added.error().message();
    return added.has_value();
  }
  Config IpsecConfig(const std::string& name) {
    Config config = network_->ConfigFor(name);
    config.encryption = Encryption::kIpsec;
    config.ipsec_key_file = key_file_;
    return config;
  }
  static Result<std::unique_ptr<Extension>> MakeIpsec(const Config& config) {
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Ipsec> ipsec, Ipsec::Open(config));
    return std::unique_ptr<Extension>(std::move(ipsec));
  }
  std::string key_file_, reason_;
};

TEST_F(IpsecTest, PoliciesAreReplacedListedAndRemoved) {
  ASSERT_DONE(Site("a").host.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenXfrm());
    using netlink::XfrmPolicy;
    XfrmPolicy::Tunnel tunnel{*IpAddress::Parse("10.0.0.1"), *IpAddress::Parse("10.0.0.2"), 4711,
                              kIpsecReqid};
    std::vector<XfrmPolicy> wanted = {
        {XfrmPolicy::Direction::kOut, Prefix("10.244.1.0/24"), Prefix("10.244.2.0/24"), kPriorityTunnel,
         false, tunnel},
        {XfrmPolicy::Direction::kForward, Prefix("fd44:2::/64"), Prefix("fd44:1::/64"), kPriorityTunnel,
         false, tunnel},
        {XfrmPolicy::Direction::kOut, Prefix("0.0.0.0/0"), Prefix("10.244.0.0/16"), kPriorityBlock, true}};
    for (const XfrmPolicy& policy : wanted) KEELSON_RETURN_IF_ERROR(netlink::ReplacePolicy(socket, policy));
    wanted[0].tunnel->spi = 4712;
    KEELSON_RETURN_IF_ERROR(netlink::ReplacePolicy(socket, wanted[0]));
    // Another program's policy stays.
    XfrmPolicy foreign{XfrmPolicy::Direction::kOut, Prefix("172.16.0.0/24"), Prefix("172.17.0.0/24"), 9};
    KEELSON_RETURN_IF_ERROR(netlink::ReplacePolicy(socket, foreign));
    KEELSON_ASSIGN_OR_RETURN(auto found, netlink::ListPolicies(socket));
    EXPECT_EQ(found.size(), 4u);
    for (const XfrmPolicy& policy : wanted) {
      EXPECT_NE(std::find(found.begin(), found.end(), policy), found.end()) << policy.source.ToString();
    }
    KEELSON_RETURN_IF_ERROR(Ipsec::RemoveAll(socket));
    KEELSON_ASSIGN_OR_RETURN(found, netlink::ListPolicies(socket));
    EXPECT_EQ(found, std::vector<XfrmPolicy>{foreign});
    EXPECT_FALSE(*netlink::DeletePolicy(socket, wanted[0]));
    return {};
  }));
}

TEST_F(IpsecTest, WithoutEspInTheKernelItSaysSo) {
  if (KernelHasEsp()) GTEST_SKIP() << "this kernel has ESP";
  ASSERT_DONE(Start("a", IpsecConfig("a"), MakeIpsec));
  while (agents_["a"]->health().Complaint().find("no sync yet") != std::string::npos) {
    std::this_thread::yield();
  }
  EXPECT_THAT(agents_["a"]->health().Complaint(), ::testing::HasSubstr("the kernel needs ESP and AES-GCM"));
}

TEST_F(IpsecTest, WhatPassesBetweenNodesIsEncrypted) {
  if (!KernelHasEsp()) GTEST_SKIP() << reason_;
  for (const char* name : {"a", "b", "far"}) {
    ASSERT_DONE(Start(name, IpsecConfig(name), MakeIpsec));
    agents_[name]->syncer().AwaitSyncs(1);
  }
  // Capture on the wire: at the node, decrypted packets show up a second time.
  Capture capture(network_->lan(), "node1");
  auto expect_meeting = [&](const char* from, const char* to, bool v4) {
    Echo echo(Site(to).pod);
    EXPECT_EQ(SeenAs(Site(from).pod, Site(to).PodIp(v4)), Site(from).PodIp(v4).ToString())
        << from << " to " << to;
  };
  for (bool v4 : {true, false}) {
    expect_meeting("a", "b", v4);
    expect_meeting("b", "a", v4);
    expect_meeting("a", "far", v4);
    expect_meeting("far", "a", v4);
  }
  Echo echo(Site("b").pod);
  EXPECT_EQ(SeenAs(Site("a").host, Site("b").PodIp()), "10.0.0.1");
  int clear = 0;
  auto protocols = capture.Protocols("10.244.", clear);  // replies contain the sender's address as text
  EXPECT_EQ(clear, 0);
  EXPECT_GE(protocols[IPPROTO_ESP], 18);
  EXPECT_EQ(protocols[IPPROTO_UDP], 0);

  // A new secret takes over without packet loss: as second line everywhere, then first, then alone.
  Traffic traffic(Site("a").pod, Site("b").PodIp());
  std::string x(40, 'x'), y(40, 'y');
  for (const std::string& content : {x + "\n" + y, y + "\n" + x, y}) {
    ASSERT_DONE(WriteFile(key_file_, content + "\n"));
    for (const char* name : {"a", "b", "far"}) {
      uint64_t before = agents_[name]->syncer().syncs();
      agents_[name]->syncer().NodesChanged();
      agents_[name]->syncer().AwaitSyncs(before + 1);
      traffic.AwaitReplies(20);
    }
  }
  EXPECT_EQ(traffic.Finish(), 0);
}

TEST_F(ExtensionsNetnsTest, WireguardBetweenNodes) {
  auto make = [&](const Config& config) -> Result<std::unique_ptr<Extension>> {
    auto publish = [source = NodeSource(network_->api()), name = config.node_name](const std::string& key) {
      return source.Annotate(name, kWireguardKeyAnnotation, key);
    };
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Wireguard> wireguard, Wireguard::Open(config, publish));
    return std::unique_ptr<Extension>(std::move(wireguard));
  };
  for (const char* name : {"a", "b", "far"}) {
    Config config = network_->ConfigFor(name);
    config.encryption = Encryption::kWireguard;
    config.data_dir = network_->dir() + "/data-" + name;
    Result<> started = Start(name, config, make);
    if (!started) {
      EXPECT_EQ(started.error().code(), Code::kUnimplemented) << started.error().message();
      EXPECT_THAT(started.error().message(), ::testing::HasSubstr("this kernel has no WireGuard"));
      GTEST_SKIP() << started.error().message();
    }
  }
  auto routed = [&](const char* name) {
    return agents_[name]->Await([&] {
      netlink::Socket socket = *netlink::Socket::OpenIn(Site(name).host);
      auto routes = *netlink::ListRoutes(socket);
      return std::count_if(routes.begin(), routes.end(),
                           [](const auto& r) { return r.protocol == kRouteProtocol; }) == 4;
    });
  };
  for (const char* name : {"a", "b", "far"}) ASSERT_TRUE(routed(name)) << name;
  Capture capture(network_->lan(), "node1");
  for (const char* other : {"b", "far"}) {
    Echo echo(Site(other).pod), own(Site("a").pod);
    for (bool v4 : {true, false}) {
      EXPECT_EQ(SeenAs(Site("a").pod, Site(other).PodIp(v4)), Site("a").PodIp(v4).ToString());
      EXPECT_EQ(SeenAs(Site(other).pod, Site("a").PodIp(v4)), Site(other).PodIp(v4).ToString());
    }
  }
  int clear = 0;
  EXPECT_GT(capture.Protocols("10.244.", clear)[IPPROTO_UDP], 0);
  EXPECT_EQ(clear, 0);
}

TEST_F(ExtensionsNetnsTest, BirdsTellEachOther) {
  if (!PathExists("/usr/sbin/bird")) GTEST_SKIP() << "BIRD 2 is not installed";
  std::vector<event::Process> birds;
  for (const char* name : {"a", "b"}) {
    Config config = network_->ConfigFor(name, Mode::kNone);
    const std::string prefix = network_->dir() + "/bird-" + name;
    config.bgp = {.bird_config = prefix + ".conf", .bird_socket = prefix + ".ctl", .as_number = 64512};
    const char* other = std::string(name) == "a" ? "b" : "a";
    for (const IpAddress& ip : Site(other).addresses) config.bgp.peers.push_back({ip, 64512});
    // BIRD starts with a minimal configuration, like a packaged one, and gets the rest later.
    ASSERT_DONE(WriteFile(config.bgp.bird_config, "protocol device {\n}\n"));
    ASSERT_DONE(Site(name).host.Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(
          event::Process bird,
          event::Process::Start({.argv = {"/usr/sbin/bird", "-f", "-c", config.bgp.bird_config, "-s",
                                          config.bgp.bird_socket, "-P", prefix + ".pid"},
                                 .output_file = prefix + ".log"}));
      birds.push_back(std::move(bird));
      return {};
    }));
    while (!PathExists(config.bgp.bird_socket)) std::this_thread::yield();
    ASSERT_DONE(Start(name, config, [](const Config& c) -> Result<std::unique_ptr<Extension>> {
      return std::unique_ptr<Extension>(std::make_unique<Bird>(c));
    }));
    agents_[name]->syncer().AwaitSyncs(1);
  }
  // BIRD waits a few seconds before it connects; learned routes appear as routes of its protocol.
  auto await_routes = [&](const char* name, std::initializer_list<const char*> pods) -> Result<> {
    std::optional<netlink::Monitor> monitor;
    KEELSON_RETURN_IF_ERROR(Site(name).host.Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(monitor, netlink::Monitor::Open());
      return {};
    }));
    KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::OpenIn(Site(name).host));
    for (;;) {
      KEELSON_ASSIGN_OR_RETURN(const auto routes, netlink::ListRoutes(socket));
      const auto learned = [&](const char* prefix) {
        return std::any_of(routes.begin(), routes.end(), [&](const netlink::Route& route) {
          return route.destination == Prefix(prefix) && route.protocol == 12;
        });
      };
      if (std::all_of(pods.begin(), pods.end(), learned)) return {};
      KEELSON_RETURN_IF_ERROR(monitor->Wait({}, std::chrono::seconds(40)));
    }
  };
  ASSERT_DONE(await_routes("a", {"10.244.2.0/24", "fd44:2::/64"}));
  ASSERT_DONE(await_routes("b", {"10.244.1.0/24", "fd44:1::/64"}));
  Echo echo(Site("b").pod);
  EXPECT_EQ(SeenAs(Site("a").pod, Site("b").PodIp()), Site("a").PodIp().ToString());
  // BIRD rejects a configuration that it cannot parse, with a reason.
  std::string bad = network_->dir() + "/bad.conf";
  ASSERT_DONE(WriteFile(bad, "protocol nonsense;\n"));
  auto refused =
      BirdCommand(network_->dir() + "/bird-a.ctl", "configure \"" + bad + "\"", std::chrono::seconds(5));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalid);
  agents_.clear();
  for (event::Process& bird : birds) (void)bird.Terminate(std::chrono::seconds(2));
  auto away = BirdCommand(network_->dir() + "/bird-a.ctl", "show status", std::chrono::seconds(1));
  EXPECT_EQ(away.error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace keelson::cni::agent
