// Whom the pages of a scheduler and of controllers trust where no flag names CAs, as kubeadm starts them.
#include <gmock/gmock.h>

#include "lib/crypto/testing/test_pki.h"
#include "tests/controlplane/roles.h"

namespace keelson::controlplane {
namespace {

using ::testing::HasSubstr;

class ClusterAuthentication : public Roles {
 protected:
  // With kubeadm's flags.
  std::unique_ptr<Process> StartPages(const std::string& role, const std::string& program,
                                      std::vector<std::string> more = {}) {
    const std::string conf = File("stock-" + program + ".conf");
    more.insert(more.begin(),
                {"--roles=" + role, "--kubeconfig=" + conf, "--authentication-kubeconfig=" + conf,
                 "--authorization-kubeconfig=" + conf, "--bind-address=127.0.0.1", "--secure-port=0"});
    return std::make_unique<Process>(File(program + std::to_string(++count_) + ".log"), std::move(more));
  }
  void LetRead(const std::string& program) {
    Kubectl({"-n", "kube-system", "create", "rolebinding", "reads-" + program,
             "--role=extension-apiserver-authentication-reader", "--user=stock-" + program});
  }
  void WritePair(const std::string& name, const crypto::TestCertificate& pair) {
    ASSERT_TRUE(WriteFile(File(name + ".crt"), pair.certificate_pem));
    ASSERT_TRUE(WriteFile(File(name + ".key"), pair.key_pem, 0600));
  }
  // The status of /metrics.
  std::string Metrics(const Process& process, const std::string& user,
                      const std::vector<std::string>& headers = {}) {
    std::vector<std::string> command = {
        "curl", "-sk", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", process.url() + "/metrics"};
    if (!user.empty()) {
      command.insert(command.end(), {"--cert", File(user + ".crt"), "--key", File(user + ".key")});
    }
    for (const std::string& header : headers) command.insert(command.end(), {"-H", header});
    return apiserver::RunProgram(command).out;
  }
  void AwaitPages(const Process& process) {
    ASSERT_TRUE(Eventually([&] { return !process.url().empty(); })) << process.Log();
    ASSERT_TRUE(Eventually([&] { return Curl(process.url() + "/healthz").out.ends_with("\n200"); }))
        << process.Log();
  }
  // Names a CA of proxies and the headers in which they name users.
  void TrustProxiesOf(const crypto::TestPki& pki) {
    std::string ca;
    for (const char c : pki.ca_pem()) ca += c == '\n' ? std::string("\\n") : std::string(1, c);
    Kubectl({"-n", "kube-system", "patch", "configmap", "extension-apiserver-authentication", "--type=merge",
             "-p",
             R"({"data":{"requestheader-client-ca-file":")" + ca +
                 R"(","requestheader-allowed-names":"[\"front\"]",)"
                 R"("requestheader-username-headers":"[\"X-Remote-User\"]",)"
                 R"("requestheader-group-headers":"[\"X-Remote-Group\"]",)"
                 R"("requestheader-extra-headers-prefix":"[\"X-Remote-Extra-\"]"}})"});
  }

 private:
  int count_ = 0;
};

TEST_F(ClusterAuthentication, IsLookedUpAndFollowed) {
  LetRead("kube-scheduler");
  const crypto::TestPki other;
  WritePair("stranger", other.Client("admin", {"system:masters"}));
  WritePair("front", other.Client("front", {}));
  WritePair("back", other.Client("back", {"system:masters"}));
  const auto process = StartPages("scheduler", "kube-scheduler");
  AwaitPages(*process);
  EXPECT_EQ(Metrics(*process, "admin"), "200") << process->Log();
  EXPECT_EQ(Metrics(*process, "stranger"), "401");
  EXPECT_EQ(Metrics(*process, ""), "403");

  const std::vector<std::string> jane = {"X-Remote-User: jane", "X-Remote-Group: system:masters"};
  EXPECT_EQ(Metrics(*process, "front", jane), "401");
  TrustProxiesOf(other);
  EXPECT_TRUE(Eventually([&] { return Metrics(*process, "front", jane) == "200"; })) << process->Log();
  EXPECT_EQ(Metrics(*process, "front", {"X-Remote-User: jane"}), "403") << "a user without rights";
  EXPECT_EQ(Metrics(*process, "front"), "401") << "no client of its own";
  EXPECT_EQ(Metrics(*process, "back", jane), "401") << "its name is not allowed";
  EXPECT_EQ(Metrics(*process, "admin", jane), "200") << "as admin";
  EXPECT_EQ(Metrics(*process, "stranger"), "401") << "proxies' CA is none of clients";

  // What cannot be understood changes nothing.
  Kubectl({"-n", "kube-system", "patch", "configmap", "extension-apiserver-authentication", "--type=merge",
           "-p", R"({"data":{"requestheader-client-ca-file":"nonsense"}})"});
  EXPECT_TRUE(Eventually([&] { return process->Says("requestheader-client-ca-file has no certificate"); }))
      << process->Log();
  EXPECT_EQ(Metrics(*process, "front", jane), "200");
  EXPECT_EQ(process->End(SIGTERM), 0);
}

TEST_F(ClusterAuthentication, MayBeMissing) {
  // A scheduler starts and trusts no certificate until it may read the ConfigMap.
  const auto scheduler = StartPages("scheduler", "kube-scheduler");
  AwaitPages(*scheduler);
  EXPECT_TRUE(scheduler->Says("Continuing without authentication configuration")) << scheduler->Log();
  EXPECT_EQ(Metrics(*scheduler, "admin"), "401");
  LetRead("kube-scheduler");
  EXPECT_TRUE(Eventually([&] { return Metrics(*scheduler, "admin") == "200"; }, seconds(120)))
      << scheduler->Log();

  const auto skipping = StartPages("scheduler", "kube-scheduler", {"--authentication-skip-lookup"});
  AwaitPages(*skipping);
  EXPECT_EQ(Metrics(*skipping, "admin"), "403") << "no certificate is asked for";

  // Controllers do not start; their own role would let them read it.
  cluster_->AddUser("stranger", {});
  const std::string stranger = "--authentication-kubeconfig=" + File("stranger.conf");
  const auto controllers = StartPages("controllers", "kube-controller-manager", {stranger});
  EXPECT_EQ(controllers->Wait(), 1);
  EXPECT_TRUE(controllers->Says("unable to load configmap based request-header-client-ca-file"))
      << controllers->Log();
  const auto tolerant = StartPages("controllers", "kube-controller-manager",
                                   {stranger, "--authentication-tolerate-lookup-failure"});
  AwaitPages(*tolerant);
  EXPECT_EQ(Metrics(*tolerant, "admin"), "401");
}

TEST_F(ClusterAuthentication, FlagsWin) {
  const crypto::TestPki proxies;
  WritePair("front", proxies.Client("front", {}));
  const auto process = StartPages("controllers", "kube-controller-manager",
                                  {"--client-ca-file=" + cluster_->pki().ca_file(),
                                   "--requestheader-client-ca-file=" + proxies.ca_file()});
  AwaitPages(*process);
  EXPECT_EQ(Metrics(*process, "admin"), "200") << process->Log();
  EXPECT_EQ(Metrics(*process, "front", {"x-remote-user: jane", "x-remote-group: system:masters"}), "200");
  EXPECT_EQ(Metrics(*process, "front"), "401");
}

}  // namespace
}  // namespace keelson::controlplane
