// The cluster's DNS and the kernel's sets, in a network namespace: what a client's answer finds there.
#include "proxy/dns/address_writer.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "lib/api/types.h"
#include "lib/base/socket_address.h"
#include "lib/dataplane/domain_sets.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/linux/netns.h"
#include "lib/netlink/link.h"
#include "proxy/dns/testing/answer_delivery.h"
#include "proxy/dns/testing/messages.h"
#include "proxy/dns/udp_server.h"

namespace keelson::proxy::dns {
namespace {

constexpr char kName[] = "db.default.svc.cluster.local";
constexpr char kPattern[] = "*.default.svc.cluster.local";
constexpr uint32_t kTtl = 3600;

class AddressWriterNetnsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<linux::NetNs> netns = linux::NetNs::Make();
    if (!netns) GTEST_SKIP() << netns.error().message();
    netns_ = std::move(*netns);
    kernel_ = *nft::OpenKernel(*netns_);
    nft::Transaction t(dataplane::PolicyTable());
    t.AddTable();
    t.AddSet(dataplane::DomainAddresses(kPattern, true));
    t.AddSet(dataplane::DomainAddresses(kName, true));
    ASSERT_TRUE(kernel_->Apply(t));
    Start();
  }
  void TearDown() override {
    if (running_) running_->Stop();
    server_thread_ = {};
  }
  // A DNS with a headless Service of two endpoints.
  void Start() {
    server_thread_ = {};
    Zone zone = *Zone::Create({.ttl = kTtl});
    corev1::Service service;
    service.mutable_spec()->set_cluster_ip("None");
    zone.UpdateService("default/db", &service);
    discoveryv1::EndpointSlice slice;
    slice.mutable_metadata()->set_namespace_("default");
    (*slice.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = "db";
    slice.set_address_type("IPv4");
    for (const char* address : {"192.0.2.1", "192.0.2.2"}) slice.add_endpoints()->add_addresses(address);
    zone.UpdateSlice("default/db-1", &slice);
    ASSERT_TRUE(netns_->Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
      KEELSON_ASSIGN_OR_RETURN(netlink::Link loopback, netlink::GetLink(socket, "lo"));
      KEELSON_RETURN_IF_ERROR(netlink::SetUp(socket, loopback.index));
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<AddressWriter> writer, AddressWriter::Open(Clock::Real()));
      running_ = std::make_unique<RunningWriter>(std::move(writer));
      responder_ = std::make_unique<Responder>(nullptr, Clock::Real(), &running_->writer());
      KEELSON_ASSIGN_OR_RETURN(server_,
                               UdpServer::Create({{*IpAddress::Parse("127.0.0.1"), 0}}, *responder_));
      return {};
    }));
    responder_->SetZone(zone.Commit());
    server_thread_ = std::jthread([this](std::stop_token stop) { EXPECT_TRUE(server_->Run(stop)); });
  }
  void Ask() {
    ASSERT_TRUE(netns_->Run([&]() -> Result<> {
      UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      SocketAddress address(*IpAddress::Parse("127.0.0.1"), server_->ports()[0]);
      timeval limit{30, 0};
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      const std::string query = QueryPacket(kName, kTypeA);
      char answer[kMaxUdpSize];
      if (::connect(fd.get(), address.get(), address.size()) != 0 ||
          ::send(fd.get(), query.data(), query.size(), 0) < 0 ||
          ::recv(fd.get(), answer, sizeof answer, 0) <= 0) {
        return ErrnoError("ask");
      }
      return {};
    }));
  }
  // What is left of each address's time.
  std::map<std::string, std::chrono::milliseconds> In(const char* pattern) {
    std::map<std::string, std::chrono::milliseconds> out;
    std::optional<nft::Ruleset> found = *kernel_->Read(dataplane::PolicyTable());
    for (const auto& [key, element] :
         found->sets.at(dataplane::DomainAddresses(pattern, true).name).elements) {
      out[IpAddress::FromBytes(key).ToString()] = element.lifetime;
    }
    return out;
  }

  std::optional<linux::NetNs> netns_;
  std::unique_ptr<nft::Kernel> kernel_;
  std::unique_ptr<RunningWriter> running_;
  std::unique_ptr<Responder> responder_;
  std::unique_ptr<UdpServer> server_;
  std::jthread server_thread_;
};

TEST_F(AddressWriterNetnsTest, WhoHasTheAnswerFindsItsAddressesInTheSets) {
  EXPECT_TRUE(In(kPattern).empty());
  Ask();
  for (const char* pattern : {kPattern, kName}) {
    const auto found = In(pattern);
    ASSERT_EQ(found.size(), 2u);
    for (const auto& [address, left] : found) {
      EXPECT_GT(left.count(), 0) << address;
      EXPECT_LE(left, std::chrono::seconds(kTtl) + AddressWriter::kGrace) << address;
    }
  }
}

// The kernel's element is renewed by whoever knows from the kernel alone that it is there.
TEST_F(AddressWriterNetnsTest, AnotherProxyRenewsWhatOneHasLeft) {
  const nft::Set set = dataplane::DomainAddresses(kName, true);
  nft::Element old{.key = nft::Key().Ip(*IpAddress::Parse("192.0.2.1")).bytes()};
  old.lifetime = std::chrono::minutes(10);
  nft::Transaction t(dataplane::PolicyTable());
  t.AddElements(set, {old});
  ASSERT_TRUE(kernel_->Apply(t));
  Ask();
  EXPECT_EQ(In(kName).size(), 2u);
  EXPECT_GT(In(kName)["192.0.2.1"], old.lifetime);
  TearDown();
  EXPECT_EQ(In(kName).size(), 2u) << "a proxy that ends takes nothing along";
  Start();
  Ask();
  EXPECT_EQ(In(kName).size(), 2u);
}

}  // namespace
}  // namespace keelson::proxy::dns
