// Network probes of containers on a real containerd, in their pods' network namespaces.
#include "kubelet/probe/testing/grpc_health_server.h"
#include "kubelet/testing/containerd_test.h"

namespace keelson::kubelet {
namespace {

const corev1::ContainerStatus* StatusOf(const corev1::Pod* pod, const std::string& container) {
  if (!pod) return nullptr;
  for (const auto& status : pod->status().container_statuses()) {
    if (status.name() == container) return &status;
  }
  return nullptr;
}

class ProbesTest : public ContainerdTest {
 protected:
  bool AwaitReady(const std::string& pod, const std::string& container, bool ready) {
    return harness_->Await(pod, [&](const corev1::Pod* now) {
      const auto* status = StatusOf(now, container);
      return status && status->ready() == ready;
    });
  }
  bool AwaitRestarted(const std::string& pod, const std::string& container) {
    return harness_->Await(pod, [&](const corev1::Pod* now) {
      const auto* status = StatusOf(now, container);
      return status && status->restart_count() > 0;
    });
  }
  void CreateAskingForGrpc(int port) {
    const std::string at = R"("grpc":{"port":)" + std::to_string(port) + R"(,"service":)";
    harness_->Create(R"json({"metadata":{"name":"host"},"spec":{"hostNetwork":true,
      "terminationGracePeriodSeconds":1,"containers":[{"name":"main","image":"busybox:test","command":["sleep","100"],
        "readinessProbe":{)json" +
                     at + R"json("ready"},"periodSeconds":1},"livenessProbe":{)json" + at +
                     R"json("alive"},"periodSeconds":1,"failureThreshold":1}}]}})json");
  }
  void Delete(const std::string& name) {
    harness_->Delete(name, 0);
    EXPECT_TRUE(AwaitGone(name));
  }
};

// An HTTP server that serves files, and a plain listener.
constexpr char kWeb[] =
    R"json({"metadata":{"name":"web"},"spec":{"terminationGracePeriodSeconds":1,"containers":[
  {"name":"http","image":"busybox:test",
   "command":["sh","-c","mkdir -p /tmp/www; touch /tmp/www/alive; exec busybox httpd -f -p 8080 -h /tmp/www"],
   "ports":[{"name":"web","containerPort":8080}],
   "startupProbe":{"httpGet":{"path":"/alive","port":"web"},"periodSeconds":1,"failureThreshold":30},
   "readinessProbe":{"httpGet":{"path":"/ready","port":8080},"periodSeconds":1,"failureThreshold":1},
   "livenessProbe":{"httpGet":{"path":"/alive","port":"web"},"periodSeconds":1,"failureThreshold":1}},
  {"name":"tcp","image":"busybox:test","command":["sh","-c",
     "while [ ! -e /tmp/open ]; do sleep 0.1; done; exec busybox httpd -f -p 8081 -h /tmp"],
   "readinessProbe":{"tcpSocket":{"port":8081},"periodSeconds":1}}]}})json";

TEST_F(ProbesTest, HttpTcpAndGrpcDecide) {
  harness_->Create(kWeb);
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) {
    const auto* http = StatusOf(pod, "http");
    return http && http->started();
  })) << harness_->Get("web").ShortDebugString();
  const corev1::Pod begun = harness_->Get("web");
  EXPECT_FALSE(StatusOf(&begun, "http")->ready());
  EXPECT_EQ(Exec("http", {"touch", "/tmp/www/ready"}), "");
  EXPECT_TRUE(AwaitReady("web", "http", true));
  EXPECT_EQ(Exec("tcp", {"touch", "/tmp/open"}), "");
  EXPECT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();

  // On the node's own network, where the test's server is.
  GrpcHealthServer server("0.0.0.0");
  server.Set("ready", false);
  server.Set("alive", true);
  CreateAskingForGrpc(server.port());
  ASSERT_TRUE(harness_->Await("host", [](const corev1::Pod* pod) {
    const auto* main = StatusOf(pod, "main");
    return main && main->state().has_running();
  })) << harness_->Get("host").ShortDebugString();
  EXPECT_TRUE(AwaitReady("host", "main", false));
  server.Set("ready", true);
  EXPECT_TRUE(AwaitReady("host", "main", true)) << harness_->Get("host").ShortDebugString();

  // The opposite case.
  EXPECT_EQ(Exec("http", {"busybox", "rm", "/tmp/www/ready"}), "");
  EXPECT_TRUE(AwaitReady("web", "http", false));
  EXPECT_EQ(Exec("http", {"busybox", "rm", "/tmp/www/alive"}), "");
  server.Set("alive", false);
  EXPECT_TRUE(AwaitRestarted("web", "http")) << harness_->Get("web").ShortDebugString();
  EXPECT_TRUE(AwaitRestarted("host", "main")) << harness_->Get("host").ShortDebugString();
  const corev1::Pod web = harness_->Get("web");
  EXPECT_EQ(StatusOf(&web, "tcp")->restart_count(), 0) << "only the one that does not live";
  Delete("host");
  Delete("web");
}

// A command that hangs has failed once its time is up.
TEST_F(ProbesTest, ACommandHasItsTimeout) {
  harness_->Create(
      R"json({"metadata":{"name":"hangs"},"spec":{"terminationGracePeriodSeconds":1,"containers":[
    {"name":"main","image":"busybox:test","command":["sleep","100"],
     "readinessProbe":{"exec":{"command":["sleep","100"]},"timeoutSeconds":1,"periodSeconds":1},
     "livenessProbe":{"exec":{"command":["sleep","100"]},"timeoutSeconds":1,"periodSeconds":1,"failureThreshold":1}}]}})json");
  EXPECT_TRUE(AwaitRestarted("hangs", "main")) << harness_->Get("hangs").ShortDebugString();
  const corev1::Pod hangs = harness_->Get("hangs");
  EXPECT_FALSE(StatusOf(&hangs, "main")->ready());
  Delete("hangs");
}

}  // namespace
}  // namespace keelson::kubelet
