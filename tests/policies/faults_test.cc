// Bad input, and much of it: what is shut stays shut.
#include "lib/dataplane/policy_sets.h"
#include "tests/policies/policy_objects.h"
#include "tests/policies/probes.h"
#include "tests/policies/shut_test.h"

namespace keelson::policies {
namespace {

const agent::PolicySyncerOptions kQuick{.nft_poll = std::chrono::milliseconds(20)};

class PolicyFaults : public ShutTest {
 protected:
  // What is not as it should be of connections to a port of x/a.
  std::vector<std::string> Check(const std::string& from, uint16_t port, bool open, uint8_t protocol = 6) {
    auto services = Services::Start(*world_, {.mode = "none"});
    if (!services) return {services.error().message()};
    std::vector<Probe> probes;
    (*services)->AddWays(*world_, {.from = from, .to = "x/a", .open = open}, protocol, port, probes);
    return (*services)->Send(*world_, probes);
  }
  using Nothing = std::vector<std::string>;

  bool IsReady(const std::string& uid, const IpAddress& address) {
    auto found = node().Found();
    if (!found || !*found) return false;
    const policy::Attachments attached = policy::AttachmentsOf(**found);
    auto there = attached.find(address);
    return there != attached.end() && there->second.uid == uid &&
           (*found)->sets.at("ready4").elements.contains(nft::Key().Ip(address).bytes());
  }
};

// Another program opens and closes ways. The agent sees it by itself, and puts all right.
TEST_F(PolicyFaults, TablesThatWereTamperedWithAreRepaired) {
  Put("x/allow", kAllowZ);
  Sync();
  const IpAddress a = world_->Address("x/a", true), b = world_->Address("x/b", true);
  const std::string chain = [&] {
    auto found = node().Found();
    for (const auto& [name, contents] : (*found)->chains) {
      if (name.starts_with("ingress4-")) return name;
    }
    return std::string();
  }();
  ASSERT_NE(chain, "");
  std::string peers;
  nft::Set peer_set;
  auto found = node().Found();
  for (const auto& [name, contents] : (*found)->sets) {
    if (contents.elements.contains(nft::Key().Ip(world_->Address("z/a", true)).bytes()) &&
        name.find("ready") == std::string::npos && name.find("attached") == std::string::npos) {
      peer_set = contents.set;
    }
  }
  ASSERT_NE(peer_set.name, "");
  const nft::Set ingress{.name = "ingress4", .key = {nft::Type::kIpv4Addr}, .verdicts = true};
  auto element = [](const IpAddress& address) { return nft::Element{.key = nft::Key().Ip(address).bytes()}; };
  nft::Element verdict = element(a);
  verdict.verdict = nft::Jump(chain);
  const std::vector<std::pair<const char*, std::function<void(nft::Transaction&)>>> tamperings = {
      {"the chain of all packets is empty", [](auto& t) { t.FlushChain("packets4"); }},
      {"a pod's chain is empty", [&](auto& t) { t.FlushChain(chain); }},
      {"a pod is not isolated", [&](auto& t) { t.DeleteElements(ingress, {verdict}); }},
      {"a set has one peer more", [&](auto& t) { t.AddElements(peer_set, {element(b)}); }},
      {"an address without a pod is ready",
       [&](auto& t) {
         t.AddElements(dataplane::ReadyPods(true), {element(*IpAddress::Parse("10.1.0.77"))});
       }},
      {"a pod is not ready", [&](auto& t) { t.DeleteElements(dataplane::ReadyPods(true), {element(a)}); }},
      {"there is a chain more", [](auto& t) { t.AddChain({"strange"}); }},
      {"the hooks are empty", [](auto& t) { t.FlushChain("forward"); }},
      {"the table is gone", [](auto& t) { t.DeleteTable(); }}};
  for (const auto& [what, tamper] : tamperings) {
    SCOPED_TRACE(what);
    nft::Transaction t(dataplane::PolicyTable());
    tamper(t);
    auto tampered = node().Tamper(t);
    ASSERT_TRUE(tampered) << tampered.error().message();
    EXPECT_NE(node().Difference(), "");
    node().Start(kQuick);
    EXPECT_TRUE(Eventually([&] { return node().Difference().empty(); })) << node().Difference();
    node().Stop();
    EXPECT_EQ(Check("x/b", 80, false), Nothing());
    EXPECT_EQ(Check("z/a", 80, true), Nothing());
  }
}

TEST_F(PolicyFaults, AThousandPorts) {
  std::string ports = R"({"port":81},{"protocol":"UDP","port":80})";
  for (int port = 1001; port < 2999; port += 2) {
    ports += R"(,{"protocol":")" + std::string(port % 4 == 1 ? "UDP" : "TCP") + R"(","port":)" +
             std::to_string(port) + "}";
  }
  Put("x/ports", R"({"podSelector":{"matchLabels":{"pod":"a"}},"ingress":[{"ports":[)" + ports + "]}]}");
  Sync();
  EXPECT_EQ(node().Difference(), "");
  auto found = node().Found();
  size_t most = 0;
  for (const auto& [name, contents] : (*found)->sets) most = std::max(most, contents.elements.size());
  EXPECT_EQ(most, 1001u) << "one set has them all";
  EXPECT_EQ(Check("y/b", 81, true), Nothing());
  EXPECT_EQ(Check("y/b", 80, false), Nothing());
  EXPECT_EQ(Check("y/b", 80, true, 17), Nothing());
  EXPECT_EQ(Check("y/b", 81, false, 17), Nothing());
}

TEST_F(PolicyFaults, ASelectorOfTenThousandPods) {
  Shut();
  Put("x/crowd", R"({"podSelector":{"matchLabels":{"pod":"a"}},"ingress":[{"from":[
      {"namespaceSelector":{},"podSelector":{"matchLabels":{"crowd":"yes"}}}]}]})");
  Sync();
  constexpr int kCount = 10'000;
  auto key = [](int i) { return "y/crowd-" + std::to_string(i); };
  for (int i = 0; i < kCount; ++i) {
    node().Put(MakePod(key(i), "far", {{"crowd", "yes"}}, {IpAddress::Parse("10.9.0.0")->Plus(i + 1)}));
  }
  world_->LabelPod("y/a", {{"crowd", "yes"}});
  Sync();
  EXPECT_EQ(node().Difference(), "");
  EXPECT_EQ(Check("y/a", 80, true), Nothing());
  EXPECT_EQ(Check("z/a", 80, false), Nothing());
  // Half of them go in one event each, the others leave the selector, all at once.
  for (int i = 0; i < kCount; i += 2) node().ErasePod(key(i));
  Sync();
  EXPECT_EQ(node().Difference(), "");
  for (int i = 1; i < kCount; i += 2) {
    node().Put(MakePod(key(i), "far", {}, {IpAddress::Parse("10.9.0.0")->Plus(i + 1)}));
  }
  world_->LabelPod("y/a", {});
  Sync();
  EXPECT_EQ(node().Difference(), "");
  EXPECT_EQ(Check("y/a", 80, false), Nothing());
  NothingArrived();
}

// Faster than a hundred a second: as fast as they can be given to the agent, which syncs beside.
TEST_F(PolicyFaults, FlappingPolicies) {
  Shut();
  node().Start(kQuick);
  world_->node(2).Start(kQuick);
  for (int i = 0; i < 300; ++i) {
    Put("x/allow", kAllowZ);
    // Another one isolates x/a meanwhile.
    if (i % 2 == 0) {
      Put("x/instead", kDenyA);
      world_->DeletePolicy("x/deny");
    } else {
      Put("x/deny", kDenyA);
      world_->DeletePolicy("x/instead");
    }
    if (i % 3 == 0) world_->DeletePolicy("x/allow");
    shut_.front()->AwaitSent(2);
  }
  Put("x/allow", kAllowZ);
  EXPECT_TRUE(Eventually([&] { return node().Difference().empty(); })) << node().Difference();
  EXPECT_EQ(Check("z/a", 80, true), Nothing());
  EXPECT_EQ(Check("x/b", 80, false), Nothing());
  NothingArrived();
}

// Two pods take turns at one address. x/b may talk to x/a, the other one never; the API shows late that a pod has gone.
TEST_F(PolicyFaults, AnAddressChangesHands) {
  Put("x/allow-b", R"({"podSelector":{"matchLabels":{"pod":"a"}},"ingress":[{"from":[
      {"podSelector":{"matchLabels":{"pod":"b"}}}]}]})");
  Sync();
  node().Start(kQuick);
  node().Put(MakePod("x/other", "node1", {}, {}));
  const IpAddress address = world_->Address("x/b", true);
  const std::vector<IpAddress> addresses = {address, world_->Address("x/b", false)};
  std::vector<std::unique_ptr<Stream>> streams;
  for (bool v4 : {true, false}) streams.push_back(From("x/b", "x/a", v4));
  constexpr uint8_t kOthers = 1, kBetween = 2;
  for (int i = 0; i < 20; ++i) {
    // The first round finds x/b attached as the world has done it.
    for (const auto& stream : streams) {
      const uint64_t before = stream->Arrived();
      stream->Mark(0);
      EXPECT_TRUE(Eventually([&] { return stream->Arrived() > before; }));
    }
    // Every other time without DEL. After DEL, x/b is what the API says that it is: a pod that runs.
    if (i % 2 == 0) {
      ASSERT_TRUE(node().Detach("pod2"));
    }
    ASSERT_TRUE(node().Attach("pod2", "uid-x/other", addresses));
    for (const auto& stream : streams) stream->Mark(kOthers);
    EXPECT_TRUE(Eventually([&] { return IsReady("uid-x/other", address); }));
    for (const auto& stream : streams) stream->AwaitSent(20);
    for (const auto& stream : streams) stream->Mark(kBetween);
    for (const auto& stream : streams) stream->AwaitSent(2);
    ASSERT_TRUE(node().Attach("pod2", "uid-x/b", addresses));
    EXPECT_TRUE(Eventually([&] { return IsReady("uid-x/b", address); }));
  }
  for (const auto& stream : streams) EXPECT_EQ(stream->Arrived(kOthers), 0u);
}

// The same on another node, which has tracked the connection of the pod that was there.
TEST_F(PolicyFaults, AnAddressOfAnotherNodeChangesHands) {
  Put("x/allow-y-b", R"({"podSelector":{"matchLabels":{"pod":"a"}},"ingress":[{"from":[
      {"namespaceSelector":{},"podSelector":{"matchLabels":{"pod":"b"}}}]}]})");
  Sync();
  std::vector<std::unique_ptr<Stream>> streams;
  for (bool v4 : {true, false}) streams.push_back(From("y/b", "x/a", v4));
  for (const auto& stream : streams) EXPECT_TRUE(Eventually([&] { return stream->Arrived() > 3; }));
  const corev1::Pod other =
      MakePod("y/other", "node2", {}, {world_->Address("y/b", true), world_->Address("y/b", false)});
  for (int number : {1, 2}) {
    world_->node(number).ErasePod("y/b");
    world_->node(number).Put(other);
  }
  ASSERT_TRUE(world_->node(2).Attach("pod2", "uid-y/other",
                                     {world_->Address("y/b", true), world_->Address("y/b", false)}));
  Sync();
  for (const auto& stream : streams) {
    stream->Mark(1);
    stream->AwaitSent(20);
  }
  for (const auto& stream : streams) EXPECT_EQ(stream->Arrived(1), 0u);
}

}  // namespace
}  // namespace keelson::policies
