// The process kube-cni with --network-policy=only, beside the reference plugins of Debian's package. The plugins make the
// node's bridge and the pods' addresses; keelson-policy is chained behind them.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "cni/lib/testing/plugin_fixture.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/types.h"
#include "lib/base/file.h"
#include "lib/base/testing/eventually.h"
#include "lib/client/testing/fake_api.h"
#include "lib/client/testing/fake_api_server.h"
#include "lib/event/process.h"

namespace keelson::cni::agent {
namespace {

namespace networkingv1 = api::networking::v1;

constexpr char kReference[] = "/usr/lib/cni";  // Debian: containernetworking-plugins
constexpr int kSoon = 250;                     // milliseconds

class PoliciesOnlyTest : public PluginFixture {
 protected:
  void SetUp() override {
    if (!PathExists(std::string(kReference) + "/bridge")) GTEST_SKIP() << kReference << " has no plugins";
    PluginFixture::SetUp();
    if (IsSkipped()) return;
    corev1::Namespace ns;
    ns.mutable_metadata()->set_name("x");
    api_->Put(ns);
    corev1::Node node;
    node.mutable_metadata()->set_name("n1");
    node.mutable_spec()->set_pod_cidr("10.7.0.0/24");
    node.mutable_spec()->add_pod_cidrs("10.7.0.0/24");
    api_->Put(node);
    server_ = std::make_unique<client::FakeApiServer>(*host_, api_);
    Start();
  }
  void TearDown() override {
    Stop();
    server_.reset();
    PluginFixture::TearDown();
  }

  void Start() {
    const std::string kubeconfig = dir_ + "/kubeconfig";
    ASSERT_TRUE(WriteFile(kubeconfig,
                          "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                          "clusters: [{name: c, cluster: {server: \"http://127.0.0.1:" +
                              std::to_string(server_->port()) +
                              "\"}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
                              "users: [{name: u, user: {}}]\n"));
    Result<> started = host_->Run([&]() -> Result<> {
      KEELSON_ASSIGN_OR_RETURN(
          process_,
          event::Process::Start(
              {.argv = {KEELSON_KUBE_CNI, "--kubeconfig", kubeconfig, "--node-name", "n1", "--bridge", "cni0",
                        "--network-policy", "only", "--cni-bin-dir", KEELSON_CNI_BIN},
               .output_file = dir_ + "/log"}));
      return {};
    });
    ASSERT_TRUE(started) << started.error().message();
  }
  void Stop() {
    if (!process_) return;
    EXPECT_TRUE(process_->Signal(SIGKILL));
    EXPECT_TRUE(process_->Wait({}));
    process_.reset();
  }
  std::string Log() const { return ReadFile(dir_ + "/log").value_or(""); }

  void PutPod(const std::string& name, const std::string& app) {
    corev1::Pod pod;
    pod.mutable_metadata()->set_name(name);
    pod.mutable_metadata()->set_namespace_("x");
    pod.mutable_metadata()->set_uid("uid-" + name);
    (*pod.mutable_metadata()->mutable_labels())["app"] = app;
    pod.mutable_spec()->set_node_name("n1");
    api_->Put(pod);
  }
  // ADD of the chain: the reference bridge, then ours.
  Reply Add(const Container& c, const std::string& name) {
    const std::string head = R"({"cniVersion":"1.0.0","name":"pods","type":")";
    Reply joined = Call(std::string(kReference) + "/bridge", "ADD", c,
                        head + R"(bridge","bridge":"cni0","isGateway":true,"hairpinMode":true,"ipam":{
                            "type":"host-local","dataDir":")" +
                            Ipam() + R"(","ranges":[[{"subnet":"10.7.0.0/24"}]],
                            "routes":[{"dst":"0.0.0.0/0"}]}})",
                        {std::string("CNI_PATH=") + kReference});
    EXPECT_EQ(joined.exit_code, 0) << joined.output;
    return Call(
        "keelson-policy", "ADD", c, WithPrevious(head + "keelson-policy\"}", joined.output),
        {"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=x;K8S_POD_NAME=" + name + ";K8S_POD_UID=uid-" + name});
  }
  bool Reaches(const linux::NetNs& from, const std::string& to, int patience = kSoon) {
    return !Ask(from, SOCK_STREAM, to, 80, patience).empty();
  }

  std::shared_ptr<client::FakeApi> api_ = std::make_shared<client::FakeApi>();
  std::unique_ptr<client::FakeApiServer> server_;
  std::optional<event::Process> process_;
};

TEST_F(PoliciesOnlyTest, HoldBesideTheReferencePlugins) {
  networkingv1::NetworkPolicy policy;
  policy.mutable_metadata()->set_name("web");
  policy.mutable_metadata()->set_namespace_("x");
  (*policy.mutable_spec()->mutable_pod_selector()->mutable_match_labels())["app"] = "web";
  policy.mutable_spec()->add_policy_types("Ingress");
  (*policy.mutable_spec()->add_ingress()->add_from()->mutable_pod_selector()->mutable_match_labels())["app"] =
      "friend";
  api_->Put(policy);
  Container c("c", dir_);
  PutPod("web", "web");
  PutPod("friend", "friend");
  PutPod("stranger", "stranger");
  for (const auto& [container, name] : {std::pair(a_.get(), "web"), {b_.get(), "friend"}, {&c, "stranger"}}) {
    Reply added = Add(*container, name);
    ASSERT_EQ(added.exit_code, 0) << added.output << Log();
  }
  EchoServer web(a_->netns, SOCK_STREAM, 80), open(c.netns, SOCK_STREAM, 80);
  EXPECT_TRUE(Reaches(b_->netns, "10.7.0.2", 10'000)) << Log();
  EXPECT_FALSE(Reaches(c.netns, "10.7.0.2"));
  EXPECT_TRUE(Reaches(*host_, "10.7.0.2", 10'000)) << "the node's probes";
  EXPECT_TRUE(Reaches(b_->netns, "10.7.0.4", 10'000)) << "no policy isolates it";
  // It leaves the other program's work alone.
  EXPECT_FALSE(Table(nft::Family::kInet, "keelson-agent"));
  Stop();
  EXPECT_FALSE(Reaches(c.netns, "10.7.0.2")) << "without an agent";
  Start();
  PutPod("stranger", "friend");
  EXPECT_TRUE(Eventually([&] { return Reaches(c.netns, "10.7.0.2"); })) << Log();
}

}  // namespace
}  // namespace keelson::cni::agent
