// The agent's policies in a node's network namespace, pods that the real plugins connect, and packets between
// them; with br_netfilter switched on and off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "cni/agent/policy/services.h"
#include "cni/lib/testing/plugin_fixture.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/types.h"
#include "lib/client/testing/fake_api.h"
#include "lib/dataplane/domain_sets.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/linux/sysctl.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/route.h"

namespace keelson::cni::agent {
namespace {

namespace networkingv1 = api::networking::v1;

using ::testing::HasSubstr;

constexpr int kSoon = 250;  // milliseconds: a packet that is dropped gets no answer within them

// The services of an agent, in a namespace of a node.
class RunningPolicies {
 public:
  RunningPolicies(const linux::NetNs& host, const std::shared_ptr<client::Transport>& api) {
    policy::Node node{"n1", {*IpPrefix::Parse("10.7.0.0/24"), *IpPrefix::Parse("fd07::/64")}};
    PolicyServices::Agent agent{.node = [node]() -> Result<policy::Node> { return node; },
                                .on_sync =
                                    [this](const Result<>& result) {
                                      MutexLock lock(mutex_);
                                      ++syncs_;
                                      if (!result) last_error_ = result.error().message();
                                      synced_.notify_all();
                                    }};
    PolicySyncerOptions options{.nft_poll = std::chrono::milliseconds(20),
                                .min_interval = std::chrono::milliseconds(1)};
    Result<> started = host.Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(services_, PolicyServices::Open("br0", api, std::move(agent), options));
      services_->NodesChanged({{"n1", {{{"zone", "z1"}}, {*IpAddress::Parse("192.0.2.1")}}},
                               {"n2", {{{"zone", "z2"}}, {*IpAddress::Parse("192.0.2.2")}}}});
      services_->AddTo(group_);
      thread_ = std::jthread([this](std::stop_token stop) { (void)group_.Run(stop); });
      return {};
    });
    EXPECT_TRUE(started) << started.error().message();
  }

  // Blocks until `condition` holds; checks it after every sync, and gives up after a minute without one.
  bool Await(const std::function<bool()>& condition) {
    for (int i = 0; i < 100; ++i) {
      uint64_t before = Syncs();
      if (condition()) return true;
      MutexLock lock(mutex_);
      while (syncs_ == before) {
        if (synced_.wait_for(mutex_, std::chrono::minutes(1)) == std::cv_status::timeout) return false;
      }
    }
    MutexLock lock(mutex_);
    ADD_FAILURE() << last_error_;
    return false;
  }

 private:
  uint64_t Syncs() {
    MutexLock lock(mutex_);
    return syncs_;
  }
  Mutex mutex_;
  CondVar synced_;
  uint64_t syncs_ KEELSON_GUARDED_BY(mutex_) = 0;
  std::string last_error_ KEELSON_GUARDED_BY(mutex_);
  std::unique_ptr<PolicyServices> services_;
  ServiceGroup group_;
  std::jthread thread_;
};

class PolicyNetnsTest : public PluginFixture, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    PluginFixture::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(host_->Run([&]() -> Result<> {
      for (const char* key : {"net/bridge/bridge-nf-call-iptables", "net/bridge/bridge-nf-call-ip6tables"}) {
        if (!linux::ReadSysctl(key)) continue;  // no br_netfilter: as if it were off
        KEELSON_RETURN_IF_ERROR(linux::WriteSysctl(key, GetParam() ? "1" : "0"));
      }
      return {};
    }));
    corev1::Namespace ns;
    ns.mutable_metadata()->set_name("x");
    (*ns.mutable_metadata()->mutable_labels())["team"] = "blue";
    api_->Put(ns);
    Start();
  }
  void TearDown() override {
    agent_.reset();
    PluginFixture::TearDown();
  }
  void Start() {
    agent_ = std::make_unique<RunningPolicies>(*host_, api_);
    ASSERT_TRUE(agent_->Await([&] { return Table(nft::Family::kInet, "keelson-policy").has_value(); }));
  }

  // A list of ClusterNetworkPolicies, as an API server with their definition gives it.
  void ServeClusterPolicies(const std::string& list) {
    api_->SetInterceptor(
        [list](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
          if (request.target.find("/apis/policy.networking.k8s.io") != 0) return std::nullopt;
          const bool objects = request.target.find("clusternetworkpolicies") != std::string::npos;
          return client::ApiResponse{
              .status = 200,
              .content_type = "application/json",
              .body = objects ? list : R"({"resources":[{"name":"clusternetworkpolicies"}]})"};
        });
  }

  corev1::Pod PutPod(const std::string& name, const std::string& app) {
    corev1::Pod pod;
    pod.mutable_metadata()->set_name(name);
    pod.mutable_metadata()->set_namespace_("x");
    pod.mutable_metadata()->set_uid("uid-" + name);
    (*pod.mutable_metadata()->mutable_labels())["app"] = app;
    pod.mutable_spec()->set_node_name("n1");
    auto* port = pod.mutable_spec()->add_containers()->add_ports();
    port->set_name("web");
    port->set_container_port(80);
    return api_->Put(pod);
  }
  // Isolates pods of `app` for ingress; without rules nothing may come in.
  static networkingv1::NetworkPolicy Isolate(const std::string& app) {
    networkingv1::NetworkPolicy policy;
    policy.mutable_metadata()->set_name("isolate-" + app);
    policy.mutable_metadata()->set_namespace_("x");
    (*policy.mutable_spec()->mutable_pod_selector()->mutable_match_labels())["app"] = app;
    policy.mutable_spec()->add_policy_types("Ingress");
    return policy;
  }
  static networkingv1::NetworkPolicyPort* AddPort(networkingv1::NetworkPolicyIngressRule& rule, int number) {
    auto* port = rule.add_ports();
    port->mutable_port()->set_type(0);
    port->mutable_port()->set_int_val(number);
    return port;
  }

  std::string PolicyConfig(int timeout = 10'000) const {
    return R"({"cniVersion":"1.1.0","name":"net","type":"keelson-policy","timeoutMilliseconds":)" +
           std::to_string(timeout) + "}";
  }
  std::string BridgeConfig() const { return Bridge(R"("isDefaultGateway":true,"hairpinMode":true,)"); }
  static std::vector<std::string> Args(const std::string& name) {
    return {"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=x;K8S_POD_NAME=" + name + ";K8S_POD_UID=uid-" + name};
  }
  // ADD of the chain; the policy plugin's reply.
  Reply TryAdd(const Container& c, const std::string& name, int timeout = 10'000) {
    std::string joined = Join(c, R"("isDefaultGateway":true,"hairpinMode":true,)");
    results_[name] = joined;
    return Call("keelson-policy", "ADD", c, WithPrevious(PolicyConfig(timeout), joined), Args(name));
  }
  void Add(const Container& c, const std::string& name) {
    Reply reply = TryAdd(c, name);
    ASSERT_EQ(reply.exit_code, 0) << reply.output;
    reply = Call("keelson-policy", "CHECK", c, WithPrevious(PolicyConfig(), results_[name]), Args(name));
    EXPECT_EQ(reply.exit_code, 0) << reply.output;
  }
  void Delete(const Container& c, const std::string& name) {
    for (int twice = 0; twice < 2; ++twice) {
      Reply reply = Call("keelson-policy", "DEL", c, PolicyConfig(), Args(name));
      EXPECT_EQ(reply.exit_code, 0) << reply.output;
    }
    EXPECT_EQ(Call("bridge", "DEL", c, BridgeConfig()).exit_code, 0);
  }

  // For what is expected to be closed.
  bool Reaches(const linux::NetNs& from, const std::string& to, uint16_t port, int type = SOCK_STREAM) {
    return !Ask(from, type, to, port, kSoon).empty();
  }
  // For what is expected to be open. A bridge that is new finds IPv6 neighbours after two seconds.
  bool Opens(const linux::NetNs& from, const std::string& to, uint16_t port, int type = SOCK_STREAM) {
    return !Ask(from, type, to, port, 10'000).empty();
  }
  bool Becomes(bool wanted, const linux::NetNs& from, const std::string& to, uint16_t port) {
    return agent_->Await([&] { return Reaches(from, to, port) == wanted; });
  }

  std::shared_ptr<client::FakeApi> api_ = std::make_shared<client::FakeApi>();
  std::unique_ptr<RunningPolicies> agent_;
  std::map<std::string, std::string> results_;
};

const char kA4[] = "10.7.0.2", kA6[] = "fd07::2", kB4[] = "10.7.0.3";

TEST_P(PolicyNetnsTest, PodsOfOneNodeAreHeldApartFromTheFirstPacket) {
  api_->Put(Isolate("a"));
  PutPod("a", "a");
  PutPod("b", "b");
  Add(*a_, "a");
  Add(*b_, "b");
  EchoServer tcp(a_->netns, SOCK_STREAM, 80), udp(a_->netns, SOCK_DGRAM, 80),
      other(b_->netns, SOCK_STREAM, 80);
  for (const char* address : {kA4, kA6}) {
    EXPECT_FALSE(Reaches(b_->netns, address, 80)) << address;
    EXPECT_FALSE(Reaches(b_->netns, address, 80, SOCK_DGRAM)) << address;
    EXPECT_TRUE(Opens(*host_, address, 80)) << "the node's probes reach " << address;
    EXPECT_TRUE(Opens(a_->netns, address, 80)) << "a pod reaches itself at " << address;
  }
  // The other direction is not isolated; replies come back.
  EXPECT_EQ(Ask(a_->netns, SOCK_STREAM, kB4, 80), kA4);
}

TEST_P(PolicyNetnsTest, ChangesOfPoliciesAndLabelsTakeEffect) {
  networkingv1::NetworkPolicy policy = Isolate("a");
  api_->Put(policy);
  PutPod("a", "a");
  PutPod("b", "b");
  Add(*a_, "a");
  Add(*b_, "b");
  EchoServer named(a_->netns, SOCK_STREAM, 80), ranged(a_->netns, SOCK_STREAM, 8005),
      outside(a_->netns, SOCK_STREAM, 8011), udp(a_->netns, SOCK_DGRAM, 8005);
  EXPECT_FALSE(Reaches(b_->netns, kA4, 80));
  auto* rule = policy.mutable_spec()->add_ingress();
  (*rule->add_from()->mutable_pod_selector()->mutable_match_labels())["app"] = "b";
  auto* web = rule->add_ports();
  web->mutable_port()->set_type(1);
  web->mutable_port()->set_str_val("web");
  AddPort(*rule, 8000)->set_end_port(8010);
  api_->Put(policy);
  EXPECT_TRUE(Becomes(true, b_->netns, kA4, 80));
  EXPECT_TRUE(Opens(b_->netns, kA6, 80));
  EXPECT_TRUE(Opens(b_->netns, kA4, 8005));
  EXPECT_TRUE(Opens(b_->netns, kA6, 8005));
  EXPECT_FALSE(Reaches(b_->netns, kA4, 8011)) << "behind endPort";
  EXPECT_FALSE(Reaches(b_->netns, kA4, 8005, SOCK_DGRAM)) << "another protocol";
  PutPod("b", "no longer b");
  EXPECT_TRUE(Becomes(false, b_->netns, kA4, 80));
  client::RestClient rest(api_);
  ASSERT_TRUE(rest.Delete<networkingv1::NetworkPolicy>("x", "isolate-a"));
  EXPECT_TRUE(Becomes(true, b_->netns, kA4, 8011));
}

TEST_P(PolicyNetnsTest, BlocksAndEgress) {
  auto outside = Outside();
  PutPod("a", "a");
  PutPod("b", "b");
  Add(*a_, "a");
  Add(*b_, "b");
  auto there = Routing(*outside);
  ASSERT_TRUE(netlink::AddRoute(there, {.destination = *IpPrefix::Parse("10.7.0.0/24"),
                                        .gateway = *IpAddress::Parse("192.0.2.1"),
                                        .link_index = netlink::GetLink(there, "eth0")->index}));
  EchoServer in(a_->netns, SOCK_STREAM, 80), out(*outside, SOCK_STREAM, 80), peer(b_->netns, SOCK_STREAM, 80);
  networkingv1::NetworkPolicy policy = Isolate("a");
  auto* block = policy.mutable_spec()->add_ingress()->add_from()->mutable_ip_block();
  block->set_cidr("192.0.0.0/16");
  api_->Put(policy);
  EXPECT_TRUE(Becomes(false, b_->netns, kA4, 80));
  EXPECT_TRUE(Opens(*outside, kA4, 80));
  block->add_except("192.0.2.0/30");
  api_->Put(policy);
  EXPECT_TRUE(Becomes(false, *outside, kA4, 80));
  EXPECT_TRUE(Opens(a_->netns, "192.0.2.2", 80)) << "egress is free";
  policy.mutable_spec()->add_policy_types("Egress");
  auto* to = policy.mutable_spec()->add_egress();
  (*to->add_to()->mutable_pod_selector()->mutable_match_labels())["app"] = "b";
  api_->Put(policy);
  EXPECT_TRUE(Becomes(false, a_->netns, "192.0.2.2", 80));
  EXPECT_TRUE(Opens(a_->netns, kB4, 80));
}

TEST_P(PolicyNetnsTest, ServicesAreSeenAfterTheirTranslation) {
  networkingv1::NetworkPolicy policy = Isolate("a");
  AddPort(*policy.mutable_spec()->add_ingress(), 8080);
  api_->Put(policy);
  PutPod("a", "a");
  PutPod("b", "b");
  Add(*a_, "a");
  Add(*b_, "b");
  // 10.96.0.1, ports 1 and 2, lead to a's ports 8080 and 9090.
  auto kernel = *nft::OpenKernel(*host_);
  nft::Transaction t({nft::Family::kIpv4, "services"});
  t.AddTable();
  t.AddChain({"nat", nft::Hook{nft::HookType::kNat, nft::HookPoint::kPrerouting, -100}});
  for (auto [port, target] :
       {std::pair<uint16_t, uint16_t>(1, 8080), std::pair<uint16_t, uint16_t>(2, 9090)}) {
    nft::Rule rule("nat");
    rule.Load(0, nft::Field::kIpDaddr).Equal(0, nft::Key().Ip(*IpAddress::Parse("10.96.0.1")).bytes());
    rule.Load(1, nft::Field::kDestinationPort).Equal(1, nft::Key().Port(port).bytes());
    rule.Immediate(2, nft::Key().Ip(*IpAddress::Parse(kA4)).bytes())
        .Immediate(3, nft::Key().Port(target).bytes());
    t.AddRule(std::move(rule.Dnat(nft::Family::kIpv4, 2, 3)));
  }
  ASSERT_TRUE(kernel->Apply(t));
  EchoServer allowed(a_->netns, SOCK_STREAM, 8080), denied(a_->netns, SOCK_STREAM, 9090);
  EXPECT_EQ(Ask(b_->netns, SOCK_STREAM, "10.96.0.1", 1), "10.7.0.3");
  EXPECT_FALSE(Reaches(b_->netns, "10.96.0.1", 2));
}

TEST_P(PolicyNetnsTest, WithoutAnAgentRulesHoldAndNoPodStarts) {
  api_->Put(Isolate("a"));
  PutPod("a", "a");
  PutPod("b", "b");
  Add(*a_, "a");
  Add(*b_, "b");
  EchoServer a(a_->netns, SOCK_STREAM, 80), b(b_->netns, SOCK_STREAM, 80);
  agent_.reset();
  EXPECT_FALSE(Reaches(b_->netns, kA4, 80));
  EXPECT_TRUE(Opens(a_->netns, kB4, 80));
  Container c("c", dir_);
  PutPod("c", "c");
  Reply reply = TryAdd(c, "c", 300);
  EXPECT_NE(reply.exit_code, 0);
  EXPECT_THAT(reply.output, HasSubstr(R"("code":11)"));
  EchoServer held(c.netns, SOCK_STREAM, 80);
  EXPECT_FALSE(Reaches(c.netns, kB4, 80)) << "what it sends is dropped";
  EXPECT_FALSE(Reaches(b_->netns, "10.7.0.4", 80)) << "what is sent to it is dropped";
  Delete(c, "c");
  Start();
  EXPECT_FALSE(Reaches(b_->netns, kA4, 80));
  EXPECT_TRUE(Opens(a_->netns, kB4, 80));
  Add(c, "c");
  EXPECT_TRUE(Opens(c.netns, kB4, 80));
}

TEST_P(PolicyNetnsTest, AnAddressBringsNoPermissionsAlong) {
  auto ipam = [&] {
    return HostLocal(R"([[{"subnet":"10.7.0.0/24","rangeStart":"10.7.0.2","rangeEnd":"10.7.0.3"}]])");
  };
  auto add = [&](const Container& c, const std::string& name, int timeout) {
    Reply joined = Call("bridge", "ADD", c, BridgeWith(R"("isDefaultGateway":true,)", ipam()));
    EXPECT_EQ(joined.exit_code, 0) << joined.output;
    return Call("keelson-policy", "ADD", c, WithPrevious(PolicyConfig(timeout), joined.output), Args(name));
  };
  networkingv1::NetworkPolicy policy = Isolate("server");
  (*policy.mutable_spec()->add_ingress()->add_from()->mutable_pod_selector()->mutable_match_labels())["app"] =
      "a";
  api_->Put(policy);
  PutPod("server", "server");
  PutPod("old", "a");
  ASSERT_EQ(add(*a_, "server", 10'000).exit_code, 0);
  ASSERT_EQ(add(*b_, "old", 10'000).exit_code, 0);
  EchoServer server(a_->netns, SOCK_STREAM, 80);
  EXPECT_TRUE(Opens(b_->netns, kA4, 80));
  // The old pod's network goes; the API still shows the pod. Its address goes to another one.
  EXPECT_EQ(Call("keelson-policy", "DEL", *b_, PolicyConfig(), Args("old")).exit_code, 0);
  EXPECT_FALSE(Reaches(b_->netns, kA4, 80)) << "a container that still runs";
  EXPECT_EQ(Call("bridge", "DEL", *b_, BridgeWith(R"("isDefaultGateway":true,)", ipam())).exit_code, 0);
  Container c("c", dir_);
  Reply unknown = add(c, "new", 300);
  EXPECT_NE(unknown.exit_code, 0) << "the API does not have this pod";
  EXPECT_FALSE(Reaches(c.netns, kA4, 80));
  EXPECT_EQ(Call("keelson-policy", "DEL", c, PolicyConfig(), Args("new")).exit_code, 0);
  EXPECT_EQ(Call("bridge", "DEL", c, BridgeWith(R"("isDefaultGateway":true,)", ipam())).exit_code, 0);
  PutPod("new", "b");
  Reply known = add(c, "new", 10'000);
  ASSERT_EQ(known.exit_code, 0) << known.output;
  EXPECT_FALSE(Reaches(c.netns, kA4, 80)) << "the address was the old pod's";
}

// The tier Admin decides before the NetworkPolicy; what it passes over, that decides.
TEST_P(PolicyNetnsTest, ClusterNetworkPoliciesOfTierAdminComeFirst) {
  agent_.reset();
  const std::string list =
      R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"admin"},"spec":{
      "tier":"Admin","priority":1,"subject":{"namespaces":{"matchLabels":{"team":"blue"}}},"ingress":[
        {"action":"Accept","from":[{"pods":{"namespaceSelector":{},"podSelector":{"matchLabels":{"app":"b"}}}}],
         "protocols":[{"tcp":{"destinationPort":{"number":80}}}]},
        {"action":"Deny","from":[{"namespaces":{}}],
         "protocols":[{"tcp":{"destinationPort":{"number":8005}}}]}]},
      "status":{"conditions":[{"type":"Enforced","status":"True","message":"every rule is enforced as written"}]}}]})";
  ServeClusterPolicies(list);
  Start();
  api_->Put(Isolate("a"));
  PutPod("a", "a");
  PutPod("b", "b");
  Add(*a_, "a");
  Add(*b_, "b");
  EchoServer accepted(a_->netns, SOCK_STREAM, 80), isolated(a_->netns, SOCK_STREAM, 8011),
      denied(b_->netns, SOCK_STREAM, 8005), open(b_->netns, SOCK_STREAM, 8011);
  EXPECT_TRUE(Opens(b_->netns, kA4, 80));
  EXPECT_TRUE(Opens(b_->netns, kA6, 80));
  EXPECT_FALSE(Reaches(b_->netns, kA4, 8011)) << "the NetworkPolicy";
  EXPECT_FALSE(Reaches(a_->netns, kB4, 8005)) << "the ClusterNetworkPolicy";
  EXPECT_TRUE(Opens(a_->netns, kB4, 8011)) << "no policy isolates b";
}

// n1, the pod's own node, is 192.0.2.1; n2 is the namespace outside.
TEST_P(PolicyNetnsTest, NodesArePeersAndTheOwnOneIsNoExceptionToClusterPolicies) {
  auto outside = Outside();
  agent_.reset();
  const std::string port80 = R"("protocols":[{"tcp":{"destinationPort":{"number":80}}}])";
  ServeClusterPolicies(
      R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"nodes"},"spec":{
      "tier":"Admin","priority":1,"subject":{"namespaces":{}},"egress":[
        {"action":"Accept","to":[{"nodes":{"matchLabels":{"zone":"z2"}}}],)" +
      port80 + R"(},
        {"action":"Pass","to":[{"nodes":{"matchLabels":{"zone":"z1"}}}],)" +
      port80 + R"(},
        {"action":"Deny","to":[{"nodes":{}}]}]},
      "status":{"conditions":[{"type":"Enforced","status":"True","message":"every rule is enforced as written"}]}}]})");
  Start();
  PutPod("a", "a");
  Add(*a_, "a");
  auto there = Routing(*outside);
  ASSERT_TRUE(netlink::AddRoute(there, {.destination = *IpPrefix::Parse("10.7.0.0/24"),
                                        .gateway = *IpAddress::Parse("192.0.2.1"),
                                        .link_index = netlink::GetLink(there, "eth0")->index}));
  EchoServer there80(*outside, SOCK_STREAM, 80), there81(*outside, SOCK_STREAM, 81);
  EchoServer here80(*host_, SOCK_STREAM, 80), here81(*host_, SOCK_STREAM, 81),
      pod(a_->netns, SOCK_STREAM, 80);
  EXPECT_TRUE(Opens(a_->netns, "192.0.2.2", 80));
  EXPECT_FALSE(Reaches(a_->netns, "192.0.2.2", 81));
  EXPECT_TRUE(Opens(a_->netns, "192.0.2.1", 80)) << "passed on, and no NetworkPolicy is there";
  EXPECT_FALSE(Reaches(a_->netns, "192.0.2.1", 81));
  EXPECT_TRUE(Opens(a_->netns, "10.7.0.1", 81)) << "the bridge's address is not the Node object's";
  EXPECT_TRUE(Opens(*host_, kA4, 80)) << "the node's probes, whose replies go to the node";
  EXPECT_TRUE(Opens(*outside, kA4, 80));
  EXPECT_TRUE(Opens(*host_, "192.0.2.1", 81)) << "the node itself";
}

// What the cluster's DNS writes opens, for its time, whether the agent runs or not.
TEST_P(PolicyNetnsTest, AddressesOfDomainNamesOpenWhenTheDnsHasGivenThem) {
  auto outside = Outside();
  agent_.reset();
  const std::string list =
      R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"names"},"spec":{
      "tier":"Admin","priority":1,"subject":{"namespaces":{}},"egress":[
        {"action":"Accept","to":[{"domainNames":["*.example.com"]}],
         "protocols":[{"tcp":{"destinationPort":{"number":80}}}]},
        {"action":"Deny","to":[{"networks":["0.0.0.0/0","::/0"]}]}]},
      "status":{"conditions":[{"type":"Enforced","status":"True","message":"every rule is enforced as written"}]}}]})";
  ServeClusterPolicies(list);
  Start();
  PutPod("a", "a");
  Add(*a_, "a");
  auto there = Routing(*outside);
  ASSERT_TRUE(netlink::AddRoute(there, {.destination = *IpPrefix::Parse("10.7.0.0/24"),
                                        .gateway = *IpAddress::Parse("192.0.2.1"),
                                        .link_index = netlink::GetLink(there, "eth0")->index}));
  EchoServer web(*outside, SOCK_STREAM, 80), other(*outside, SOCK_STREAM, 81);
  EXPECT_FALSE(Reaches(a_->netns, "192.0.2.2", 80));
  // As proxy/dns does before it gives the answer.
  auto kernel = *nft::OpenKernel(*host_);
  const nft::Set set = dataplane::DomainAddresses("*.example.com", true);
  nft::Element element{.key = nft::Key().Ip(*IpAddress::Parse("192.0.2.2")).bytes()};
  element.lifetime = std::chrono::hours(1);
  nft::Transaction answered(dataplane::PolicyTable()), gone(dataplane::PolicyTable());
  answered.AddElements(set, {element});
  gone.DeleteElements(set, {element});
  ASSERT_TRUE(kernel->Apply(answered));
  EXPECT_TRUE(Opens(a_->netns, "192.0.2.2", 80));
  EXPECT_FALSE(Reaches(a_->netns, "192.0.2.2", 81)) << "another port";
  agent_.reset();
  EXPECT_TRUE(Opens(a_->netns, "192.0.2.2", 80));
  Start();
  PutPod("b", "b");
  Add(*b_, "b");  // the agent has compared and written its tables
  EXPECT_TRUE(Opens(a_->netns, "192.0.2.2", 80));
  ASSERT_TRUE(kernel->Apply(gone));
  EXPECT_FALSE(Reaches(a_->netns, "192.0.2.2", 80));
}

TEST_P(PolicyNetnsTest, TheNodeRepairsItsTables) {
  api_->Put(Isolate("a"));
  PutPod("a", "a");
  PutPod("b", "b");
  Add(*a_, "a");
  Add(*b_, "b");
  EchoServer a(a_->netns, SOCK_STREAM, 80), b(b_->netns, SOCK_STREAM, 80);
  // What the kubelet reports: by it an agent finds the pods of tables that are gone.
  for (auto [name, ip] : {std::pair("a", kA4), std::pair("b", kB4)}) {
    corev1::Pod pod = PutPod(name, name);
    pod.mutable_status()->add_pod_ips()->set_ip(ip);
    api_->Put(pod);
  }
  auto kernel = *nft::OpenKernel(*host_);
  for (const nft::Table& table : {dataplane::PolicyTable(), dataplane::PolicyPortsTable()}) {
    nft::Transaction t(table);
    t.DeleteTable();
    ASSERT_TRUE(kernel->Apply(t));
  }
  EXPECT_TRUE(Becomes(false, b_->netns, kA4, 80));
  EXPECT_TRUE(Becomes(true, a_->netns, kB4, 80));
}

TEST_P(PolicyNetnsTest, APodCannotSpeakForAnother) {
  PutPod("a", "a");
  PutPod("b", "b");
  Add(*a_, "a");
  Add(*b_, "b");
  EchoServer a(a_->netns, SOCK_STREAM, 80);
  EXPECT_TRUE(Opens(b_->netns, kA4, 80));
  auto inside = Routing(b_->netns);
  int link = netlink::GetLink(inside, "eth0")->index;
  ASSERT_TRUE(netlink::DeleteAddress(inside, link, *IpPrefix::Parse("10.7.0.3/24")));
  ASSERT_TRUE(netlink::AddAddress(inside, link, *IpPrefix::Parse("10.7.0.99/24")));
  EXPECT_FALSE(Reaches(b_->netns, kA4, 80));
}

INSTANTIATE_TEST_SUITE_P(BridgeNetfilter, PolicyNetnsTest, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "On" : "Off"; });

}  // namespace
}  // namespace keelson::cni::agent
