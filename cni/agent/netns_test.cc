// Agents on several nodes, each in its own network namespace, and packets between their pods.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "cni/agent/masquerade.h"
#include "cni/agent/testing/netns_fixture.h"
#include "lib/base/file.h"
#include "lib/base/testing/eventually.h"
#include "lib/client/testing/fake_api_server.h"
#include "lib/event/process.h"
#include "lib/netlink/neigh.h"

namespace keelson::cni::agent {
namespace {

using ::testing::HasSubstr;

IpAddress Ip(const char* text) { return *IpAddress::Parse(text); }
IpPrefix Prefix(const char* text) { return *IpPrefix::Parse(text); }

#define ASSERT_DONE(expr)                                    \
  do {                                                       \
    auto done = (expr);                                      \
    ASSERT_TRUE(done.has_value()) << done.error().message(); \
  } while (false)

class AgentNetnsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = Network::Make();
    if (!made) GTEST_SKIP() << "no network namespaces here: " << made.error().message();
    network_ = std::move(*made);
  }
  RunningAgent& Start(const std::string& name, Mode mode = Mode::kAuto) {
    return *agents_.emplace_back(std::make_unique<RunningAgent>(network_->site(name), network_->api(),
                                                                network_->ConfigFor(name, mode)));
  }
  const NodeSite& Site(const std::string& name) { return network_->site(name); }
  netlink::Socket Socket(const std::string& name) { return *netlink::Socket::OpenIn(Site(name).host); }

  // The agent's routes on a node, as text.
  std::vector<std::string> Routes(const std::string& name) {
    netlink::Socket socket = Socket(name);
    std::vector<std::string> out;
    auto routes = *netlink::ListRoutes(socket);
    for (const netlink::Route& route : routes) {
      if (route.protocol != kRouteProtocol) continue;
      std::string device = netlink::GetLink(socket, route.link_index)->name;
      out.push_back(route.destination.ToString() + " " + device);
    }
    return out;
  }
  std::optional<nft::Ruleset> Rules(const std::string& name) {
    auto kernel = *nft::OpenKernel(Site(name).host);
    return *kernel->Read({nft::Family::kInet, kNftTable});
  }
  // Both pods of a pair see each other's own addresses.
  void ExpectPodsMeet(const std::string& a, const std::string& b, bool v4 = true) {
    Echo echo_a(Site(a).pod), echo_b(Site(b).pod);
    EXPECT_EQ(SeenAs(Site(a).pod, Site(b).PodIp(v4)), Site(a).PodIp(v4).ToString()) << a << " to " << b;
    EXPECT_EQ(SeenAs(Site(b).pod, Site(a).PodIp(v4)), Site(b).PodIp(v4).ToString()) << b << " to " << a;
  }

  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<RunningAgent>> agents_;
};

TEST_F(AgentNetnsTest, HostGwDualStackAndTheConflistComesLast) {
  ASSERT_DONE(network_->AddNode("a"));
  ASSERT_DONE(network_->AddNode("b"));
  RunningAgent& a = Start("a");
  RunningAgent& b = Start("b");
  a.syncer().AwaitSyncs(1);
  b.syncer().AwaitSyncs(1);
  EXPECT_THAT(Routes("a"), ::testing::ElementsAre("10.244.2.0/24 eth0", "fd44:2::/64 eth0"));
  EXPECT_TRUE(PathExists(network_->ConfigFor("a").ConflistPath()));
  EXPECT_EQ(a.health().Complaint(), "");
  ExpectPodsMeet("a", "b");
  ExpectPodsMeet("a", "b", false);
  netlink::Socket socket = Socket("a");
  EXPECT_EQ(netlink::GetLink(socket, "keelson.vx").error().code(), Code::kNotFound);
}

TEST_F(AgentNetnsTest, MixedHostGwAndVxlan) {
  ASSERT_DONE(network_->AddNode("a"));
  ASSERT_DONE(network_->AddNode("b"));
  ASSERT_DONE(network_->AddNode("far", true));
  for (const char* name : {"a", "b", "far"}) Start(name).syncer().AwaitSyncs(1);
  EXPECT_THAT(Routes("a"), ::testing::ElementsAre("10.244.2.0/24 eth0", "10.244.3.0/24 keelson.vx",
                                                  "fd44:2::/64 eth0", "fd44:3::/64 keelson.vx"));
  EXPECT_THAT(Routes("far"), ::testing::ElementsAre("10.244.1.0/24 keelson.vx", "10.244.2.0/24 keelson.vx",
                                                    "fd44:1::/64 keelson.vx", "fd44:2::/64 keelson.vx"));
  for (bool v4 : {true, false}) {
    ExpectPodsMeet("a", "b", v4);
    ExpectPodsMeet("a", "far", v4);
    ExpectPodsMeet("b", "far", v4);
  }
  // The node itself reaches a pod behind the tunnel, from its tunnel address.
  Echo echo(Site("far").pod);
  EXPECT_EQ(SeenAs(Site("a").host, Site("far").PodIp()), "10.244.1.0");
  EXPECT_THAT(*ReadFile(network_->ConfigFor("a").ConflistPath()), HasSubstr("\"mtu\": 1450"));
  netlink::Socket socket = Socket("far");
  auto tunnel = *netlink::GetLink(socket, "keelson.vx");
  EXPECT_EQ(netlink::ListForwarding(socket, tunnel.index)->size(), 2u);
}

TEST_F(AgentNetnsTest, MasqueradeOnlyOfWhatLeavesTheCluster) {
  ASSERT_DONE(network_->AddNode("a"));
  ASSERT_DONE(network_->AddNode("far", true));
  Start("a").syncer().AwaitSyncs(1);
  Start("far").syncer().AwaitSyncs(1);
  Echo outside(network_->router(), "192.0.2.1"), outside6(network_->router(), "2001:db8::1");
  EXPECT_EQ(SeenAs(Site("a").pod, Ip("192.0.2.1")), "10.0.0.1");
  EXPECT_EQ(SeenAs(Site("a").pod, Ip("2001:db8::1")), "fd10::1");
  EXPECT_EQ(SeenAs(Site("a").host, Ip("192.0.2.1")), "10.0.0.1");
  ExpectPodsMeet("a", "far");
}

TEST_F(AgentNetnsTest, NodesComeMoveAndGo) {
  ASSERT_DONE(network_->AddNode("a"));
  RunningAgent& a = Start("a");
  a.syncer().AwaitSyncs(1);
  EXPECT_THAT(Routes("a"), ::testing::ElementsAre());
  ASSERT_DONE(network_->AddNode("far", true));
  ASSERT_TRUE(a.Await([&] { return Routes("a").size() == 2; }));
  RunningAgent& far = Start("far");
  far.syncer().AwaitSyncs(1);
  ExpectPodsMeet("a", "far");
  // The node comes back with other addresses on this side of the router: the route moves, the tunnel goes.
  corev1::Node moved = network_->ObjectOf(Site("far"));
  moved.mutable_status()->mutable_addresses(0)->set_address("10.0.0.77");
  moved.mutable_status()->mutable_addresses(1)->set_address("fd10::77");
  network_->api()->Put(moved);
  ASSERT_TRUE(a.Await([&] {
    return Routes("a") == std::vector<std::string>{"10.244.2.0/24 eth0", "fd44:2::/64 eth0"};
  }));
  netlink::Socket socket = Socket("a");
  EXPECT_EQ(netlink::GetLink(socket, "keelson.vx").error().code(), Code::kNotFound);
  ASSERT_DONE(client::RestClient(network_->api()).Delete<corev1::Node>("", "far"));
  ASSERT_TRUE(a.Await([&] { return Routes("a").empty(); }));
}

TEST_F(AgentNetnsTest, PutsRightWhatOthersBreak) {
  ASSERT_DONE(network_->AddNode("a"));
  ASSERT_DONE(network_->AddNode("far", true));
  RunningAgent& a = Start("a");
  Start("far").syncer().AwaitSyncs(1);
  a.syncer().AwaitSyncs(1);
  netlink::Socket socket = Socket("a");
  const std::vector<std::string> good = Routes("a");
  ASSERT_EQ(good.size(), 2u);
  auto tunnel = [&] { return netlink::GetLink(socket, "keelson.vx"); };
  auto whole = [&] {
    auto link = tunnel();
    if (!link || !link->up || Routes("a") != good || !Rules("a")) return false;
    auto neighbors = netlink::ListNeighbors(socket, link->index);
    auto forwarding = netlink::ListForwarding(socket, link->index);
    int permanent = 0;
    for (const auto& n : *neighbors) permanent += n.permanent;
    return permanent == 2 && forwarding->size() == 1;
  };
  ASSERT_TRUE(whole());
  const struct {
    const char* what;
    std::function<Result<>()> harm;
  } cases[] = {
      {"route deleted",
       [&] { return netlink::DeleteRoute(socket, {.destination = Prefix("10.244.2.0/24")}); }},
      {"route replaced",
       [&] {
         return netlink::ReplaceRoute(socket,
                                      {.destination = Prefix("10.244.2.0/24"), .gateway = Ip("10.0.0.254")});
       }},
      {"neighbour deleted",
       [&]() -> Result<> {
         KEELSON_RETURN_IF_ERROR(netlink::DeleteNeighbor(socket, tunnel()->index, Ip("10.244.2.0")));
         return {};
       }},
      {"forwarding deleted",
       [&]() -> Result<> {
         int index = tunnel()->index;
         KEELSON_RETURN_IF_ERROR(
             netlink::DeleteForwarding(socket, netlink::ListForwarding(socket, index)->at(0)));
         return {};
       }},
      {"device down", [&] { return netlink::ChangeLink(socket, tunnel()->index, {.up = false}); }},
      {"device deleted",
       [&]() -> Result<> {
         KEELSON_RETURN_IF_ERROR(netlink::DeleteLink(socket, "keelson.vx"));
         return {};
       }},
      {"rules deleted",
       [&] {
         auto kernel = *nft::OpenKernel(Site("a").host);
         return RemoveMasquerade(*kernel);
       }},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    ASSERT_DONE(c.harm());
    ASSERT_TRUE(a.Await(whole));
    ExpectPodsMeet("a", "far");
  }
}

// KUBE_CNI names another build to measure.
std::string KubeCni() {
  const char* given = std::getenv("KUBE_CNI");
  return given ? given : KEELSON_KUBE_CNI;
}

// The kube-cni program in a node's namespace.
class Daemon {
 public:
  Daemon(const Config& config, const NodeSite& site, uint16_t api_port, const std::string& dir) {
    std::string kubeconfig = dir + "/kubeconfig-" + config.node_name;
    EXPECT_TRUE(WriteFile(kubeconfig,
                          "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                          "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:" +
                              std::to_string(api_port) +
                              "\"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
                              "users: [{name: u, user: {}}]\n"));
    log_ = dir + "/log-" + config.node_name;
    Result<> started = site.host.Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(
          process_, event::Process::Start(
                        {.argv = {KubeCni(), "--kubeconfig", kubeconfig, "--node-name", config.node_name,
                                  "--cni-conf-dir", config.conf_dir, "--cluster-cidr",
                                  "10.244.0.0/16,fd44::/16", "--healthz-bind-address", "127.0.0.1:10250",
                                  "--metrics-bind-address", "127.0.0.1:10250",
                                  // The network's pods are no objects of the API.
                                  "--network-policy", "off"},
                         .output_file = log_}));
      return {};
    });
    EXPECT_TRUE(started) << started.error().message();
  }
  void Kill() {
    EXPECT_TRUE(process_->Signal(SIGKILL));
    EXPECT_TRUE(process_->Wait({}));
    process_.reset();
  }
  // Private memory in KiB: all of it (USS), and the part without a file behind it.
  std::pair<int, int> Memory() const {
    std::string text = ReadFile("/proc/" + std::to_string(process_->pid()) + "/smaps_rollup").value_or("");
    auto field = [&](const char* name) {
      size_t at = text.find(name);
      return at == std::string::npos ? 0 : std::atoi(text.c_str() + at + std::strlen(name));
    };
    return {field("Private_Clean:") + field("Private_Dirty:"), field("Anonymous:")};
  }
  std::string Log() const { return ReadFile(log_).value_or(""); }
  // Blocks until the log contains `what` that many times.
  bool AwaitLog(const std::string& what, int times) {
    return Eventually([&] {
      std::string log = Log();
      int found = 0;
      for (size_t at = log.find(what); at != std::string::npos; at = log.find(what, at + 1)) ++found;
      return found >= times;
    });
  }

 private:
  std::optional<event::Process> process_;
  std::string log_;
};

TEST_F(AgentNetnsTest, KilledAndStartedAgainUnderTrafficLosesNothing) {
  ASSERT_DONE(network_->AddNode("a"));
  ASSERT_DONE(network_->AddNode("b"));
  ASSERT_DONE(network_->AddNode("far", true));
  Start("b").syncer().AwaitSyncs(1);
  Start("far").syncer().AwaitSyncs(1);
  client::FakeApiServer server(Site("a").host, network_->api());
  Config config = network_->ConfigFor("a");
  auto agent = std::make_unique<Daemon>(config, Site("a"), server.port(), network_->dir());
  ASSERT_TRUE(agent->AwaitLog("CNI configuration written", 1)) << agent->Log();
  const std::vector<std::string> good = Routes("a");
  EXPECT_EQ(good.size(), 4u);

  Echo echo_b(Site("b").pod), echo_far(Site("far").pod);
  Traffic near(Site("a").pod, Site("b").PodIp()), over_tunnel(Site("a").pod, Site("far").PodIp());
  near.AwaitReplies(50);
  over_tunnel.AwaitReplies(50);
  for (int round = 1; round <= 3; ++round) {
    agent->Kill();
    EXPECT_EQ(Routes("a"), good);
    near.AwaitReplies(30);
    agent = std::make_unique<Daemon>(config, Site("a"), server.port(), network_->dir());
    ASSERT_TRUE(agent->AwaitLog("kube-cni starts", round + 1)) << agent->Log();
    over_tunnel.AwaitReplies(100);
  }
  EXPECT_EQ(near.Finish(), 0) << agent->Log();
  EXPECT_EQ(over_tunnel.Finish(), 0) << agent->Log();
  EXPECT_EQ(Routes("a"), good);
  agent->Kill();
}

// Wherever the first sync is cut off: the CNI configuration exists only if the routes do, and the next
// agent finishes the job.
TEST_F(AgentNetnsTest, KilledAtAnyMomentOfItsFirstSync) {
  ASSERT_DONE(network_->AddNode("a"));
  ASSERT_DONE(network_->AddNode("b"));
  ASSERT_DONE(network_->AddNode("far", true));
  client::FakeApiServer server(Site("a").host, network_->api());
  Config config = network_->ConfigFor("a");
  auto start = [&] { return std::make_unique<Daemon>(config, Site("a"), server.port(), network_->dir()); };
  int unfinished = 0;
  for (int milliseconds = 4; milliseconds <= 80; milliseconds += 4) {
    auto agent = start();
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));  // choose the moment of the kill
    agent->Kill();
    bool configured = PathExists(config.ConflistPath());
    if (configured) {
      EXPECT_EQ(Routes("a").size(), 4u) << milliseconds;
      EXPECT_TRUE(Rules("a"));
    }
    unfinished += !configured;
    for (const std::string& name : ListDir(config.conf_dir).value_or(std::vector<std::string>())) {
      EXPECT_TRUE(name == config.conf_name || !name.ends_with("conflist")) << name;
    }
    if (milliseconds % 3 == 0) continue;  // sometimes the next one starts from what this one left
    ASSERT_DONE(Site("a").host.Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(
          event::Process cleanup,
          event::Process::Start({.argv = {KubeCni(), "--cleanup", "--cni-conf-dir", config.conf_dir}}));
      KEELSON_RETURN_IF_ERROR(cleanup.Wait({}));
      return {};
    }));
  }
  EXPECT_GT(unfinished, 0);
  auto agent = start();
  ASSERT_TRUE(Eventually([&] { return PathExists(config.ConflistPath()) && Routes("a").size() == 4; }))
      << agent->Log();
  agent->Kill();
}

TEST_F(AgentNetnsTest, AThousandNodesTakeLittleMemory) {
  ASSERT_DONE(network_->AddNode("a"));
  for (int i = 0; i < 1000; ++i) {
    NodeSite site = {.name = "n" + std::to_string(i),
                     .number = 0,
                     .host = *linux::NetNs::OpenCurrent(),
                     .pod = *linux::NetNs::OpenCurrent(),
                     .addresses = {Ip("10.0.1.0").Plus(i)}};
    corev1::Node node = network_->ObjectOf(site);
    std::string cidr = "10." + std::to_string(100 + i / 256) + "." + std::to_string(i % 256) + ".0/24";
    node.mutable_spec()->clear_pod_cidrs();
    node.mutable_spec()->set_pod_cidr(cidr);
    node.mutable_spec()->add_pod_cidrs(cidr);
    // As large as a real Node: mostly the names of images.
    for (int image = 0; image < 50; ++image) {
      node.mutable_status()->add_images()->add_names("registry.example/" + std::string(180, 'a') +
                                                     std::to_string(image));
    }
    network_->api()->Put(node);
  }
  client::FakeApiServer server(Site("a").host, network_->api());
  Daemon agent(network_->ConfigFor("a", Mode::kAuto), Site("a"), server.port(), network_->dir());
  ASSERT_TRUE(agent.AwaitLog("CNI configuration written", 1)) << agent.Log();
  EXPECT_EQ(Routes("a").size(), 1000u);
  auto [uss, anonymous] = agent.Memory();
  RecordProperty("uss_kib", uss);
  RecordProperty("anonymous_kib", anonymous);
  std::printf("1000 nodes: USS %d KiB, anonymous %d KiB\n", uss, anonymous);
  EXPECT_LT(anonymous, 6 << 10);
  agent.Kill();
}

TEST_F(AgentNetnsTest, WithoutAnApiServerNothingIsTouched) {
  ASSERT_DONE(network_->AddNode("a"));
  ASSERT_DONE(network_->AddNode("b"));
  { Start("a").syncer().AwaitSyncs(1); }
  agents_.clear();
  const std::vector<std::string> good = Routes("a");
  ASSERT_EQ(good.size(), 2u);
  network_->api()->SetInterceptor(
      [](const client::ApiRequest&) -> std::optional<Result<client::ApiResponse>> {
        return Result<client::ApiResponse>(Error(Code::kUnavailable, "connection refused"));
      });
  RunningAgent& again = Start("a");
  // Without a list of Nodes, changes by others cause no sync either.
  netlink::Socket socket = Socket("a");
  ASSERT_DONE(
      netlink::AddRoute(socket, {.destination = Prefix("10.99.0.0/24"), .gateway = Ip("10.0.0.254")}));
  EXPECT_THAT(again.health().Complaint(), HasSubstr("no sync yet"));
  agents_.clear();
  EXPECT_EQ(Routes("a"), good);
  EXPECT_TRUE(Rules("a"));
}

TEST_F(AgentNetnsTest, CleanupTakesAllAway) {
  ASSERT_DONE(network_->AddNode("a"));
  ASSERT_DONE(network_->AddNode("b"));
  ASSERT_DONE(network_->AddNode("far", true));
  Start("a").syncer().AwaitSyncs(1);
  agents_.clear();
  ASSERT_EQ(Routes("a").size(), 4u);
  Config config = network_->ConfigFor("a");
  netlink::Socket socket = Socket("a");
  ASSERT_DONE(Site("a").host.Run([&]() -> Result<> {
    KEELSON_ASSIGN_OR_RETURN(
        event::Process cleanup,
        event::Process::Start({.argv = {KubeCni(), "--cleanup", "--cni-conf-dir", config.conf_dir}}));
    KEELSON_ASSIGN_OR_RETURN(event::ExitStatus status, cleanup.Wait({}));
    return status.ok() ? Result<>() : Error(Code::kInternal, status.ToString());
  }));
  EXPECT_THAT(Routes("a"), ::testing::ElementsAre());
  EXPECT_FALSE(Rules("a"));
  EXPECT_FALSE(PathExists(config.ConflistPath()));
  for (const std::string& link : {std::string("keelson.vx"), config.bridge}) {
    EXPECT_EQ(netlink::GetLink(socket, link).error().code(), Code::kNotFound) << link;
  }
}

}  // namespace
}  // namespace keelson::cni::agent
