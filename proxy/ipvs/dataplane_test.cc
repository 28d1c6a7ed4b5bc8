#include "proxy/ipvs/dataplane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lib/nft/testing/fake.h"
#include "lib/nft/text.h"
#include "proxy/ipvs/testing/fake_kernel.h"

namespace keelson::proxy::ipvs {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

IpAddress Ip(const std::string& text) { return *IpAddress::Parse(text); }

// A kernel of nftables that outlives a dataplane.
class SharedNft : public nft::Kernel {
 public:
  explicit SharedNft(nft::FakeKernel& fake) : fake_(fake) {}
  Result<> Apply(const nft::Transaction& t) override { return fake_.Apply(t); }
  Result<std::optional<nft::Ruleset>> Read(const nft::Table& t) override { return fake_.Read(t); }
  Result<bool> HasChain(const nft::Table& t, const std::string& chain) override {
    return fake_.HasChain(t, chain);
  }
  Result<uint32_t> Generation() override { return fake_.Generation(); }

 private:
  nft::FakeKernel& fake_;
};

class IpvsDataplaneTest : public ::testing::Test {
 protected:
  IpvsDataplaneTest() { Start(); }
  // Like a proxy that comes back.
  void Start(Options options = {}) {
    dataplane_ =
        std::make_unique<Dataplane>(std::make_unique<FakeKernel>(state_), std::make_unique<SharedNft>(nft_),
                                    options, nftables::Options{.table = "t"});
  }
  void Set(const std::string& name, const std::string& ip, const std::vector<std::string>& endpoints,
           uint8_t protocol = kTcp) {
    ResolvedPort port;
    port.service = {.name = name + ":", .protocol = protocol, .cluster_ip = Ip(ip), .port = 80};
    for (const std::string& endpoint : endpoints) port.cluster.push_back({Ip(endpoint), 8080});
    port.has_endpoints = !endpoints.empty();
    dataplane_->SetService(name, {port});
  }
  SyncStats Sync() {
    Result<SyncStats> done = dataplane_->Sync();
    EXPECT_TRUE(done) << done.error().message();
    return done.value_or(SyncStats{});
  }
  netlink::FoundDestination& Destination(const std::string& ip, const std::string& endpoint) {
    return state_.servers.at({kTcp, Ip(ip), 80}).destinations.at({Ip(endpoint), 8080});
  }
  std::string Rules() {
    auto found = nft_.Read({nft::Family::kIpv4, "t"});
    return found && *found ? nft::ToText(**found) : "";
  }

  bool Guarded(const std::string& ip) {
    auto found = nft_.Read({nft::Family::kIpv4, "t"});
    return found && *found &&
           (*found)->sets.at("cluster-ips").elements.contains(nft::Key().Ip(Ip(ip)).bytes());
  }

  FakeState state_;
  nft::FakeKernel nft_;
  std::unique_ptr<Dataplane> dataplane_;
};

TEST_F(IpvsDataplaneTest, WritesDifferencesOnly) {
  Set("a", "10.96.0.1", {"10.1.0.1", "10.1.0.2"});
  Set("none", "10.96.0.2", {});
  EXPECT_TRUE(Sync().full);
  EXPECT_EQ(state_.Text(),
            "TCP 10.96.0.1:80 rr -> 10.1.0.1:8080 10.1.0.2:8080\n"
            "10.96.0.1\n10.96.0.2\n");
  EXPECT_THAT(Rules(), HasSubstr("10.96.0.2 . tcp . 80"));  // refused
  EXPECT_EQ(Sync().operations, 0u);
  int writes = state_.writes;
  Set("a", "10.96.0.1", {"10.1.0.1", "10.1.0.2", "10.1.0.3"});
  EXPECT_EQ(Sync().operations, 1u);
  EXPECT_EQ(state_.writes, writes + 1);

  // A proxy that is killed comes back to the same, and writes nothing.
  writes = state_.writes;
  const int applied = nft_.applied();
  Start();
  Set("a", "10.96.0.1", {"10.1.0.1", "10.1.0.2", "10.1.0.3"});
  Set("none", "10.96.0.2", {});
  EXPECT_EQ(Sync().operations, 0u);
  EXPECT_EQ(state_.writes, writes);
  EXPECT_EQ(nft_.applied(), applied);

  // And one that finds other things puts them right.
  state_.servers.erase({kTcp, Ip("10.96.0.1"), 80});
  state_.servers[{kTcp, Ip("10.96.0.77"), 80}].server = {.address = {kTcp, Ip("10.96.0.77"), 80}};
  state_.bound = {Ip("10.96.0.2"), Ip("10.96.0.77")};
  ASSERT_TRUE(dataplane_->Verify());
  EXPECT_EQ(state_.Text(),
            "TCP 10.96.0.1:80 rr -> 10.1.0.1:8080 10.1.0.2:8080 10.1.0.3:8080\n"
            "10.96.0.1\n10.96.0.2\n");
}

TEST_F(IpvsDataplaneTest, AnotherSchedulerTakesOverWhatIsThere) {
  Set("a", "10.96.0.1", {"10.1.0.1"});
  Sync();
  Start({.scheduler = "mh", .scheduler_flags = netlink::kSchedulerFlag2});
  Set("a", "10.96.0.1", {"10.1.0.1"});
  EXPECT_EQ(Sync().operations, 1u);
  EXPECT_EQ(state_.Text(), "TCP 10.96.0.1:80 mh -> 10.1.0.1:8080\n10.96.0.1\n");
}

TEST_F(IpvsDataplaneTest, TcpEndpointsGoWhenTheirConnectionsHaveEnded) {
  Set("a", "10.96.0.1", {"10.1.0.1", "10.1.0.2"});
  EXPECT_FALSE(Sync().again);
  Destination("10.96.0.1", "10.1.0.2").active = 1;
  Set("a", "10.96.0.1", {"10.1.0.1"});
  EXPECT_TRUE(Sync().again);
  const std::string draining = "TCP 10.96.0.1:80 rr -> 10.1.0.1:8080 10.1.0.2:8080*0\n10.96.0.1\n";
  EXPECT_EQ(state_.Text(), draining);
  EXPECT_TRUE(Sync().again);
  EXPECT_EQ(state_.Text(), draining);

  // Also for a proxy that did not see it leave.
  Start();
  Set("a", "10.96.0.1", {"10.1.0.1"});
  EXPECT_TRUE(Sync().again);
  EXPECT_EQ(state_.Text(), draining);

  // An endpoint that returns is used again.
  Set("a", "10.96.0.1", {"10.1.0.1", "10.1.0.2"});
  EXPECT_FALSE(Sync().again);
  EXPECT_EQ(state_.Text(), "TCP 10.96.0.1:80 rr -> 10.1.0.1:8080 10.1.0.2:8080\n10.96.0.1\n");

  Set("a", "10.96.0.1", {"10.1.0.1"});
  EXPECT_TRUE(Sync().again);
  Destination("10.96.0.1", "10.1.0.2").active = 0;
  EXPECT_FALSE(Sync().again);
  EXPECT_EQ(state_.Text(), "TCP 10.96.0.1:80 rr -> 10.1.0.1:8080\n10.96.0.1\n");
}

TEST_F(IpvsDataplaneTest, AServiceThatGoesKeepsItsAddressUntilItIsDrained) {
  Set("a", "10.96.0.1", {"10.1.0.1"});
  Sync();
  Destination("10.96.0.1", "10.1.0.1").inactive = 1;
  dataplane_->SetService("a", {});
  EXPECT_TRUE(Sync().again);
  EXPECT_EQ(state_.Text(), "TCP 10.96.0.1:80 rr -> 10.1.0.1:8080*0\n10.96.0.1\n");
  EXPECT_TRUE(Guarded("10.96.0.1"));  // nobody else is reached there meanwhile
  Destination("10.96.0.1", "10.1.0.1").inactive = 0;
  EXPECT_FALSE(Sync().again);
  EXPECT_EQ(state_.Text(), "");
  EXPECT_THAT(Rules(), Not(HasSubstr("10.96.0.1")));
}

TEST_F(IpvsDataplaneTest, UdpEndpointsGoAtOnce) {
  Set("dns", "10.96.0.10", {"10.1.0.1", "10.1.0.2"}, kUdp);
  Sync();
  state_.servers.at({kUdp, Ip("10.96.0.10"), 80}).destinations.at({Ip("10.1.0.2"), 8080}).inactive = 7;
  Set("dns", "10.96.0.10", {"10.1.0.1"}, kUdp);
  EXPECT_FALSE(Sync().again);
  EXPECT_EQ(state_.Text(), "UDP 10.96.0.10:80 rr -> 10.1.0.1:8080\n10.96.0.10\n");
}

TEST_F(IpvsDataplaneTest, OthersServersStayWhereTheyAreExcluded) {
  for (const char* ip : {"203.0.113.5", "198.51.100.5"}) {
    state_.servers[{kTcp, Ip(ip), 443}].server = {.address = {kTcp, Ip(ip), 443}};
  }
  Start({.excluded = {*IpPrefix::Parse("203.0.113.0/24")}});
  Sync();
  EXPECT_EQ(state_.Text(), "TCP 203.0.113.5:443 rr\n");
}

TEST_F(IpvsDataplaneTest, NamesTheServiceThatTheKernelRefuses) {
  state_.refused = Ip("10.96.0.2");
  Set("good", "10.96.0.1", {"10.1.0.1"});
  Set("bad", "10.96.0.2", {"10.1.0.1"});
  SyncStats stats = Sync();
  ASSERT_EQ(stats.refusals.size(), 1u);
  EXPECT_EQ(stats.refusals[0].service, "bad");
  EXPECT_EQ(dataplane_->Refused(), 1u);
  EXPECT_THAT(state_.Text(), HasSubstr("10.96.0.1:80"));
  EXPECT_TRUE(Sync().refusals.empty());  // it is tried again when asked to
  state_.refused.reset();
  dataplane_->OnPeriod();
  EXPECT_TRUE(Sync().refusals.empty());
  EXPECT_EQ(dataplane_->Refused(), 0u);
  EXPECT_THAT(state_.Text(), HasSubstr("10.96.0.2:80"));
}

// Nobody tells of them: they are found once a period, by one reading.
TEST_F(IpvsDataplaneTest, ChangesByOthersAreRepairedOnceAPeriod) {
  Set("a", "10.96.0.1", {"10.1.0.1", "10.1.0.2"});
  Set("b", "10.96.0.2", {"10.1.0.1"});
  Sync();
  Destination("10.96.0.1", "10.1.0.2").active = 1;
  Set("a", "10.96.0.1", {"10.1.0.1"});  // one that drains is no change by others
  Sync();
  const std::string good = state_.Text();
  auto period = [&] {
    dataplane_->OnPeriod();
    return Sync();
  };
  EXPECT_FALSE(period().full);
  auto& server = state_.servers.at({kTcp, Ip("10.96.0.2"), 80});
  const std::pair<const char*, std::function<void()>> changes[] = {
      {"all servers",
       [&] {
         state_.servers.erase({kTcp, Ip("10.96.0.2"), 80});
       }},
      {"an address", [&] { state_.bound.erase(Ip("10.96.0.2")); }},
      {"an address more", [&] { state_.bound.insert(Ip("10.96.0.9")); }},
      {"a weight", [&] { server.destinations.begin()->second.destination.weight = 0; }},
      {"a way of forwarding", [&] { server.destinations.begin()->second.translates = false; }},
      {"a scheduler", [&] { server.server.scheduler = "wlc"; }},
      {"affinity", [&] { server.server.affinity = std::chrono::seconds(5); }},
      {"a destination", [&] { server.destinations.clear(); }},
      {"a server more",
       [&] {
         state_.servers[{kTcp, Ip("10.96.0.7"), 80}].server.address = {kTcp, Ip("10.96.0.7"), 80};
       }},
  };
  for (const auto& [what, change] : changes) {
    if (std::string(what) == "all servers") continue;  // last: `server` is one of them
    change();
    EXPECT_EQ(Sync().operations, 0u) << what << ": nobody has told";
    EXPECT_TRUE(period().full) << what;
    EXPECT_EQ(state_.Text(), good) << what;
    EXPECT_FALSE(period().full) << what;
  }
  changes[0].second();
  EXPECT_TRUE(period().full);
  EXPECT_EQ(state_.Text(), good);
}

TEST_F(IpvsDataplaneTest, RetiresWhenTheLastConnectionHasEnded) {
  Set("web", "10.96.0.1", {"10.1.0.1", "10.1.0.2"});
  Set("dns", "10.96.0.10", {"10.1.0.3"}, kUdp);
  Sync();
  Destination("10.96.0.1", "10.1.0.2").active = 1;
  for (bool restarted : {false, true}) {
    if (restarted) Start();
    auto left = dataplane_->Retire();
    ASSERT_TRUE(left) << left.error().message();
    EXPECT_TRUE(left->has_value());
    EXPECT_EQ(state_.Text(), "TCP 10.96.0.1:80 rr -> 10.1.0.2:8080*0\n10.96.0.1\n");
    EXPECT_TRUE(Guarded("10.96.0.1"));
    EXPECT_FALSE(Guarded("10.96.0.10"));
  }
  EXPECT_EQ(state_.forgotten, (std::set<ServerAddress>{{kUdp, Ip("10.96.0.10"), 80}}));
  Destination("10.96.0.1", "10.1.0.2").active = 0;
  state_.connected_from = {Ip("10.96.0.1"), Ip("10.1.0.9")};  // this node itself has asked there since
  auto left = dataplane_->Retire();
  ASSERT_TRUE(left) << left.error().message();
  EXPECT_TRUE(left->has_value());
  EXPECT_EQ(state_.Text(), "10.96.0.1\n");
  EXPECT_TRUE(Guarded("10.96.0.1"));
  state_.connected_from = {Ip("10.1.0.9")};
  left = dataplane_->Retire();
  ASSERT_TRUE(left) << left.error().message();
  EXPECT_FALSE(left->has_value());
  EXPECT_EQ(state_.Text(), "");
  EXPECT_FALSE(state_.device);
  EXPECT_EQ(Rules(), "");
}

}  // namespace
}  // namespace keelson::proxy::ipvs
