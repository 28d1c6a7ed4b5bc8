#include "proxy/dns/cluster_dns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "lib/api/types.h"
#include "lib/base/socket_address.h"
#include "proxy/dns/testing/messages.h"

namespace keelson::proxy::dns {
namespace {

using ::testing::ElementsAre;

const IpAddress kLocalhost = *IpAddress::Parse("127.0.0.1");

TEST(ClusterDnsOptions, Addresses) {
  auto parsed = ParseDnsAddresses("10.96.0.10,fd00:10:96::a");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->size(), 2u);
  for (const char* text : {"", "10.96.0.10,", "10.96.0.10,10.96.0.11", "0.0.0.0", "::", "224.0.0.1", "dns"}) {
    EXPECT_FALSE(ParseDnsAddresses(text)) << text;
  }
}

TEST(ClusterDnsOptions, StubDomains) {
  struct {
    const char* text;
    std::vector<std::pair<const char*, int>> servers;
  } cases[] = {{"corp.example=10.0.0.53", {{"10.0.0.53", 53}}},
               {"corp.example=10.0.0.53:5353,fd00::53", {{"10.0.0.53", 5353}, {"fd00::53", 53}}},
               {"corp.example=[fd00::53]:5353,[fd00::54]", {{"fd00::53", 5353}, {"fd00::54", 53}}}};
  for (const auto& c : cases) {
    auto parsed = ParseStubDomain(c.text);
    ASSERT_TRUE(parsed) << c.text;
    EXPECT_EQ(parsed->first, "corp.example");
    ASSERT_EQ(parsed->second.size(), c.servers.size()) << c.text;
    for (size_t i = 0; i < c.servers.size(); ++i) {
      EXPECT_EQ(parsed->second[i].ip.ToString(), c.servers[i].first) << c.text;
      EXPECT_EQ(parsed->second[i].port, c.servers[i].second) << c.text;
    }
  }
  for (const char* text :
       {"corp.example", "corp..example=10.0.0.53", "corp.example=", "corp.example=dns",
        "corp.example=10.0.0.53:0", "corp.example=10.0.0.53:66000", "corp.example=[fd00::53]:"}) {
    EXPECT_FALSE(ParseStubDomain(text)) << text;
  }
}

corev1::Service WithClusterIp(const std::string& ip) {
  corev1::Service out;
  out.mutable_spec()->set_type("ClusterIP");
  out.mutable_spec()->set_cluster_ip(ip);
  out.mutable_spec()->add_cluster_ips(ip);
  return out;
}

class ClusterDnsTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(std::chrono::hours(1)); }
  void Start(std::chrono::milliseconds patience) {
    zone_ = {};
    udp_ = {};
    first_ = {};
    ClusterDnsOptions options;
    options.patience = patience;
    options.addresses = {kLocalhost};
    options.port = 0;
    options.resolv_conf = "";
    dns_ = std::move(*ClusterDns::Create(options, Clock::Real()));
    udp_ = std::jthread([this](std::stop_token stop) { EXPECT_TRUE(dns_->ServeUdp(stop)); });
    zone_ = std::jthread([this](std::stop_token stop) {
      EXPECT_TRUE(dns_->Follow(stop, [this]() -> Result<> {
        first_.set_value();
        return {};
      }));
    });
    client_.Reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    SocketAddress address(kLocalhost, dns_->udp_ports()[0]);
    ASSERT_EQ(::connect(client_.get(), address.get(), address.size()), 0);
    timeval limit{10, 0};
    ::setsockopt(client_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }

  Decoded Ask(const std::string& name) {
    std::string packet = QueryPacket(name, kTypeA);
    EXPECT_EQ(::send(client_.get(), packet.data(), packet.size(), 0), static_cast<ssize_t>(packet.size()));
    char bytes[4096];
    ssize_t size = ::recv(client_.get(), bytes, sizeof bytes, 0);
    return Decode({bytes, static_cast<size_t>(std::max<ssize_t>(0, size))});
  }
  // Asks until the answer has so many records.
  Decoded AskUntil(const std::string& name, size_t records) {
    for (;;) {
      Decoded out = Ask(name);
      if (!out.valid || out.answer.size() == records) return out;
    }
  }

  std::unique_ptr<ClusterDns> dns_;
  std::promise<void> first_;
  UniqueFd client_;
  std::jthread udp_, zone_;
};

TEST_F(ClusterDnsTest, DeniesNothingBeforeItKnows) {
  corev1::Service web = WithClusterIp("10.96.0.7");
  dns_->OnService("default/web", &web);
  EXPECT_EQ(Ask("web.default.svc.cluster.local").rcode, "SERVFAIL");
  EXPECT_FALSE(dns_->Ready());
  dns_->MarkSynced();
  first_.get_future().wait();
  EXPECT_THAT(Ask("web.default.svc.cluster.local").answer,
              ElementsAre("web.default.svc.cluster.local. 5 A 10.96.0.7"));
  EXPECT_EQ(Ask("other.default.svc.cluster.local").rcode, "NXDOMAIN");
}

TEST_F(ClusterDnsTest, DoesNotWaitForTheApiForEver) {
  Start(std::chrono::milliseconds(0));
  first_.get_future().wait();
  EXPECT_FALSE(dns_->Ready());
  for (const char* name : {"web.default.svc.cluster.local", "7.0.96.10.in-addr.arpa"}) {
    EXPECT_EQ(Ask(name).rcode, "SERVFAIL") << name;
  }
  corev1::Service web = WithClusterIp("10.96.0.7");
  dns_->OnService("default/web", &web);
  dns_->MarkSynced();
  EXPECT_EQ(AskUntil("web.default.svc.cluster.local", 1).rcode, "NOERROR");
}

TEST_F(ClusterDnsTest, FollowsChanges) {
  dns_->MarkSynced();
  corev1::Service service = WithClusterIp("None");
  dns_->OnService("default/db", &service);
  discoveryv1::EndpointSlice slice;
  slice.mutable_metadata()->set_namespace_("default");
  (*slice.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = "db";
  slice.set_address_type("IPv4");
  for (int i = 1; i <= 20; ++i) {
    slice.add_endpoints()->add_addresses("10.244.0." + std::to_string(i));
    dns_->OnSlice("default/db-1", &slice);
    EXPECT_EQ(AskUntil("db.default.svc.cluster.local", i).answer.size(), static_cast<size_t>(i));
  }
  dns_->OnSlice("default/db-1", nullptr);
  EXPECT_EQ(AskUntil("db.default.svc.cluster.local", 0).rcode, "NXDOMAIN");
}

TEST_F(ClusterDnsTest, KnowsItsOwnService) {
  EXPECT_TRUE(dns_->IsFor(WithClusterIp("127.0.0.1")));
  EXPECT_FALSE(dns_->IsFor(WithClusterIp("10.96.0.10")));
  EXPECT_FALSE(dns_->IsFor(WithClusterIp("None")));
  corev1::Service second = WithClusterIp("fd00::a");
  second.mutable_spec()->add_cluster_ips("127.0.0.1");
  EXPECT_TRUE(dns_->IsFor(second));
}

}  // namespace
}  // namespace keelson::proxy::dns
