#include <gtest/gtest.h>

#include <filesystem>

#include "kubelet/cm/cgroups/pod_cgroups.h"
#include "kubelet/cm/cgroups/qos_cgroup_limits.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

class FakeUnits : public linux::SystemdUnits {
 public:
  explicit FakeUnits(std::vector<std::string>& log) : log_(log) {}
  Result<> Start(const std::string& name, const linux::UnitProperties& properties) override {
    std::string line = "start " + name;
    for (const auto& [key, value] : properties) {
      if (const uint64_t* number = std::get_if<uint64_t>(&value)) {
        line += " " + key + "=" + std::to_string(*number);
      }
    }
    log_.push_back(line);
    return {};
  }
  Result<> Stop(const std::string& name) override {
    log_.push_back("stop " + name);
    return {};
  }

 private:
  std::vector<std::string>& log_;
};

corev1::Pod BurstablePod(const std::string& uid) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_uid(uid);
  corev1::Container& container = *pod.mutable_spec()->add_containers();
  (*container.mutable_resources()->mutable_requests())["cpu"].set_string("500m");
  (*container.mutable_resources()->mutable_limits())["cpu"].set_string("750m");
  (*container.mutable_resources()->mutable_limits())["memory"].set_string("64Mi");
  return pod;
}

class CgroupDriverTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-cgroups-XXXXXX";
    root_ = mkdtemp(name);
    for (const char* controller : {"memory", "cpu", "pids"}) {
      ASSERT_TRUE(MakeDirs(root_ + "/" + controller));
      controllers_[controller] = root_ + "/" + controller;
    }
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string root_;
  std::map<std::string, std::string> controllers_;
  std::vector<std::string> log_;
  NodeContext node_;
};

TEST_F(CgroupDriverTest, NamesOfBothDrivers) {
  linux::Cgroups cgroups("", controllers_);
  auto files = NewCgroupfsDriver(cgroups);
  auto units = NewSystemdDriver(cgroups, std::make_unique<FakeUnits>(log_));
  const struct {
    CgroupName name;
    const char *file, *slice;
  } kCases[] = {{{}, "", ""},
                {{"kubepods"}, "/kubepods", "/kubepods.slice"},
                {{"kubepods", "pod0a-1b"}, "/kubepods/pod0a-1b", "/kubepods.slice/kubepods-pod0a_1b.slice"},
                {{"my-root", "kubepods", "burstable", "pod0a-1b"},
                 "/my-root/kubepods/burstable/pod0a-1b",
                 "/my_root.slice/my_root-kubepods.slice/my_root-kubepods-burstable.slice/"
                 "my_root-kubepods-burstable-pod0a_1b.slice"}};
  for (const auto& test : kCases) {
    EXPECT_EQ(files->Path(test.name), test.file);
    EXPECT_EQ(units->Path(test.name), test.slice);
    if (test.name.empty()) continue;
    CgroupName parent(test.name.begin(), test.name.end() - 1);
    std::string path = test.slice;
    EXPECT_EQ(units->LastPart(parent, path.substr(path.rfind('/') + 1)).value_or("?"), test.name.back());
  }
  EXPECT_FALSE(units->LastPart({"kubepods"}, "kubepods-pod1.scope"));
  EXPECT_FALSE(units->LastPart({"kubepods"}, "other-pod1.slice"));
  EXPECT_FALSE(units->LastPart({"kubepods"}, "kubepods-.slice"));
}

TEST_F(CgroupDriverTest, SystemdMakesSlicesWithTheLimits) {
  linux::Cgroups cgroups("", controllers_);
  CgroupOptions options;
  options.root = "/";
  options.pod_pids_limit = 100;
  options.all_pods.cpu_shares = 2048;
  options.all_pods.memory_limit_bytes = 1 << 30;
  auto pods = NewPodCgroups(cgroups, options, NewSystemdDriver(cgroups, std::make_unique<FakeUnits>(log_)));
  ASSERT_TRUE(pods->Start(node_));
  corev1::Pod pod = BurstablePod("0a-1b");
  ASSERT_TRUE(pods->Ensure(pod, node_));
  EXPECT_EQ(pods->Parent(pod), "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a_1b.slice");
  EXPECT_EQ(*ReadFile(root_ + "/memory" + pods->Parent(pod) + "/memory.limit_in_bytes"), "67108864");
  EXPECT_EQ(pods->Uids(), (std::set<std::string>{"0a-1b"}));
  EXPECT_EQ(log_,
            (std::vector<std::string>{
                "start kubepods.slice CPUShares=2048 MemoryLimit=1073741824",
                "start kubepods-besteffort.slice CPUShares=2", "start kubepods-burstable.slice CPUShares=2",
                "start kubepods-burstable-pod0a_1b.slice CPUShares=512 CPUQuotaPerSecUSec=750000 "
                "CPUQuotaPeriodUSec=100000 MemoryLimit=67108864 TasksMax=100"}));
  log_.clear();
  // Files in a real cgroup go with its directory.
  for (const auto& [name, mount] : controllers_) {
    for (const auto& file : std::filesystem::directory_iterator(mount + pods->Parent(pod))) {
      std::filesystem::remove(file.path());
    }
  }
  ASSERT_TRUE(pods->Remove("0a-1b"));
  EXPECT_EQ(log_, (std::vector<std::string>{"stop kubepods-burstable-pod0a_1b.slice"}));
  EXPECT_TRUE(pods->Uids().empty());
}

TEST_F(CgroupDriverTest, WhatIsSetAsideIsEnforced) {
  linux::Cgroups cgroups("", controllers_);
  CgroupOptions options;
  options.root = "/k";
  ReservedCgroup& system = options.reserved.emplace_back();
  system.what = "System Reserved";
  system.path = "/system";
  system.limits.memory_limit_bytes = 1 << 20;
  auto pods = NewPodCgroups(cgroups, options);
  auto started = pods->Start(node_);
  ASSERT_FALSE(started);
  EXPECT_EQ(
      started.error().message(),
      "failed to enforce System Reserved Cgroup Limits on \"/system\": \"/system\" cgroup does not exist");
  for (const auto& [name, mount] : controllers_) ASSERT_TRUE(MakeDirs(mount + "/system"));
  ASSERT_TRUE(pods->Start(node_));
  EXPECT_EQ(*ReadFile(root_ + "/memory/system/memory.limit_in_bytes"), "1048576");
  EXPECT_EQ(*ReadFile(root_ + "/cpu/k/kubepods/burstable/cpu.shares"), "2");
  auto pod = std::make_shared<corev1::Pod>(BurstablePod("a"));
  for (const bool first : {true, false}) {
    auto updated = pods->UpdateQosCgroups({pod, pod, pod}, node_);
    ASSERT_TRUE(updated);
    EXPECT_EQ(*updated, first);
  }
  EXPECT_EQ(*ReadFile(root_ + "/cpu/k/kubepods/burstable/cpu.shares"), "1536");
}

TEST(QosCgroupLimits, KeepMemoryForThosePromisedIt) {
  auto burstable = std::make_shared<corev1::Pod>(BurstablePod("b"));
  auto& resources = *burstable->mutable_spec()->mutable_containers(0)->mutable_resources();
  (*resources.mutable_requests())["memory"].set_string("100");
  auto guaranteed = std::make_shared<corev1::Pod>(*burstable);
  for (auto& [name, amount] :
       *guaranteed->mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits()) {
    amount =
        (*guaranteed->mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests())[name];
  }
  NodeContext node;
  QosCgroupLimits plain = PlanQosCgroupLimits({burstable, guaranteed}, node, std::nullopt, 1000);
  EXPECT_EQ(plain.burstable.cpu_shares, 512u);
  EXPECT_FALSE(plain.burstable.memory_limit_bytes || plain.all.memory_min_bytes);
  QosCgroupLimits kept = PlanQosCgroupLimits({burstable, burstable, guaranteed}, node, 50, 1000);
  EXPECT_EQ(kept.burstable.memory_limit_bytes, 950);
  EXPECT_EQ(kept.best_effort.memory_limit_bytes, 850);
  node.cgroup_v2 = node.memory_qos.on = node.memory_qos.tiered = true;
  QosCgroupLimits tiered = PlanQosCgroupLimits({burstable, burstable, guaranteed}, node, std::nullopt, 1000);
  EXPECT_EQ(tiered.all.memory_min_bytes, 100);
  EXPECT_EQ(tiered.all.memory_low_bytes, 200);
  EXPECT_EQ(tiered.burstable.memory_low_bytes, 200);
}

TEST(QosCgroupLimits, ReservationsAreReadAsUpstreamReadsThem) {
  EXPECT_EQ(*ParseQosReserved({}), std::nullopt);
  EXPECT_EQ(*ParseQosReserved({{"memory", "50%"}}), 50);
  const struct {
    const char *resource, *text, *error;
  } kCases[] = {
      {"cpu", "50%", "cannot reserve \"cpu\" resource"},
      {"memory", "50",
       "failed to parse percentage \"50\" for \"memory\" resource: percentage expected, got '50'"},
      {"memory", "x%",
       "failed to parse percentage \"x%\" for \"memory\" resource: invalid number in percentage 'x%'"},
      {"memory", "101%",
       "failed to parse percentage \"101%\" for \"memory\" resource: percentage must be between 0 and 100"}};
  for (const auto& test : kCases) {
    EXPECT_EQ(ParseQosReserved({{test.resource, test.text}}).error().message(), test.error);
  }
}

TEST_F(CgroupDriverTest, LimitsOnVersionTwo) {
  std::string unified = root_ + "/unified";
  ASSERT_TRUE(MakeDirs(unified));
  linux::Cgroups cgroups(unified, {});
  auto driver = NewSystemdDriver(cgroups, std::make_unique<FakeUnits>(log_));
  linux::CgroupLimits limits;
  limits.cpu_shares = 1024;
  limits.cpu_quota_us = 12345;
  limits.memory_limit_bytes = -1;
  limits.pids_max = -1;
  ASSERT_TRUE(driver->Create({"kubepods"}, limits));
  EXPECT_EQ(log_, (std::vector<std::string>{
                      "start kubepods.slice CPUWeight=39 CPUQuotaPerSecUSec=130000 CPUQuotaPeriodUSec=100000 "
                      "MemoryMax=18446744073709551615 TasksMax=18446744073709551615"}));
  EXPECT_EQ(*ReadFile(unified + "/kubepods.slice/cpu.max"), "12345 100000");
}

}  // namespace
}  // namespace keelson::kubelet
