// Runs where PID 1 is systemd: below tests/systemd/run.sh, or under test/vm.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

// What `systemctl show` says of one property.
std::string Show(const std::string& unit, const std::string& property) {
  std::string command = "systemctl show --value -p " + property + " " + unit;
  FILE* out = ::popen(command.c_str(), "r");
  std::string text;
  for (int c = 0; out && (c = ::fgetc(out)) != EOF;) {
    if (c != '\n') text += static_cast<char>(c);
  }
  if (out) ::pclose(out);
  return text;
}

corev1::Pod BurstablePod(const std::string& uid, const std::string& memory) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_uid(uid);
  corev1::Container& container = *pod.mutable_spec()->add_containers();
  (*container.mutable_resources()->mutable_requests())["cpu"].set_string("500m");
  (*container.mutable_resources()->mutable_limits())["cpu"].set_string("1");
  (*container.mutable_resources()->mutable_limits())["memory"].set_string(memory);
  return pod;
}

class SystemdTest : public testing::Test {
 protected:
  void SetUp() override {
    auto units = linux::SystemdUnits::Connect();
    ASSERT_TRUE(units) << units.error().message();
    auto cgroups = linux::Cgroups::Detect();
    ASSERT_TRUE(cgroups) << cgroups.error().message();
    memory_file_ = cgroups->unified() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    memory_limit_ = cgroups->unified() ? "/memory.max" : "/memory.limit_in_bytes";
    property_ = cgroups->unified() ? "MemoryMax" : "MemoryLimit";
    CgroupOptions options;
    options.pod_pids_limit = 500;
    options.all_pods.memory_limit_bytes = 1 << 30;
    pods_ = NewPodCgroups(*cgroups, options, NewSystemdDriver(*cgroups, std::move(*units)));
    auto started = pods_->Start(node_);
    ASSERT_TRUE(started) << started.error().message();
  }
  std::string LimitOf(const corev1::Pod& pod) {
    auto text = ReadFile(memory_file_ + pods_->Parent(pod) + memory_limit_);
    return text ? text->substr(0, text->find('\n')) : text.error().message();
  }

  std::unique_ptr<PodCgroups> pods_;
  std::string memory_file_, memory_limit_, property_;
  NodeContext node_;
};

TEST_F(SystemdTest, PodsAreSlices) {
  EXPECT_EQ(Show("kubepods.slice", "ActiveState"), "active");
  EXPECT_EQ(Show("kubepods.slice", property_), "1073741824");
  const std::string slice = "kubepods-burstable-pod0a_1b.slice";
  corev1::Pod pod = BurstablePod("0a-1b", "64Mi");
  ASSERT_TRUE(pods_->Ensure(pod, node_));
  EXPECT_EQ(Show(slice, "ActiveState"), "active");
  EXPECT_EQ(Show(slice, property_), "67108864");
  EXPECT_EQ(Show(slice, "CPUQuotaPerSecUSec"), "1s");
  EXPECT_EQ(Show(slice, "TasksMax"), "500");
  EXPECT_EQ(LimitOf(pod), "67108864");
  // Again, with another limit: a slice that is there is changed.
  pod = BurstablePod("0a-1b", "32Mi");
  ASSERT_TRUE(pods_->Ensure(pod, node_));
  EXPECT_EQ(Show(slice, property_), "33554432");
  EXPECT_EQ(LimitOf(pod), "33554432");
  EXPECT_EQ(pods_->Uids(), (std::set<std::string>{"0a-1b"}));
  ASSERT_TRUE(pods_->Remove("0a-1b"));
  EXPECT_EQ(Show(slice, "ActiveState"), "inactive");
  EXPECT_TRUE(pods_->Uids().empty());
  ASSERT_TRUE(pods_->Remove("0a-1b"));
}

TEST_F(SystemdTest, LimitsStayWhenSystemdReloads) {
  corev1::Pod pod = BurstablePod("2c", "64Mi");
  ASSERT_TRUE(pods_->Ensure(pod, node_));
  ASSERT_EQ(::system("systemctl daemon-reload"), 0);
  EXPECT_EQ(LimitOf(pod), "67108864");
  ASSERT_EQ(::system("systemctl daemon-reexec"), 0);  // the connection breaks, and the client reconnects
  pod = BurstablePod("2c", "32Mi");
  auto ensured = pods_->Ensure(pod, node_);
  if (!ensured) ensured = pods_->Ensure(pod, node_);
  ASSERT_TRUE(ensured) << ensured.error().message();
  EXPECT_EQ(LimitOf(pod), "33554432");
  ASSERT_TRUE(pods_->Remove("2c"));
}

TEST_F(SystemdTest, WhatIsLeftInASliceEndsWithIt) {
  corev1::Pod pod = BurstablePod("3d", "64Mi");
  ASSERT_TRUE(pods_->Ensure(pod, node_));
  pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ASSERT_TRUE(WriteFile(memory_file_ + pods_->Parent(pod) + "/cgroup.procs", std::to_string(child)));
  (void)pods_->Remove("3d");  // false while the process is still on its way out
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_TRUE(pods_->Remove("3d"));
  EXPECT_FALSE(PathExists(memory_file_ + pods_->Parent(pod)));
}

}  // namespace
}  // namespace keelson::kubelet
