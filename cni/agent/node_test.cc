#include "cni/agent/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "cni/agent/health.h"
#include "cni/agent/node_watch.h"
#include "lib/api/codec/codec.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::cni::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

corev1::Node Object(const std::string& name, std::vector<std::string> cidrs, std::vector<std::string> ips) {
  corev1::Node node;
  node.mutable_metadata()->set_name(name);
  if (!cidrs.empty()) node.mutable_spec()->set_pod_cidr(cidrs[0]);
  for (const std::string& cidr : cidrs) node.mutable_spec()->add_pod_cidrs(cidr);
  for (const std::string& ip : ips) {
    auto* address = node.mutable_status()->add_addresses();
    address->set_type("InternalIP");
    address->set_address(ip);
  }
  return node;
}

TEST(ParseNode, TakesWhatItNeeds) {
  corev1::Node node = Object("n1", {"10.244.1.9/24", "fd44:1::/64"}, {"10.0.0.1"});
  node.mutable_metadata()->set_resource_version("17");
  (*node.mutable_metadata()->mutable_annotations())["other"] = "x";
  (*node.mutable_metadata()->mutable_annotations())[kWireguardKeyAnnotation] = "abc=";
  (*node.mutable_metadata()->mutable_labels())["zone"] = "z1";
  for (auto [type, address] : {std::pair("Hostname", "n1"), {"ExternalIP", "198.51.100.1"}}) {
    auto* more = node.mutable_status()->add_addresses();
    more->set_type(type);
    more->set_address(address);
  }
  ParsedNode parsed = *ParseNode(api::EncodeRaw(node));
  EXPECT_EQ(parsed.resource_version, "17");
  EXPECT_EQ(parsed.info.name, "n1");
  EXPECT_EQ(parsed.info.wireguard_key, "abc=");
  ASSERT_EQ(parsed.info.pod_cidrs.size(), 2u);
  EXPECT_EQ(parsed.info.pod_cidrs[0].ToString(), "10.244.1.0/24");
  ASSERT_EQ(parsed.info.addresses.size(), 1u);
  EXPECT_EQ(parsed.info.AddressOf(false), nullptr);
  const policy::ClusterNodes peers = PolicyPeers({{"n1", parsed.info}});
  EXPECT_EQ(peers.at("n1").labels, (policy::Labels{{"zone", "z1"}}));
  EXPECT_THAT(peers.at("n1").addresses,
              ElementsAre(*IpAddress::Parse("10.0.0.1"), *IpAddress::Parse("198.51.100.1")));
  EXPECT_THAT(parsed.info.ignored, ElementsAre());
}

TEST(ParseNode, OldServersHaveOnePodCidr) {
  corev1::Node node;
  node.mutable_metadata()->set_name("n1");
  node.mutable_spec()->set_pod_cidr("10.244.1.0/24");
  EXPECT_EQ(ParseNode(api::EncodeRaw(node))->info.pod_cidrs.size(), 1u);
}

TEST(ParseNode, NamesWhatItCannotRead) {
  ParsedNode parsed =
      *ParseNode(api::EncodeRaw(Object("n1", {"10.244.1.0", "x"}, {"localhost", "10.0.0.1"})));
  EXPECT_THAT(parsed.info.ignored,
              ElementsAre(HasSubstr("podCIDR \"10.244.1.0\""), HasSubstr("podCIDR \"x\""),
                          HasSubstr("InternalIP \"localhost\"")));
  EXPECT_EQ(parsed.info.addresses.size(), 1u);
  EXPECT_FALSE(ParseNode("\x0a\x05xy"));
}

class NodeWatchTest : public ::testing::Test {
 protected:
  NodeWatchTest()
      : api_(std::make_shared<client::FakeApi>()), watch_(NodeSource(api_), [this] { ++changes_; }) {}
  void Start() {
    thread_ = std::jthread([this](std::stop_token stop) { (void)watch_.Run(stop); });
    api_->AwaitIdle(1);
  }
  std::vector<std::string> Names() {
    std::vector<std::string> out;
    auto nodes = watch_.Nodes();
    for (const auto& [name, node] : *nodes) out.push_back(name);
    return out;
  }
  std::shared_ptr<client::FakeApi> api_;
  std::atomic<int> changes_{0};
  NodeWatch watch_;
  std::jthread thread_;
};

TEST_F(NodeWatchTest, FollowsAndTellsOnlyWhatMatters) {
  EXPECT_EQ(watch_.Nodes(), nullptr);
  for (int i = 0; i < 250; ++i) api_->Put(Object("n" + std::to_string(i), {}, {}));
  Start();
  EXPECT_EQ(watch_.Nodes()->size(), 250u);
  EXPECT_EQ(changes_, 1);
  auto before = watch_.Nodes();
  EXPECT_EQ(watch_.Nodes(), before);

  corev1::Node node = Object("n7", {"10.244.7.0/24"}, {"10.0.0.7"});
  api_->Put(node);
  api_->AwaitIdle(1);
  EXPECT_EQ(changes_, 2);
  EXPECT_EQ(watch_.Nodes()->at("n7").pod_cidrs.size(), 1u);
  EXPECT_TRUE(before->at("n7").pod_cidrs.empty());
  // A heartbeat.
  node.mutable_status()->set_phase("Running");
  api_->Put(node);
  api_->AwaitIdle(1);
  EXPECT_EQ(changes_, 2);
  ASSERT_TRUE(client::RestClient(api_).Delete<corev1::Node>("", "n7"));
  api_->AwaitIdle(1);
  EXPECT_EQ(changes_, 3);
  EXPECT_FALSE(watch_.Nodes()->contains("n7"));
}

TEST_F(NodeWatchTest, GoesOnAfterTheStreamAndListsAgainWhenTooOld) {
  api_->Put(Object("n1", {}, {}));
  Start();
  api_->SendBookmarks();
  api_->AwaitIdle(1);
  api_->EndWatches();
  api_->Put(Object("n2", {}, {}));
  api_->AwaitIdle(1);
  EXPECT_THAT(Names(), ElementsAre("n1", "n2"));
  // Changes that the watch misses are found by a new list.
  ASSERT_TRUE(client::RestClient(api_).Delete<corev1::Node>("", "n1"));
  api_->AwaitIdle(1);
  api_->Put(Object("n3", {}, {}));
  api_->Compact();
  api_->EndWatches();
  api_->AwaitIdle(1);
  EXPECT_THAT(Names(), ElementsAre("n2", "n3"));
}

TEST(NodeSource, AnnotatesAndNamesRefusals) {
  auto api = std::make_shared<client::FakeApi>();
  api->Put(Object("n1", {}, {}));
  NodeSource source(api);
  ASSERT_TRUE(source.Annotate("n1", kWireguardKeyAnnotation, "a\"b/c+="));
  auto stored = client::RestClient(api).Get<corev1::Node>("", "n1");
  EXPECT_EQ(stored->metadata().annotations().at(kWireguardKeyAnnotation), "a\"b/c+=");
  EXPECT_EQ(source.Annotate("n2", "k", "v").error().code(), Code::kNotFound);
  api->SetInterceptor([](const client::ApiRequest&) -> std::optional<Result<client::ApiResponse>> {
    return client::FakeApi::Refuse(Error(Code::kForbidden, "not you"));
  });
  auto refused = source.List([](std::string_view) -> Result<> { return {}; }, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kForbidden);
  EXPECT_EQ(refused.error().message(), "not you");
}

TEST(Health, ComplainsUntilSyncedAndAfterFailuresAndSilence) {
  FakeClock clock;
  Health health(std::chrono::seconds(180), clock);
  EXPECT_THAT(health.Complaint(), HasSubstr("no sync yet"));
  health.Synced();
  EXPECT_EQ(health.Complaint(), "");
  health.Failed(Error(Code::kInternal, "broken"));
  EXPECT_EQ(health.Complaint(), "broken");
  health.Synced();
  clock.Advance(std::chrono::seconds(181));
  EXPECT_THAT(health.Complaint(), HasSubstr("181 s ago"));
}

TEST(Health, IsAliveWhileSyncsEndWhateverTheirResult) {
  FakeClock clock;
  Health health(std::chrono::seconds(180), clock);
  clock.Advance(std::chrono::hours(1));  // without an API server there is nothing to sync
  EXPECT_TRUE(health.Alive());
  health.Failed(Error(Code::kInternal, "broken"));
  clock.Advance(std::chrono::seconds(180));
  EXPECT_TRUE(health.Alive());
  clock.Advance(std::chrono::seconds(1));
  auto alive = health.Alive();
  ASSERT_FALSE(alive);
  EXPECT_EQ(alive.error().message(), "no sync has ended for 181 s");
  health.Synced();
  EXPECT_TRUE(health.Alive());
}

}  // namespace
}  // namespace keelson::cni::agent
