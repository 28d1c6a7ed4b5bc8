// A kubelet on a real containerd with a full root file system: running pods continue, terminations are
// reported, checkpoints survive, and pending work continues when space is free again.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "kubelet/testing/containerd_test.h"

namespace keelson::kubelet {
namespace {

class FullDiskTest : public ContainerdTest {
 protected:
  void Configure(Settings& settings) override {
    settings.config.cpu_manager_policy = "static";
    settings.config.reserved_system_cpus = "0";
    harness_->ManageResources();
    ASSERT_TRUE(MakeDirs(root()));
    ASSERT_TRUE(mounter_->MountTmpfs(root(), "size=512k"));
    SetWord("one");
  }
  std::string root() const { return dir_ + "/kubelet"; }
  void SetWord(const std::string& word) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name("settings");
    map.mutable_metadata()->set_namespace_("default");
    (*map.mutable_data())["word"] = word;
    harness_->fake_api().Put(map);
  }
  void Fill() {
    auto file = OpenFile(root() + "/filler", O_WRONLY | O_CREAT | O_APPEND);
    ASSERT_TRUE(file);
    const std::string page(4096, 'f');
    while (::write(file->get(), page.data(), page.size()) > 0) {
    }
    ASSERT_EQ(errno, ENOSPC);
  }
  corev1::Pod Create(const std::string& name, const std::string& script,
                     const std::string& resources = "{}") {
    return harness_->Create(R"json({"metadata":{"name":")json" + name +
                            R"json("},"spec":{"restartPolicy":"Never","terminationGracePeriodSeconds":1,
        "containers":[{"name":"main","image":"busybox:test","command":["sh","-c",")json" +
                            script + R"json("],"resources":)json" + resources +
                            R"json(,"volumeMounts":[{"name":"v","mountPath":"/v"}]}],
        "volumes":[{"name":"v","configMap":{"name":"settings"}}]}})json");
  }
  std::string Run(const std::string& pod, const std::string& script) {
    auto result = harness_->backend().Run({"default", pod, "", "main"}, {"sh", "-c", script},
                                          std::chrono::seconds(10), {});
    return result ? result->output : "error: " + result.error().message();
  }
  bool IsTold(const std::string& pod, const std::string& reason, const std::string& words) {
    const auto events = harness_->api().List<corev1::Event>("default");
    for (const corev1::Event& event : *events) {
      if (event.involved_object().name() == pod && event.reason() == reason &&
          event.message().find(words) != std::string::npos) {
        return true;
      }
    }
    return false;
  }
};

TEST_F(FullDiskTest, PodsStatusesAndPromisesSurvive) {
  const std::string forever = "trap 'exit 0' TERM; while true; do sleep 0.1; done";
  const std::string kept_uid =
      Create("kept", forever, R"({"limits":{"cpu":"1","memory":"32Mi"}})").metadata().uid();
  const std::string deleted_uid = Create("deleted", forever).metadata().uid();
  // Ends on request, with a longer termination message than there is space for.
  Create("ends", "until [ -e /tmp/end ]; do sleep 0.1; done; echo why > /dev/termination-log; exit 3");
  for (const char* name : {"kept", "deleted", "ends"}) {
    ASSERT_TRUE(harness_->Await(name, IsPodReady)) << harness_->Get(name).ShortDebugString();
  }
  const std::string cpus = "busybox awk '/^Cpus_allowed_list/ {print $2}' /proc/self/status";
  EXPECT_EQ(Run("kept", cpus), "1\n");
  const std::string container = harness_->Get("kept").status().container_statuses(0).container_id();
  const std::string promises = ReadFile(root() + "/cpu_manager_state").value_or("");
  EXPECT_NE(promises.find(kept_uid), std::string::npos) << promises;

  Fill();
  SetWord(std::string(64 << 10, 'x'));  // more than a pod that goes leaves
  Create("late", forever);
  ASSERT_TRUE(Eventually([&] { return IsTold("late", "FailedMount", "No space left on device"); }));
  EXPECT_EQ(Run("ends", "touch /tmp/end"), "");
  ASSERT_TRUE(AwaitPhase("ends", "Failed")) << harness_->Get("ends").ShortDebugString();
  const auto ended = harness_->Get("ends").status().container_statuses(0).state().terminated();
  EXPECT_EQ(ended.exit_code(), 3);
  EXPECT_EQ(ended.message(), "") << "the container's write has failed";
  harness_->Delete("deleted", 1);
  ASSERT_TRUE(AwaitGone("deleted"));
  EXPECT_FALSE(PathExists(root() + "/pods/" + deleted_uid));

  Fill();  // what has become free
  harness_->Stop();
  harness_->Start();
  EXPECT_TRUE(harness_->Await("kept", IsPodReady));
  EXPECT_EQ(ReadFile(root() + "/cpu_manager_state").value_or(""), promises);
  EXPECT_EQ(Run("kept", cpus + "; cat /v/word"), "1\none");
  EXPECT_EQ(harness_->Get("kept").status().container_statuses(0).container_id(), container);
  EXPECT_EQ(harness_->Get("ends").status().phase(), "Failed");
  EXPECT_EQ(harness_->Get("late").status().phase(), "Pending");

  ASSERT_TRUE(RemoveFile(root() + "/filler"));
  ASSERT_TRUE(harness_->Await("late", IsPodReady)) << harness_->Get("late").ShortDebugString();
  EXPECT_EQ(Run("late", "busybox wc -c < /v/word"), "65536\n");
}

}  // namespace
}  // namespace keelson::kubelet
