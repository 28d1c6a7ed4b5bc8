// kube-proxy as a process: changes of the mode in its configuration file, and kills, under a thousand open
// connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <functional>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/pause.h"
#include "lib/base/testing/eventually.h"
#include "lib/bpf/tc.h"
#include "lib/client/testing/fake_api_server.h"
#include "lib/event/process.h"
#include "lib/netlink/ipvs.h"
#include "lib/netlink/link.h"
#include "lib/nft/kernel.h"
#include "tests/netns/ways.h"

namespace keelson::netns {
namespace {

class KubeProxy {
 public:
  KubeProxy(const linux::NetNs& node, NodePlaces places, uint16_t api_port)
      : node_(node), places_(std::move(places)) {
    char made[] = "/tmp/keelson-daemon-XXXXXX";
    EXPECT_TRUE(::mkdtemp(made));
    dir_ = made;
    EXPECT_TRUE(WriteFile(dir_ + "/kubeconfig",
                          "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                          "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:" +
                              std::to_string(api_port) +
                              "\"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
                              "users: [{name: u, user: {}}]\n"));
  }
  ~KubeProxy() {
    if (process_) (void)process_->Terminate(std::chrono::seconds(10));
    if (::testing::Test::HasFailure()) ADD_FAILURE() << ReadFile(dir_ + "/log").value_or("no log");
    (void)RemoveTree(dir_);
  }

  // As an editor or a ConfigMap volume replaces it.
  void Configure(const std::string& mode, const std::string& more = "") {
    Result<> written = WriteFileAtomic(
        dir_ + "/config.yaml",
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: " + mode +
            "\nclusterCIDR: 10.1.0.0/16\nhealthzBindAddress: \"\"\nmetricsBindAddress: \"127.0.0.1:10249\"\n"
            "clientConnection: {kubeconfig: " +
            dir_ + "/kubeconfig}\nconntrack: {maxPerCore: 0, min: 0}\n" + more);
    ASSERT_TRUE(written) << written.error().message();
  }
  void Start() {
    Result<> started = node_.Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(
          process_,
          event::Process::Start(
              {.argv = {KEELSON_KUBE_PROXY, "--config", dir_ + "/config.yaml", "--hostname-override", "here",
                        "--ebpf-cgroup", places_.cgroup, "--ebpf-pin-directory", places_.pins, "-v", "4"},
               .output_file = dir_ + "/log"}));
      return {};
    });
    ASSERT_TRUE(started) << started.error().message();
  }
  void Kill() {
    ASSERT_TRUE(process_->Signal(SIGKILL));
    ASSERT_TRUE(process_->Wait({}));
    process_.reset();
  }

  // True when all of `mode` is in the kernel, and of the other modes only what IPVS must still carry.
  bool IsInPlace(const std::string& mode) {
    std::vector<std::string> tables;
    bool takes_new = false;
    Result<> looked = node_.Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
      for (const char* of : {"nftables", "ipvs", "ebpf"}) {
        const std::string name =
            std::string("keelson-proxy") + (std::string(of) == "nftables" ? "" : "-" + std::string(of));
        KEELSON_ASSIGN_OR_RETURN(bool there, kernel->HasChain({nft::Family::kIpv4, name}, "services"));
        if (there) tables.push_back(of);
      }
      KEELSON_ASSIGN_OR_RETURN(takes_new, VirtualServersTakeConnections());
      return {};
    });
    if (!looked) return false;
    const bool sockets = PathExists(places_.pins + "/v4/connect4");
    std::erase_if(tables, [&](const std::string& of) { return of == "ipvs" && mode != "ipvs"; });
    return tables == std::vector<std::string>{mode} && takes_new == (mode == "ipvs") &&
           sockets == (mode == "ebpf");
  }

 private:
  static Result<bool> VirtualServersTakeConnections() {
    Result<netlink::Ipvs> ipvs = netlink::Ipvs::Open();
    if (!ipvs) return false;  // this kernel has none
    KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::FoundServer> servers, ipvs->Servers());
    for (const netlink::FoundServer& server : servers) {
      KEELSON_ASSIGN_OR_RETURN(std::vector<netlink::FoundDestination> found,
                               ipvs->Destinations(server.server.address));
      for (const netlink::FoundDestination& one : found) {
        if (one.destination.weight > 0) return true;
      }
    }
    return false;
  }
  const linux::NetNs& node_;
  const NodePlaces places_;
  std::string dir_;
  std::optional<event::Process> process_;
};

// A node here, and a Service.
std::shared_ptr<client::FakeApi> ApiOf(const ServiceBlock& block) {
  auto api = std::make_shared<client::FakeApi>();
  corev1::Node node;
  node.mutable_metadata()->set_name("here");
  auto& address = *node.mutable_status()->add_addresses();
  address.set_type("InternalIP");
  address.set_address(ClientAddress("node", true).ToString());
  api->Put(node);
  api->Put(block.Service());
  discoveryv1::EndpointSlice slice = block.Slice(true);
  slice.mutable_metadata()->set_name("web-4");
  api->Put(slice);
  return api;
}

class DaemonSwitch : public WayTest {};

TEST_P(DaemonSwitch, ConnectionsLiveThroughChangesOfTheConfigurationFile) {
  auto places = world_->Places();
  if (!places) GTEST_SKIP() << places.error().message();
  auto api = ApiOf(block_);
  client::FakeApiServer server(world_->node(), api);

  KubeProxy proxy(world_->node(), *places, server.port());
  for (size_t i = 0; i < GetParam().modes.size(); ++i) {
    const char* mode = GetParam().modes[i];
    SCOPED_TRACE(std::to_string(i) + ": to " + mode);
    proxy.Configure(mode);
    if (i == 0) proxy.Start();
    if (i % 2 == 0 && i > 0) {  // at an arbitrary moment
      proxy.Kill();
      EXPECT_EQ(crowd_->Dead(), 0);
      proxy.Start();
    }
    ASSERT_TRUE(Eventually([&] { return proxy.IsInPlace(mode); }));
    ASSERT_NO_FATAL_FAILURE(AllLiveAndMoreJoin());
  }
  EXPECT_EQ(crowd_->Dead(), 0);
}

// Long before the next look of its own.
TEST(DaemonFilters, ComeBackAtOnceWhenSomebodyTakesThemAway) {
  if (Result<> possible = Possible("ebpf"); !possible) GTEST_SKIP() << possible.error().message();
  auto world = ServiceWorld::Make();
  if (!world) GTEST_SKIP() << world.error().message();
  auto places = (*world)->Places();
  if (!places) GTEST_SKIP() << places.error().message();
  const linux::NetNs& node = (*world)->node();
  const ServiceBlock block{.number = 1, .name = "web", .protocol = "tcp", .flags = {"nodeport"}};
  client::FakeApiServer server(node, ApiOf(block));
  KubeProxy proxy(node, *places, server.port());
  proxy.Configure("ebpf", "nftables: {syncPeriod: 1h}\n");
  proxy.Start();
  ASSERT_TRUE(Eventually([&] { return proxy.IsInPlace("ebpf"); }));
  auto is_there = [&] {
    Result<> found = node.Run([]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(netlink::Socket socket, netlink::Socket::Open());
      KEELSON_ASSIGN_OR_RETURN(netlink::Link link, netlink::GetLink(socket, "outside"));
      KEELSON_ASSIGN_OR_RETURN(std::optional<std::string> name, bpf::TcProgramAt({link.index, true, 19204}));
      return name == "from_outside" ? Result<>() : Error(Code::kNotFound, "no filter");
    });
    return found.has_value();
  };
  ASSERT_TRUE(Eventually(is_there));
  for (const char* harm : {"tc filter del dev outside ingress", "tc qdisc del dev outside clsact"}) {
    ASSERT_TRUE(node.Run(
        [&]() -> Result<> { return std::system(harm) == 0 ? Result<>() : Error(Code::kInternal, harm); }));
    EXPECT_TRUE(Eventually(is_there)) << harm;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, DaemonSwitch, ::testing::ValuesIn(kWays), WayName);

}  // namespace
}  // namespace keelson::netns
