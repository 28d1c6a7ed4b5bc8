#include "kubelet/kubelet.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include "kubelet/cri/fake.h"
#include "kubelet/testing/fixture.h"
#include "lib/base/file.h"
#include "lib/k8s/pod_util.h"

namespace keelson::kubelet {
namespace {

class CgroupNames : public PodCgroups {  // thread safe
 public:
  Result<> Start(const NodeContext&) override { return {}; }
  Result<> Ensure(const corev1::Pod& pod, const NodeContext&) override {
    MutexLock lock(mutex_);
    uids_.insert(pod.metadata().uid());
    return {};
  }
  std::string Parent(const corev1::Pod& pod) const override { return "/kubepods/pod" + pod.metadata().uid(); }
  Result<> Remove(const std::string& uid) override {
    MutexLock lock(mutex_);
    uids_.erase(uid);
    return {};
  }
  std::set<std::string> Uids() const override {
    MutexLock lock(mutex_);
    return uids_;
  }
  linux::CgroupUsage Usage(const corev1::Pod&) const override { return {}; }

 private:
  mutable Mutex mutex_;
  std::set<std::string> uids_ GUARDED_BY(mutex_);
};

class KubeletTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/kubelet_test.XXXXXX";
    dir_ = ::mkdtemp(name);
    harness_ = std::make_unique<KubeletHarness>(runtime_, runtime_, cgroups_, mounter_, dir_, "10.7.0.1");
    runtime_.AddImage("img:1");
  }
  void TearDown() override {
    harness_.reset();
    (void)RemoveTree(dir_);
  }
  static std::string Waiting(const corev1::Pod* pod) {
    if (!pod || pod->status().container_statuses().empty()) return "";
    return pod->status().container_statuses(0).state().waiting().reason();
  }
  std::string dir_;
  cri::FakeRuntime runtime_;
  NoMounts mounter_;
  CgroupNames cgroups_;
  std::unique_ptr<KubeletHarness> harness_;
};

constexpr char kPod[] =
    R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"img:1"}]}})";

TEST_F(KubeletTest, RegistersTheNode) {
  harness_->Start();
  // It may be registered before the runtime has said that it is ready.
  auto changes = harness_->api().Watch(api::ResourceOf<corev1::Node>(), "", {});
  ASSERT_TRUE(changes) << changes.error().message();
  corev1::Node node;
  while (!k8s::IsReady(node)) {
    Result<client::WatchEvent> event = (*changes)->Next(std::stop_token());
    ASSERT_TRUE(event) << event.error().message();
    ASSERT_TRUE(client::RestClient::DecodeInto(event->raw, node));
  }
  EXPECT_EQ(node.metadata().name(), "node-under-test");
  EXPECT_EQ(node.metadata().labels().at("kubernetes.io/os"), "linux");
  EXPECT_EQ(node.status().addresses(0).address(), "10.7.0.1");
  EXPECT_GT(api::Amount::Of(node.status().capacity().at("memory")).Value(), 0);
}

TEST_F(KubeletTest, RunsAPodToItsEnd) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  corev1::Pod running = harness_->Get("web");
  EXPECT_EQ(running.status().phase(), "Running");
  EXPECT_EQ(running.status().host_ip(), "10.7.0.1");
  EXPECT_FALSE(running.status().pod_ip().empty());
  EXPECT_EQ(runtime_.LastSandboxConfig(pod.metadata().uid()).cgroup_parent,
            "/kubepods/pod" + pod.metadata().uid());
  harness_->Delete("web", 5);
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* gone) { return gone == nullptr; }));
  EXPECT_EQ(runtime_.LastGrace(), std::chrono::seconds(5));
  EXPECT_FALSE(PathExists(dir_ + "/kubelet/pods/" + pod.metadata().uid()));
  EXPECT_TRUE(cgroups_.Uids().empty());
  runtime_.Await([&] { return runtime_.Count("RemovePodSandbox web") > 0; });
}

TEST_F(KubeletTest, RestartOfTheKubeletDisturbsNothing) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  std::string id = harness_->Get("web").status().container_statuses(0).container_id();
  size_t made = runtime_.Count("CreateContainer main");
  harness_->Stop();
  harness_->Start();
  corev1::Pod second =
      harness_->Create(R"({"metadata":{"name":"two"},"spec":{"containers":[{"name":"x","image":"img:1"}]}})");
  ASSERT_TRUE(harness_->Await("two", IsPodReady));
  EXPECT_EQ(harness_->Get("web").status().container_statuses(0).container_id(), id);
  EXPECT_EQ(harness_->Get("web").status().container_statuses(0).restart_count(), 0);
  EXPECT_EQ(runtime_.Count("CreateContainer main"), made);
  EXPECT_EQ(runtime_.Count("StopContainer main"), 0u);
}

// As the control plane does with the pods of a node that has fallen silent.
TEST_F(KubeletTest, StatusThatOthersChangedIsPutRight) {
  harness_->settings().config.sync_frequency = std::chrono::hours(1);
  harness_->Start();
  harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  corev1::Pod pod = harness_->Get("web");
  for (auto& condition : *pod.mutable_status()->mutable_conditions())
    if (condition.type() == "Ready") condition.set_status("False");
  auto stored = harness_->api().UpdateStatus(pod);
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_TRUE(harness_->Await("web", IsPodReady));
}

TEST_F(KubeletTest, PodsDeletedMeanwhileAreRemoved) {
  harness_->Start();
  harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  harness_->Stop();
  harness_->Delete("web", 0);
  harness_->Start();
  runtime_.Await([&] { return runtime_.Count("RemovePodSandbox web") > 0; });
  EXPECT_EQ(runtime_.ListContainers({}, {})->size(), 0u);
}

TEST_F(KubeletTest, ExitedContainerIsRestartedThenHeldBack) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  runtime_.ExitOnStart("main", 3);
  runtime_.ExitContainer(pod.metadata().uid(), "main", 3);
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* p) { return Waiting(p) == "CrashLoopBackOff"; }));
  corev1::Pod held = harness_->Get("web");
  const auto& status = held.status().container_statuses(0);
  EXPECT_EQ(status.restart_count(), 1);
  EXPECT_EQ(status.last_state().terminated().exit_code(), 3);
  EXPECT_NE(status.state().waiting().message().find("back-off 10s restarting failed container=main"),
            std::string::npos);
}

TEST_F(KubeletTest, JobLikePodsSucceedAndFail) {
  harness_->Start();
  runtime_.ExitOnStart("good", 0);
  runtime_.ExitOnStart("bad", 7);
  harness_->Create(
      R"({"metadata":{"name":"a"},"spec":{"restartPolicy":"Never","initContainers":[{"name":"good","image":"img:1"}],
      "containers":[{"name":"bad","image":"img:1"}]}})");
  ASSERT_TRUE(
      harness_->Await("a", [](const corev1::Pod* p) { return p && p->status().phase() == "Failed"; }));
  EXPECT_EQ(harness_->Get("a").status().container_statuses(0).state().terminated().exit_code(), 7);
  harness_->Create(
      R"({"metadata":{"name":"b"},"spec":{"restartPolicy":"OnFailure","containers":[{"name":"good","image":"img:1"}]}})");
  ASSERT_TRUE(
      harness_->Await("b", [](const corev1::Pod* p) { return p && p->status().phase() == "Succeeded"; }));
}

TEST_F(KubeletTest, SaysWhyAPodDoesNotRun) {
  harness_->Start();
  harness_->Create(
      R"({"metadata":{"name":"noimage"},"spec":{"containers":[{"name":"c","image":"absent:1"}]}})");
  ASSERT_TRUE(harness_->Await("noimage", [](const corev1::Pod* p) { return Waiting(p) == "ErrImagePull"; }));
  harness_->Create(R"({"metadata":{"name":"noconfig"},"spec":{"containers":[{"name":"c","image":"img:1",
      "envFrom":[{"configMapRef":{"name":"absent"}}]}]}})");
  ASSERT_TRUE(harness_->Await(
      "noconfig", [](const corev1::Pod* p) { return Waiting(p) == "CreateContainerConfigError"; }));
  harness_->Create(R"({"metadata":{"name":"toobig"},"spec":{"containers":[{"name":"c","image":"img:1",
      "resources":{"requests":{"cpu":"100k"}}}]}})");
  ASSERT_TRUE(harness_->Await("toobig",
                              [](const corev1::Pod* p) { return p && p->status().reason() == "OutOfcpu"; }));
  EXPECT_EQ(harness_->Get("toobig").status().phase(), "Failed");
}

TEST_F(KubeletTest, LogsAreFound) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  server::ContainerRef ref{"default", "web", "", "main"};
  auto log = harness_->backend().ContainerLog(ref, false);
  ASSERT_TRUE(log) << log.error().message();
  EXPECT_EQ(log->path, dir_ + "/logs/default_web_" + pod.metadata().uid() + "/main/0.log");
  EXPECT_TRUE(log->running);
  EXPECT_FALSE(harness_->backend().ContainerLog(ref, true));
  ref.container = "absent";
  EXPECT_EQ(harness_->backend().ContainerLog(ref, false).error().code(), Code::kNotFound);
}

class StaticPodTest : public KubeletTest {
 protected:
  void SetUp() override {
    KubeletTest::SetUp();
    manifests_ = dir_ + "/manifests";
    ASSERT_TRUE(MakeDirs(manifests_));
    harness_->settings().config.static_pod_path = manifests_;
  }
  void Write(const std::string& container) {
    ASSERT_TRUE(WriteFileAtomic(
        manifests_ + "/web.yaml",
        "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: " + container +
            ", image: 'img:1'}]}}"));
  }
  std::string manifests_;
};

constexpr char kMirror[] = "web-node-under-test";

TEST_F(StaticPodTest, RunsAndIsMirrored) {
  Write("main");
  harness_->Start();
  ASSERT_TRUE(harness_->Await(kMirror, IsPodReady));
  corev1::Pod mirror = harness_->Get(kMirror);
  EXPECT_TRUE(k8s::IsMirror(mirror));
  EXPECT_EQ(mirror.metadata().owner_references(0).name(), "node-under-test");
  EXPECT_EQ(mirror.status().container_statuses(0).name(), "main");
  // The mirror is a picture only: its end does not end the pod.
  const std::string uid = mirror.metadata().uid();
  harness_->Delete(kMirror, 0);
  ASSERT_TRUE(harness_->Await(
      kMirror, [&](const corev1::Pod* pod) { return IsPodReady(pod) && pod->metadata().uid() != uid; }));
  EXPECT_EQ(runtime_.Count("StopContainer main"), 0u);
  // Another manifest is another pod.
  Write("other");
  ASSERT_TRUE(harness_->Await(kMirror, [](const corev1::Pod* pod) {
    return IsPodReady(pod) && pod->status().container_statuses(0).name() == "other";
  }));
  EXPECT_EQ(runtime_.Count("StopContainer main"), 1u);
  ASSERT_TRUE(RemoveFile(manifests_ + "/web.yaml"));
  ASSERT_TRUE(harness_->Await(kMirror, [](const corev1::Pod* pod) { return pod == nullptr; }));
}

TEST_F(StaticPodTest, NeedsNoApiServer) {
  Write("main");
  harness_->Start(true);
  runtime_.Await([&] { return runtime_.Count("StartContainer main") > 0; });
  ASSERT_TRUE(RemoveFile(manifests_ + "/web.yaml"));
  runtime_.Await([&] { return runtime_.Count("RemovePodSandbox web-node-under-test") > 0; });
}

TEST_F(KubeletTest, ACriticalPodPushesOthersOut) {
  harness_->Start();
  corev1::Node node = *harness_->api().Get<corev1::Node>("", "node-under-test");
  const std::string cpus = node.status().allocatable().at("cpu").string();
  const std::string request = R"("resources":{"requests":{"cpu":")" + cpus + R"("}})";
  harness_->Create(R"({"metadata":{"name":"low"},"spec":{"containers":[{"name":"c","image":"img:1",)" +
                   request + "}]}}");
  ASSERT_TRUE(harness_->Await("low", IsPodReady));
  harness_->Create(
      R"({"metadata":{"name":"critical"},"spec":{"priority":2000000000,"containers":[{"name":"k","image":"img:1",)" +
      request + "}]}}");
  ASSERT_TRUE(harness_->Await("critical", IsPodReady));
  ASSERT_TRUE(harness_->Await(
      "low", [](const corev1::Pod* pod) { return pod && pod->status().phase() == "Failed"; }));
  corev1::Pod low = harness_->Get("low");
  EXPECT_EQ(low.status().reason(), "Preempting");
  EXPECT_EQ(low.status().message(), "Preempted in order to admit critical pod");
  const corev1::PodCondition* target = k8s::FindCondition(low.status(), k8s::kDisruptionTarget);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->reason(), "TerminationByKubelet");
}

}  // namespace
}  // namespace keelson::kubelet
