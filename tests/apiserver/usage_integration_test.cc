// kubectl top against the real program, with a fake kubelet whose node uses half a core.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include <fmt/format.h>

#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/http/server/server.h"
#include "tests/apiserver/cluster_test.h"

namespace keelson::apiserver {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Serves /metrics/resource. The counters follow the clock, so that any two samples give the same rate.
class Kubelet {
 public:
  explicit Kubelet(const crypto::TestPki& pki) {
    http::ServerOptions options;
    options.tls.emplace();
    options.tls->certificate_file = pki.server_cert_file();
    options.tls->key_file = pki.server_key_file();
    options.tls->client_ca_file = pki.ca_file();
    auto listening = http::Server::Listen(std::move(options),
                                          [this](auto request, auto writer) { Answer(*request, *writer); });
    if (!listening) abort();
    server_ = std::move(*listening);
    thread_ = std::jthread([this](std::stop_token stop) { (void)server_->Run(stop, {}); });
  }
  uint16_t port() const { return server_->port(); }
  void SetPods(std::vector<std::string> pods) {
    MutexLock lock(mutex_);
    pods_ = std::move(pods);
  }
  void SetStatus(int status) {
    MutexLock lock(mutex_);
    status_ = status;
  }
  // Waits until `count` more responses are processed.
  bool AwaitRounds(int count) {
    MutexLock lock(mutex_);
    const int goal = asked_ + count + 1;
    while (asked_ < goal) {
      if (changed_.wait_for(mutex_, std::chrono::seconds(30)) == std::cv_status::timeout) return false;
    }
    return true;
  }

 private:
  void Answer(const http::ServerRequest& request, http::ResponseWriter& writer) {
    using std::chrono::duration_cast;
    const int64_t millis =
        duration_cast<std::chrono::milliseconds>(Clock::Real().Now().time_since_epoch()).count();
    const double seconds = static_cast<double>(millis % 1000000000) / 1000;
    MutexLock lock(mutex_);
    std::string body =
        fmt::format("node_cpu_usage_seconds_total {} {}\nnode_memory_working_set_bytes 2147483648 {}\n",
                    seconds / 2, millis, millis);
    for (const std::string& pod : pods_) {
      for (const char* container : {"main", "side"}) {
        const std::string labels = fmt::format("{{container=\"{}\",namespace=\"{}\",pod=\"{}\"}}", container,
                                               pod.substr(0, pod.find('/')), pod.substr(pod.find('/') + 1));
        body += fmt::format(
            "container_cpu_usage_seconds_total{} {} {}\ncontainer_memory_working_set_bytes{} 10485760 {}\n",
            labels, seconds / 5, millis, labels, millis);
      }
    }
    const int status = request.path == "/metrics/resource" && request.peer ? status_ : 404;
    writer.Reply(status, {{"Content-Type", "text/plain"}}, std::move(body));
    ++asked_;
    changed_.notify_all();
  }

  Mutex mutex_;
  CondVar changed_;
  int asked_ KEELSON_GUARDED_BY(mutex_) = 0, status_ KEELSON_GUARDED_BY(mutex_) = 200;
  std::vector<std::string> pods_ KEELSON_GUARDED_BY(mutex_);
  std::unique_ptr<http::Server> server_;
  std::jthread thread_;
};

class UsageApi : public ClusterTest {
 protected:
  static void SetUpTestSuite() { Start({"--metric-resolution=1s"}); }

  void AddNode(const std::string& name, uint16_t kubelet_port) {
    Kubectl({"create", "-f", "-"}, "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + "}\n");
    Kubectl({"patch", "node", name, "--subresource=status", "--type=merge", "-p",
             fmt::format(
                 R"({{"status":{{"addresses":[{{"type":"InternalIP","address":"127.0.0.1"}}],)"
                 R"("daemonEndpoints":{{"kubeletEndpoint":{{"Port":{}}}}},)"
                 R"("capacity":{{"cpu":"4","memory":"8Gi"}},"allocatable":{{"cpu":"4","memory":"8Gi"}}}}}})",
                 kubelet_port)});
  }
  void AddPod(const std::string& name, const std::string& node, const char* phase) {
    Kubectl({"create", "-f", "-"}, "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
                                       ", labels: {app: " + name + "}}\nspec: {nodeName: " + node +
                                       ", containers: [{name: main, image: i}, {name: side, image: i}]}\n");
    Kubectl({"patch", "pod", name, "--subresource=status", "--type=merge", "-p",
             fmt::format(R"({{"status":{{"phase":"{}"}}}})", phase)});
  }
};

TEST_F(UsageApi, KubectlTop) {
  Kubelet kubelet(cluster_->pki());
  AddNode("busy", kubelet.port());
  AddNode("mute", 1);  // a closed port
  AddPod("web", "busy", "Running");
  AddPod("job", "busy", "Succeeded");
  AddPod("elsewhere", "mute", "Running");
  kubelet.SetPods({ns_ + "/web", ns_ + "/job", ns_ + "/elsewhere", ns_ + "/unheard-of"});
  ASSERT_TRUE(kubelet.AwaitRounds(2));

  const std::string nodes = Kubectl({"top", "node", "--no-headers"});
  EXPECT_THAT(nodes, ContainsRegex("busy +(499|500|501)m +12% +2048Mi +25%"));
  const std::string pods = Kubectl({"top", "pod", "--no-headers"});
  EXPECT_THAT(pods, ContainsRegex("^web +(399|400|401)m +20Mi"));
  // It has ended; another node's; none at all.
  EXPECT_THAT(pods, Not(testing::AnyOf(HasSubstr("job"), HasSubstr("elsewhere"), HasSubstr("unheard"))));
  const std::string containers = Kubectl({"top", "pod", "web", "--containers", "--no-headers"});
  EXPECT_THAT(containers, ContainsRegex("web +main +(199|200|201)m +10Mi"));
  EXPECT_THAT(containers, ContainsRegex("web +side +(199|200|201)m +10Mi"));
  EXPECT_THAT(Kubectl({"top", "pod", "-l", "app=web", "--no-headers"}), HasSubstr("web"));
  EXPECT_THAT(Run({"top", "pod", "-l", "app=other"}).err, HasSubstr("No resources found"));

  const std::string table = Kubectl({"get", "pods.metrics.k8s.io"});
  EXPECT_THAT(table, ContainsRegex("NAME +CPU +MEMORY +WINDOW"));
  EXPECT_THAT(table, ContainsRegex("web +[0-9]+[mnu] +20Mi +[0-9.]+m?s"));
  const std::string base = "/apis/metrics.k8s.io/v1beta1/namespaces/" + ns_ + "/pods";
  const std::string list = Kubectl({"get", "--raw", base + "?labelSelector=app%3Dweb"});
  EXPECT_THAT(list,
              HasSubstr(R"({"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},)"));
  EXPECT_THAT(list, HasSubstr(R"("labels":{"app":"web"})"));
  EXPECT_THAT(Kubectl({"get", "--raw", base + "?fieldSelector=metadata.name%3Djob"}),
              HasSubstr(R"("items":[])"));

  struct Case {
    const char *path, *message;
  };
  for (const Case& c : {Case{"/job", "podmetrics.metrics.k8s.io \\\"{}/job\\\" not found"},
                        Case{"/none", "pods \\\"none\\\" not found"},
                        Case{"?labelSelector=%3D", "found '=', expected: !, identifier"}}) {
    std::string message = c.message;
    if (size_t at = message.find("{}"); at != std::string::npos) message.replace(at, 2, ns_);
    http::ClientRequest request;
    request.target = base + c.path;
    EXPECT_THAT(cluster_->Do(request).body, HasSubstr(message)) << c.path;
  }
  http::ClientRequest request;
  request.target = "/apis/metrics.k8s.io/v1beta1/nodes/mute";
  EXPECT_THAT(cluster_->Do(request).body, HasSubstr("nodemetrics.metrics.k8s.io \\\"mute\\\" not found"));
  request.method = "DELETE";
  EXPECT_EQ(cluster_->Do(request).status, 405);

  // A node that cannot be scraped any more is left out.
  kubelet.SetStatus(500);
  ASSERT_TRUE(kubelet.AwaitRounds(1));
  request = {};
  request.target = "/apis/metrics.k8s.io/v1beta1/nodes";
  EXPECT_THAT(cluster_->Do(request).body, HasSubstr(R"("items":[])"));
}

TEST_F(UsageApi, WhoMayReadPodsMayReadTheirUsage) {
  cluster_->AddUser("viewer", {});
  Kubectl({"create", "rolebinding", "viewer", "--clusterrole=view", "--user=viewer"});
  for (const char* what : {"pods.metrics.k8s.io", "pods"}) {
    EXPECT_EQ(Kubectl({"auth", "can-i", "list", what, "--as=viewer"}), "yes\n") << what;
  }
  EXPECT_EQ(
      cluster_->Kubectl({"-n", "default", "auth", "can-i", "list", "pods.metrics.k8s.io", "--as=viewer"}).out,
      "no\n");
}

}  // namespace
}  // namespace keelson::apiserver
