// kube-cni and kube-proxy as processes on one node: a pod asks kube-proxy's DNS for a name, and kube-cni's rules let the
// pod through to the address in the answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <csignal>
#include <optional>

#include "cni/lib/testing/plugin_fixture.h"
#include "lib/api/types.h"
#include "lib/base/file.h"
#include "lib/base/socket_address.h"
#include "lib/base/testing/eventually.h"
#include "lib/client/testing/fake_api.h"
#include "lib/client/testing/fake_api_server.h"
#include "lib/event/process.h"
#include "lib/netlink/addr.h"
#include "lib/netlink/route.h"
#include "proxy/dns/testing/messages.h"

namespace keelson::policies {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;

constexpr char kDns[] = "10.96.0.10", kServer[] = "192.0.2.2", kOther[] = "192.0.2.3";
constexpr int kSoon = 250;  // milliseconds: a packet that is dropped gets no answer within them

// A pod may go to what "db" leads to, on port 80, and nowhere else.
constexpr char kPolicies[] =
    R"({"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"names"},"spec":{
    "tier":"Admin","priority":1,"subject":{"namespaces":{}},"egress":[
      {"action":"Accept","to":[{"domainNames":["db.x.svc.cluster.local"]}],
       "protocols":[{"tcp":{"destinationPort":{"number":80}}}]},
      {"action":"Deny","to":[{"networks":["0.0.0.0/0","::/0"]}]}]},
    "status":{"conditions":[{"type":"Enforced","status":"True","message":"every rule is enforced as written"}]}}]})";

class DaemonsTest : public cni::PluginFixture {
 protected:
  void SetUp() override {
    cni::PluginFixture::SetUp();
    if (IsSkipped()) return;
    PutObjects();
    api_->SetInterceptor([](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
      if (!request.target.starts_with("/apis/policy.networking.k8s.io")) return std::nullopt;
      const bool objects = request.target.find("clusternetworkpolicies") != std::string::npos;
      return client::ApiResponse{
          .status = 200,
          .content_type = "application/json",
          .body = objects ? kPolicies : R"({"resources":[{"name":"clusternetworkpolicies"}]})"};
    });
    server_ = std::make_unique<client::FakeApiServer>(*host_, api_);
    WriteKubeconfig();
    outside_ = Outside();
    auto there = Routing(*outside_);
    const int eth0 = netlink::GetLink(there, "eth0")->index;
    ASSERT_TRUE(netlink::AddAddress(there, eth0, *IpPrefix::Parse(std::string(kOther) + "/24")));
    ASSERT_TRUE(netlink::AddRoute(there, {.destination = *IpPrefix::Parse("10.7.0.0/24"),
                                          .gateway = *IpAddress::Parse("192.0.2.1"),
                                          .link_index = eth0}));
  }
  void TearDown() override {
    Kill(agent_);
    Kill(proxy_);
    if (HasFailure()) {
      for (const char* log : {"/kube-cni.log", "/kube-proxy.log"}) {
        ADD_FAILURE() << ReadFile(dir_ + log).value_or("no log");
      }
    }
    server_.reset();
    cni::PluginFixture::TearDown();
  }

  void WriteKubeconfig() {
    ASSERT_TRUE(WriteFile(dir_ + "/kubeconfig",
                          "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                          "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:" +
                              std::to_string(server_->port()) +
                              "\"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
                              "users: [{name: u, user: {}}]\n"));
  }

  void PutObjects() {
    corev1::Namespace ns;
    ns.mutable_metadata()->set_name("x");
    api_->Put(ns);
    corev1::Node node;
    node.mutable_metadata()->set_name("n1");
    node.mutable_spec()->set_pod_cidr("10.7.0.0/24");
    node.mutable_spec()->add_pod_cidrs("10.7.0.0/24");
    auto& address = *node.mutable_status()->add_addresses();
    address.set_type("InternalIP");
    address.set_address("192.0.2.1");
    api_->Put(node);
    corev1::Pod pod;
    pod.mutable_metadata()->set_name("a");
    pod.mutable_metadata()->set_namespace_("x");
    pod.mutable_metadata()->set_uid("uid-a");
    pod.mutable_spec()->set_node_name("n1");
    api_->Put(pod);
    for (const auto& [name, ip] : {std::pair("db", kServer), {"other", kOther}}) {
      corev1::Service service;
      service.mutable_metadata()->set_name(name);
      service.mutable_metadata()->set_namespace_("x");
      service.mutable_spec()->set_cluster_ip("None");
      api_->Put(service);
      discoveryv1::EndpointSlice slice;
      slice.mutable_metadata()->set_name(std::string(name) + "-1");
      slice.mutable_metadata()->set_namespace_("x");
      (*slice.mutable_metadata()->mutable_labels())["kubernetes.io/service-name"] = name;
      slice.set_address_type("IPv4");
      slice.add_endpoints()->add_addresses(ip);
      api_->Put(slice);
    }
  }

  void Start(std::optional<event::Process>& process, const std::string& log, std::vector<std::string> argv) {
    Result<> started = host_->Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(
          process, event::Process::Start({.argv = std::move(argv), .output_file = dir_ + "/" + log}));
      return {};
    });
    ASSERT_TRUE(started) << started.error().message();
  }
  void StartAgent() {
    Start(agent_, "kube-cni.log",
          {KEELSON_KUBE_CNI, "--kubeconfig", dir_ + "/kubeconfig", "--node-name", "n1", "--bridge", "br0",
           "--network-policy", "only", "--cni-bin-dir", KEELSON_CNI_BIN});
  }
  void StartProxy() {
    ASSERT_TRUE(WriteFile(
        dir_ + "/proxy.yaml",
        "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n"
        "clusterCIDR: 10.7.0.0/24\nhealthzBindAddress: \"\"\nmetricsBindAddress: \"127.0.0.1:10249\"\n"
        "clientConnection: {kubeconfig: " +
            dir_ + "/kubeconfig}\nconntrack: {maxPerCore: 0, min: 0}\n"));
    Start(proxy_, "kube-proxy.log",
          {KEELSON_KUBE_PROXY, "--config", dir_ + "/proxy.yaml", "--hostname-override", "n1",
           "--cluster-dns-address", kDns, "--resolv-conf", "", "--ebpf-cgroup", dir_ + "/cgroup",
           "--ebpf-pin-directory", dir_ + "/pins"});
  }
  static void Kill(std::optional<event::Process>& process) {
    if (!process) return;
    EXPECT_TRUE(process->Signal(SIGKILL));
    EXPECT_TRUE(process->Wait({}));
    process.reset();
  }

  // Records of the DNS' answer to the pod; empty: none came.
  std::vector<std::string> Resolve(const std::string& name) {
    std::vector<std::string> out;
    (void)a_->netns.Run([&]() -> Result<> {
      UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const SocketAddress dns(*IpAddress::Parse(kDns), 53);
      const timeval limit{1, 0};
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
      const std::string query = proxy::dns::QueryPacket(name + ".x.svc.cluster.local", proxy::dns::kTypeA);
      char answer[proxy::dns::kMaxUdpSize];
      if (::connect(fd.get(), dns.get(), dns.size()) != 0) return ErrnoError("connect");
      if (::send(fd.get(), query.data(), query.size(), 0) < 0) return ErrnoError("send");
      const ssize_t size = ::recv(fd.get(), answer, sizeof answer, 0);
      if (size > 0) out = proxy::dns::Decode({answer, static_cast<size_t>(size)}).answer;
      return {};
    });
    return out;
  }
  bool Resolves(const std::string& name) {
    return Eventually([&] { return !Resolve(name).empty(); });
  }
  bool Opens(const char* to, uint16_t port) {
    return !cni::Ask(a_->netns, SOCK_STREAM, to, port, 10'000).empty();
  }
  bool Reaches(const char* to, uint16_t port) {
    return !cni::Ask(a_->netns, SOCK_STREAM, to, port, kSoon).empty();
  }

  void AddPod() {
    const std::string joined = Join(*a_, R"("isDefaultGateway":true,"hairpinMode":true,)");
    const cni::Reply added =
        Call("keelson-policy", "ADD", *a_,
             cni::WithPrevious(R"({"cniVersion":"1.1.0","name":"net","type":"keelson-policy"})", joined),
             {"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=x;K8S_POD_NAME=a;K8S_POD_UID=uid-a"});
    ASSERT_EQ(added.exit_code, 0) << added.output;
  }

  std::shared_ptr<client::FakeApi> api_ = std::make_shared<client::FakeApi>();
  std::unique_ptr<client::FakeApiServer> server_;
  std::unique_ptr<linux::NetNs> outside_;
  std::optional<event::Process> agent_, proxy_;
};

TEST_F(DaemonsTest, AnAnswerOfTheDnsOpensTheWayToItsAddress) {
  StartAgent();
  StartProxy();
  AddPod();
  cni::EchoServer web(*outside_, SOCK_STREAM, 80), more(*outside_, SOCK_STREAM, 81);
  EXPECT_FALSE(Reaches(kServer, 80)) << "no answer has named it yet";
  ASSERT_TRUE(Resolves("db"));
  // The first packet after the answer passes: no second try is needed.
  EXPECT_THAT(Resolve("db"), Contains(EndsWith(std::string(" A ") + kServer)));
  EXPECT_TRUE(Opens(kServer, 80));
  EXPECT_FALSE(Reaches(kServer, 81)) << "another port";
  ASSERT_TRUE(Resolves("other"));
  EXPECT_FALSE(Reaches(kOther, 80)) << "no policy has this name";

  Kill(agent_);
  Kill(proxy_);
  EXPECT_TRUE(Opens(kServer, 80)) << "the kernel keeps what has been given";
  EXPECT_FALSE(Reaches(kOther, 80));
  StartAgent();
  StartProxy();
  ASSERT_TRUE(Resolves("db"));
  EXPECT_TRUE(Opens(kServer, 80));
  EXPECT_FALSE(Reaches(kOther, 80));
}

}  // namespace
}  // namespace keelson::policies
