// Start and termination of containers on a real containerd: hooks, signals, crashes.
#include <cstdlib>

#include "kubelet/container/labels.h"
#include "kubelet/gc/containers.h"
#include "kubelet/testing/containerd_test.h"
#include "kubelet/testing/metric_value.h"

namespace keelson::kubelet {
namespace {

class LifecycleTest : public ContainerdTest {
 protected:
  void Configure(Settings& settings) override {
    settings.config.max_container_restart_period = std::chrono::seconds(1);
    settings.config.feature_gates["ContainerStopSignals"] = true;
  }
  std::vector<cri::Container> ContainersOf(const corev1::Pod& pod) {
    cri::Filter filter;
    filter.labels[kPodUidLabel] = pod.metadata().uid();
    auto found = cri_.runtime->ListContainers(filter);
    EXPECT_TRUE(found);
    return found ? *found : std::vector<cri::Container>();
  }
};

// `server` records its requests: it starts before the other containers and ends after them.
constexpr char kHooks[] = R"json({"metadata":{"name":"web"},"spec":{"terminationGracePeriodSeconds":20,
  "initContainers":[{"name":"server","image":"busybox:test","restartPolicy":"Always","command":["sh","-c",
      "mkdir -p /tmp/www/cgi-bin; cp /out/hook.sh /tmp/www/cgi-bin/hook; busybox httpd -p 8080 -h /tmp/www; trap 'exit 0' TERM; while true; do sleep 0.1; done"],
    "startupProbe":{"tcpSocket":{"port":8080},"periodSeconds":1,"failureThreshold":30},
    "volumeMounts":[{"name":"out","mountPath":"/out"}]}],
  "containers":[
   {"name":"main","image":"busybox:test","command":["sh","-c",
      "trap 'echo TERM >> /out/calls; exit 0' TERM; touch /out/main.up; while true; do sleep 0.1; done"],
    "lifecycle":{"postStart":{"httpGet":{"path":"/cgi-bin/hook?postStart","port":8080}},
      "preStop":{"httpGet":{"path":"/cgi-bin/hook?preStop","port":8080,"httpHeaders":[{"name":"Cookie","value":"c"}]}}},
    "volumeMounts":[{"name":"out","mountPath":"/out"}]},
   {"name":"sleeper","image":"busybox:test","command":["sh","-c",
      "trap 'cat /proc/uptime > /out/uptime; exit 0' TERM; touch /out/sleeper.up; while true; do sleep 0.1; done"],
    "lifecycle":{"preStop":{"sleep":{"seconds":2}}},"volumeMounts":[{"name":"out","mountPath":"/out"}]},
   {"name":"signal","image":"busybox:test","command":["sh","-c",
      "for s in TERM USR1; do trap \"echo SIG$s > /out/signal; exit 0\" $s; done; touch /out/signal.up; while true; do sleep 0.1; done"],
    "lifecycle":{"stopSignal":"SIGUSR1"},"volumeMounts":[{"name":"out","mountPath":"/out"}]},
   {"name":"image-signal","image":"hup:test","command":["sh","-c",
      "for s in TERM HUP; do trap \"echo SIG$s > /out/image-signal; exit 0\" $s; done; touch /out/image-signal.up; while true; do sleep 0.1; done"],
    "volumeMounts":[{"name":"out","mountPath":"/out"}]}],
  "volumes":[{"name":"out","hostPath":{"path":"OUT"}}]}})json";

TEST_F(LifecycleTest, HooksOverHttpSleepAndStopSignals) {
  const std::string out = dir_ + "/out";
  ASSERT_TRUE(MakeDirs(out));
  ASSERT_TRUE(WriteFile(out + "/hook.sh",
                        "#!/bin/sh\necho \"$QUERY_STRING$HTTP_COOKIE\" >> /out/calls\n"
                        "printf 'Content-Type: text/plain\\r\\n\\r\\nok'\n"));
  ASSERT_EQ(::chmod((out + "/hook.sh").c_str(), 0755), 0);
  const std::string ctr = "ctr --address " + containerd_->socket() + " -n k8s.io images ";
  const std::string copy = "skopeo --insecure-policy copy -q ";
  const std::string image =
      "set -e; exec > " + dir_ + "/hup.log 2>&1; cd " + dir_ + "; " + ctr +
      "export busybox.tar docker.io/library/busybox:test; " + copy +
      "oci-archive:busybox.tar oci:oci:busybox; umoci config --image oci:busybox --tag hup "
      "--config.stopsignal SIGHUP; " +
      copy + "oci:oci:hup oci-archive:hup.tar:docker.io/library/hup:test; " + ctr + "import hup.tar";
  ASSERT_EQ(std::system(image.c_str()), 0) << ReadFile(dir_ + "/hup.log").value_or("");
  std::string pod = kHooks;
  pod.replace(pod.find("OUT\""), 3, out);
  harness_->Create(pod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  EXPECT_EQ(ReadFile(out + "/calls").value_or(""), "postStart\n");
  // A shell ignores a signal before its traps are set.
  for (const char* name : {"main", "sleeper", "signal", "image-signal"}) {
    ASSERT_TRUE(Eventually([&] { return PathExists(out + "/" + name + ".up"); })) << name;
  }
  const std::string signal = harness_->Get("web").status().container_statuses(2).stop_signal();
  const double begin = std::strtod(ReadFile("/proc/uptime")->c_str(), nullptr);
  harness_->Delete("web", 20);
  ASSERT_TRUE(AwaitGone("web"));
  EXPECT_EQ(ReadFile(out + "/calls").value_or(""), "postStart\npreStopc\nTERM\n");
  EXPECT_GE(std::strtod(ReadFile(out + "/uptime").value_or("0").c_str(), nullptr) - begin, 2);
  // Runtimes without support for stop signals report none, and use the image's.
  EXPECT_EQ(ReadFile(out + "/signal").value_or(""), signal.empty() ? "SIGTERM\n" : "SIGUSR1\n");
  EXPECT_EQ(ReadFile(out + "/image-signal").value_or(""), "SIGHUP\n");
}

TEST_F(LifecycleTest, CrashLoopsSlowDownAndLeaveLittle) {
  const corev1::Pod loop =
      harness_->Create(R"json({"metadata":{"name":"loop"},"spec":{"restartPolicy":"OnFailure",
    "containers":[{"name":"main","image":"busybox:test","volumeMounts":[{"name":"data","mountPath":"/data"}],
      "command":["sh","-c","echo x >> /data/runs; [ $(busybox wc -l < /data/runs) = 4 ]"]}],
    "volumes":[{"name":"data","emptyDir":{}}]}})json");
  const std::string said =
      "back-off 1s restarting failed container=main pod=loop_default(" + loop.metadata().uid() + ")";
  ASSERT_TRUE(harness_->Await("loop", [&](const corev1::Pod* pod) {
    if (!pod || pod->status().container_statuses().empty()) return false;
    const auto& main = pod->status().container_statuses(0);
    return main.state().waiting().reason() == "CrashLoopBackOff" &&
           main.state().waiting().message() == said && main.last_state().terminated().exit_code() == 1 &&
           pod->status().phase() == "Running";
  })) << harness_->Get("loop").ShortDebugString();
  ASSERT_TRUE(AwaitPhase("loop", "Succeeded")) << harness_->Get("loop").ShortDebugString();
  EXPECT_EQ(harness_->Get("loop").status().container_statuses(0).restart_count(), 3);
  // The last run and one more before it.
  ASSERT_TRUE(Eventually([&] { return ContainersOf(loop).size() == 2; }));
  std::map<uint32_t, cri::ContainerStatus> runs;
  for (const cri::Container& container : ContainersOf(loop)) {
    if (auto status = cri_.runtime->GetContainerStatus(container.id)) runs[status->attempt] = *status;
  }
  ASSERT_EQ(runs.count(2) + runs.count(3), 2u);
  EXPECT_GE(runs[3].created_at - runs[2].finished_at, 1'000'000'000);

  const Paths paths{dir_ + "/kubelet", dir_ + "/logs"};
  EXPECT_TRUE(PathExists(runs[3].log_path));
  ASSERT_TRUE(CollectContainers(*cri_.runtime, paths, {std::chrono::milliseconds(0), 0, -1},
                                Clock::Real().Now(), {}));
  EXPECT_TRUE(ContainersOf(loop).empty());
  EXPECT_FALSE(PathExists(runs[2].log_path) || PathExists(runs[3].log_path));
  EXPECT_EQ(harness_->Get("loop").status().phase(), "Succeeded");
  harness_->Delete("loop", 0);
  EXPECT_TRUE(AwaitGone("loop"));
  // containerd supports CRI events since 1.7.
  const auto version = cri_.runtime->GetVersion();
  ASSERT_TRUE(version);
  const bool tells = version->version.find("1.6.") == std::string::npos;
  EXPECT_EQ(MetricValue("kubelet_evented_pleg_connection_latency_seconds_count") > 0, tells)
      << version->version;
}

}  // namespace
}  // namespace keelson::kubelet
