// A kubelet whose root directory is on a file system without room.
#include <sys/mount.h>

#include "kubelet/testing/fault_test.h"
#include "lib/linux/mount.h"

namespace keelson::kubelet {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class DiskFullTest : public FaultTest {
 protected:
  void SetUp() override {
    FaultTest::SetUp();
    ASSERT_TRUE(MakeDirs(root()));
    if (::mount("none", root().c_str(), "tmpfs", 0, "size=256k") != 0) {
      GTEST_SKIP() << "cannot mount a file system: " << ErrnoError("mount tmpfs").message();
    }
    mounted_ = true;
    SetSize(1);
  }
  void TearDown() override {
    harness_->Stop();
    if (mounted_) ::umount2(root().c_str(), MNT_DETACH);
    FaultTest::TearDown();
  }
  std::string root() const { return dir_ + "/kubelet"; }
  // A ConfigMap whose one key has so many kilobytes.
  void SetSize(size_t kilobytes) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name("settings");
    map.mutable_metadata()->set_namespace_("default");
    (*map.mutable_data())["key"] = std::string(kilobytes << 10, 'x');
    harness_->fake_api().Put(map);
  }
  void Fill() {
    auto file = OpenFile(root() + "/filler", O_WRONLY | O_CREAT | O_TRUNC);
    ASSERT_TRUE(file);
    const std::string page(4096, 'f');
    while (::write(file->get(), page.data(), page.size()) > 0) {
    }
    ASSERT_EQ(errno, ENOSPC);
  }
  void MakeRoom() { ASSERT_TRUE(RemoveFile(root() + "/filler")); }
  corev1::Pod CreateReader(const std::string& name) {
    return harness_->Create(R"({"metadata":{"name":")" + name + R"("},"spec":{"containers":[{"name":"main",
        "image":"img:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}],
        "volumes":[{"name":"v","configMap":{"name":"settings"}}]}})");
  }
  std::string Volume(const corev1::Pod& pod) {
    return root() + "/pods/" + pod.metadata().uid() + "/volumes/kubernetes.io~configmap/v";
  }
  // The last event about the pod with this reason; "": none.
  std::string Told(const std::string& pod, const std::string& reason) {
    std::string out;
    auto events = harness_->api().List<corev1::Event>("default");
    for (const corev1::Event& event : *events) {
      if (event.involved_object().name() == pod && event.reason() == reason) out = event.message();
    }
    return out;
  }
  bool mounted_ = false;
};

TEST_F(DiskFullTest, IsToldAndGotOver) {
  harness_->Start();
  corev1::Pod early = CreateReader("early"), crashed = CreateReader("crashed"),
              doomed = CreateReader("doomed");
  for (const char* name : {"early", "crashed", "doomed"}) {
    ASSERT_TRUE(PassUntil(seconds(5), name, IsPodReady));
  }
  SetSize(32);
  Fill();
  // A new pod does not start, and reports why.
  corev1::Pod late = CreateReader("late");
  ASSERT_TRUE(PassUntil(minutes(1), [&] {
    return Told("late", "FailedMount").find("No space left on device") != std::string::npos;
  })) << Told("late", "FailedMount");
  EXPECT_TRUE(PassUntil(seconds(1), "late",
                        [](const corev1::Pod* p) { return WaitingFor(p) == "ContainerCreating"; }));
  // Running pods keep their complete content; ending pods end.
  Pass(minutes(3), seconds(5));
  EXPECT_EQ(ReadFile(Volume(early) + "/key")->size(), 1024u);
  EXPECT_TRUE(harness_->Sees("early", IsPodReady));
  harness_->Delete("doomed", 1);
  EXPECT_TRUE(PassUntil(seconds(10), "doomed", IsGone));
  EXPECT_FALSE(PathExists(root() + "/pods/" + doomed.metadata().uid()));
  const std::string hosts = *ReadFile(root() + "/pods/" + crashed.metadata().uid() + "/etc-hosts");
  Fill();  // what has become free
  runtime_.ExitContainer(crashed.metadata().uid(), "main", 1);
  Pass(seconds(30));
  EXPECT_EQ(*ReadFile(root() + "/pods/" + crashed.metadata().uid() + "/etc-hosts"), hosts);
  // A starting kubelet disturbs nothing.
  harness_->Stop();
  harness_->Start();
  Pass(minutes(1));
  EXPECT_TRUE(harness_->Sees("early", IsPodReady));
  EXPECT_EQ(harness_->Get("early").status().container_statuses(0).restart_count(), 0);

  MakeRoom();
  EXPECT_TRUE(PassUntil(minutes(1), "late", IsPodReady));
  EXPECT_TRUE(PassUntil(minutes(2), "crashed", IsPodReady));
  ASSERT_TRUE(PassUntil(minutes(3), [&] { return ReadFile(Volume(early) + "/key")->size() == 32u << 10; }));
  for (const corev1::Pod& pod : {early, late}) {
    const std::string volume = Volume(pod);
    EXPECT_EQ(ReadFile(volume + "/key")->size(), 32u << 10);
    auto names = ListDir(volume);
    EXPECT_EQ(names->size(), 3u) << "the key, ..data and the directory that it leads to";
  }
}

}  // namespace
}  // namespace keelson::kubelet
