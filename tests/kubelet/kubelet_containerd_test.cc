// The kubelet with a real containerd, runc, CNI plugin and kernel; only the API server is fake.
#include <cstdio>

#include "kubelet/cri/testing/runtime_conformance.h"
#include "kubelet/testing/containerd_test.h"

namespace keelson::kubelet {
namespace {

constexpr char kPod[] = R"json({"metadata":{"name":"web","labels":{"app":"web"}},"spec":{
  "terminationGracePeriodSeconds":2,
  "initContainers":[{"name":"init","image":"busybox:test","command":["sh","-c","echo ready > /data/state"],
    "volumeMounts":[{"name":"data","mountPath":"/data"}]}],
  "containers":[{"name":"main","image":"busybox:test",
    "command":["sh","-c","trap 'exit 0' TERM; echo hello from $(POD); while true; do sleep 0.1; done"],
    "env":[{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
           {"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}],
    "resources":{"requests":{"cpu":"100m","memory":"32Mi"},"limits":{"memory":"64Mi"}},
    "readinessProbe":{"exec":{"command":["cat","/data/state"]},"periodSeconds":1},
    "volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"config","mountPath":"/config"},
                    {"name":"info","mountPath":"/info"},
                    {"name":"config","mountPath":"/one","subPath":"color"}]}],
  "volumes":[{"name":"data","emptyDir":{}},{"name":"config","configMap":{"name":"settings"}},
    {"name":"info","downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}}]}})json";

TEST_F(ContainerdTest, APodLives) {
  corev1::ConfigMap settings;
  settings.mutable_metadata()->set_name("settings");
  settings.mutable_metadata()->set_namespace_("default");
  (*settings.mutable_data())["color"] = "blue";
  ASSERT_TRUE(harness_->api().Create(settings));

  auto begin = std::chrono::steady_clock::now();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  std::printf("create to Ready: %d ms\n", static_cast<int>(took.count()));
  RecordProperty("create_to_ready_ms", static_cast<int>(took.count()));

  corev1::Pod running = harness_->Get("web");
  EXPECT_EQ(running.status().phase(), "Running");
  EXPECT_EQ(running.status().pod_ip().compare(0, 7, "10.213."), 0) << running.status().pod_ip();
  EXPECT_EQ(running.status().qos_class(), "Burstable");
  EXPECT_EQ(running.status().init_container_statuses(0).state().terminated().exit_code(), 0);
  EXPECT_EQ(Exec("main", {"cat", "/config/color"}), "blue");
  EXPECT_EQ(Exec("main", {"cat", "/one"}), "blue");
  EXPECT_EQ(Exec("main", {"cat", "/info/labels"}), "app=\"web\"");
  EXPECT_NE(Exec("main", {"env"}).find("IP=" + running.status().pod_ip() + "\n"), std::string::npos);
  EXPECT_NE(Exec("main", {"cat", "/etc/hosts"}).find(running.status().pod_ip() + "\tweb\n"),
            std::string::npos);
  EXPECT_EQ(Exec("main", {"hostname"}), "web\n");
  std::string cgroup = root_ + "/kubepods/burstable/pod" + pod.metadata().uid();
  EXPECT_FALSE(linux_cgroups_->Processes(cgroup).empty()) << "containers are in the pod's cgroup";
  auto log = harness_->backend().ContainerLog({"default", "web", "", "main"}, false);
  ASSERT_TRUE(log);
  EXPECT_NE(ReadFile(log->path)->find("stdout F hello from web"), std::string::npos);

  harness_->Stop();  // a new kubelet finds all as it is
  harness_->Start();
  corev1::Pod probe = harness_->Create(
      R"({"metadata":{"name":"other"},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"busybox:test",
          "command":["sh","-c","echo bye > /dev/termination-log; exit 3"]}]}})");
  ASSERT_TRUE(
      harness_->Await("other", [](const corev1::Pod* p) { return p && p->status().phase() == "Failed"; }));
  const auto other = harness_->Get("other");
  EXPECT_EQ(other.status().container_statuses(0).state().terminated().exit_code(), 3);
  EXPECT_EQ(other.status().container_statuses(0).state().terminated().message(), "bye\n");
  corev1::Pod still = harness_->Get("web");
  EXPECT_EQ(still.status().container_statuses(0).container_id(),
            running.status().container_statuses(0).container_id());
  EXPECT_EQ(still.status().container_statuses(0).restart_count(), 0);
  EXPECT_TRUE(IsPodReady(&still));

  begin = std::chrono::steady_clock::now();
  harness_->Delete("web", 2);
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* gone) { return gone == nullptr; }));
  took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  std::printf("delete to gone: %d ms\n", static_cast<int>(took.count()));
  EXPECT_FALSE(linux_cgroups_->Exists(cgroup));
  EXPECT_FALSE(PathExists(dir_ + "/kubelet/pods/" + pod.metadata().uid()));
  harness_->Delete("other", 0);
  EXPECT_TRUE(harness_->Await("other", [](const corev1::Pod* gone) { return gone == nullptr; }));
}

TEST_F(ContainerdTest, RuntimeDoesAsTheFakeDoes) {
  cri::SandboxConfig config;
  config.log_directory = dir_;
  config.cgroup_parent = root_ + "/conformance";
  // Outside the kubelet's pods, which would take it for an orphan.
  harness_->Stop();
  cri::CheckRuntimeConformance(*cri_.runtime, *cri_.images, "docker.io/library/busybox:test",
                               {"sh", "-c", "while true; do sleep 1; done"}, config);
}

TEST_F(ContainerdTest, HostNetworkPodRuns) {
  harness_->Create(
      R"json({"metadata":{"name":"host"},"spec":{"hostNetwork":true,"restartPolicy":"Never","containers":[
      {"name":"c","image":"busybox:test","command":["sh","-c","cat /etc/hosts > /dev/termination-log"]}]}})json");
  ASSERT_TRUE(
      harness_->Await("host", [](const corev1::Pod* p) { return p && p->status().phase() == "Succeeded"; }));
  const auto pod = harness_->Get("host");
  EXPECT_EQ(pod.status().pod_ip(), "10.213.0.1");
  EXPECT_NE(pod.status().container_statuses(0).state().terminated().message().find("(host network)"),
            std::string::npos);
  harness_->Delete("host", 0);
  EXPECT_TRUE(harness_->Await("host", [](const corev1::Pod* gone) { return gone == nullptr; }));
}

TEST_F(ContainerdTest, MemoryLimitIsTold) {
  harness_->Create(
      R"json({"metadata":{"name":"hungry"},"spec":{"restartPolicy":"Never","containers":[{"name":"c",
      "image":"busybox:test","command":["sh","-c","x=x; while true; do x=$x$x; done"],
      "resources":{"limits":{"memory":"16Mi"}}}]}})json");
  ASSERT_TRUE(
      harness_->Await("hungry", [](const corev1::Pod* p) { return p && p->status().phase() == "Failed"; }));
  const auto pod = harness_->Get("hungry");
  EXPECT_EQ(pod.status().container_statuses(0).state().terminated().exit_code(), 137);
  EXPECT_EQ(pod.status().container_statuses(0).state().terminated().reason(), "OOMKilled");
  harness_->Delete("hungry", 0);
  EXPECT_TRUE(harness_->Await("hungry", [](const corev1::Pod* gone) { return gone == nullptr; }));
}

}  // namespace
}  // namespace keelson::kubelet
