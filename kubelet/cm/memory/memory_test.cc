#include <gtest/gtest.h>

#include <filesystem>

#include "kubelet/cm/memory/memory_manager.h"
#include "kubelet/cm/topology/testing/fake_machine.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

constexpr int64_t kGi = int64_t{1} << 30;

class MemoryManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-memory-XXXXXX";
    directory_ = mkdtemp(name);
    options_.state_file = directory_ + "/memory_manager_state";
    options_.reserved = {{0, {{"memory", kGi}}}};
    options_.node_reserved = {{"memory", kGi}};
    Start();
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void Start() {
    auto made = MemoryManager::Make(machine_, options_);
    ASSERT_TRUE(made) << made.error().message();
    manager_ = std::move(*made);
  }
  std::string Allocate(const corev1::Pod& pod, const TopologyHint& affinity = {}) {
    for (const auto* list : {&pod.spec().init_containers(), &pod.spec().containers()}) {
      for (const auto& container : *list) {
        if (auto failure = manager_->Allocate(pod, container, affinity)) {
          return failure->reason + ": " + failure->message;
        }
      }
    }
    return "";
  }
  std::string NodesOf(const corev1::Pod& pod) {
    cri::ContainerConfig config;
    EXPECT_TRUE(manager_->Configure(pod, pod.spec().containers(0), config, {}));
    return config.resources.cpuset_mems;
  }
  std::string Hints(const corev1::Pod& pod) {
    std::string out;
    for (const auto& [type, hints] : manager_->PodHints(pod)) {
      out += type + ":";
      for (const auto& hint : hints) {
        out += " " + hint.nodes->to_string().substr(62) + (hint.preferred ? "!" : "");
      }
    }
    return out;
  }

  const MachineTopology machine_ = FakeMachine(2, 1, 2, 1, 8 * kGi);  // 7 and 8 GiB may be given
  std::string directory_;
  MemoryManagerOptions options_;
  std::unique_ptr<MemoryManager> manager_;
};

TEST_F(MemoryManagerTest, GivesTheFewestNodesThatHaveEnough) {
  corev1::Pod first = GuaranteedPod("first", "1", "6Gi"), second = GuaranteedPod("second", "1", "6Gi"),
              wide = GuaranteedPod("wide", "1", "10Gi");
  EXPECT_EQ(Hints(first), "memory: 01! 10! 11");
  EXPECT_EQ(Allocate(first), "");
  EXPECT_EQ(NodesOf(first), "0");
  EXPECT_EQ(Hints(second), "memory: 10!");  // node 0 is no longer free for a group
  EXPECT_EQ(Allocate(second), "");
  EXPECT_EQ(NodesOf(second), "1");
  EXPECT_EQ(Allocate(wide),
            "UnexpectedAdmissionError: Allocate failed due to [memorymanager] failed to get the default NUMA "
            "affinity, no NUMA "
            "nodes with enough memory is available, which is unexpected");
  manager_->Release("first");
  manager_->Release("second");
  EXPECT_EQ(Hints(wide), "memory: 11!");
  EXPECT_EQ(Allocate(wide), "");
  EXPECT_EQ(NodesOf(wide), "0-1");
  corev1::Pod small = GuaranteedPod("small", "1", "1Gi");
  EXPECT_EQ(Allocate(small), "");
  EXPECT_EQ(NodesOf(small), "0-1");  // beside the other, in its group
}

TEST_F(MemoryManagerTest, FollowsTheAgreementAndWidensIt) {
  corev1::Pod near = GuaranteedPod("near", "1", "1Gi"), wide = GuaranteedPod("wide", "1", "10Gi");
  EXPECT_EQ(Allocate(wide, {NumaMask("10"), false}), "");
  EXPECT_EQ(NodesOf(wide), "0-1");
  manager_->Release("wide");
  EXPECT_EQ(Allocate(near, {NumaMask("10"), true}), "");
  EXPECT_EQ(NodesOf(near), "1");
  EXPECT_EQ(Allocate(wide, {NumaMask("01"), false}),
            "UnexpectedAdmissionError: Allocate failed due to [memorymanager] failed to find NUMA nodes to "
            "extend the current "
            "topology hint, which is unexpected");
}

TEST_F(MemoryManagerTest, InitContainersMakeRoom) {
  corev1::Pod pod = GuaranteedPod("pod", "1", "5Gi");
  corev1::Container& init = *pod.mutable_spec()->add_init_containers();
  init = pod.spec().containers(0);
  init.set_name("init");
  EXPECT_EQ(Allocate(pod, {NumaMask("01"), true}), "");
  EXPECT_EQ(NodesOf(pod), "0");
  corev1::Pod other = GuaranteedPod("other", "1", "2Gi");
  EXPECT_EQ(Allocate(other, {NumaMask("01"), true}), "");  // 5 of 7 GiB are used, not 10
  EXPECT_EQ(NodesOf(other), "0");
}

TEST_F(MemoryManagerTest, OthersAreNotBound) {
  corev1::Pod pod = GuaranteedPod("burst", "1", "1Gi");
  pod.mutable_spec()->mutable_containers(0)->mutable_resources()->clear_limits();
  EXPECT_EQ(Allocate(pod), "");
  EXPECT_EQ(NodesOf(pod), "");
  EXPECT_TRUE(manager_->Uids().empty());
}

TEST_F(MemoryManagerTest, ARestartChangesNothing) {
  corev1::Pod pod = GuaranteedPod("pod", "1", "5Gi");
  EXPECT_EQ(Allocate(pod, {NumaMask("10"), true}), "");
  Start();
  EXPECT_EQ(manager_->Uids(), (std::set<std::string>{"pod"}));
  EXPECT_EQ(Allocate(pod), "");
  EXPECT_EQ(NodesOf(pod), "1");
  EXPECT_EQ(manager_->Granted("pod", "main")->amounts.at("memory"), 5 * kGi);
}

TEST_F(MemoryManagerTest, RefusesSettingsAndFilesThatDoNotFit) {
  ASSERT_TRUE(WriteFile(options_.state_file, "[]"));
  auto made = MemoryManager::Make(machine_, options_);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message().find("please drain this node"), std::string::npos);
  options_.node_reserved["memory"] = 2 * kGi;
  made = MemoryManager::Make(machine_, options_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message(),
            "the total amount \"1073741824\" of type \"memory\" is not equal to the value \"2147483648\" "
            "determined by Node "
            "Allocatable feature");
  options_.reserved = {{5, {{"memory", 2 * kGi}}}};
  EXPECT_FALSE(MemoryManager::Make(machine_, options_));
}

TEST_F(MemoryManagerTest, HugePagesAreMemoryOfTheirOwn) {
  MachineTopology machine = machine_;
  machine.nodes[1].huge_pages["hugepages-2Mi"] = kGi;
  auto made = MemoryManager::Make(machine, options_);
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->allocatable().at(1).at("memory"), 7 * kGi);
  corev1::Pod pod = GuaranteedPod("pod", "1", "1Gi");
  for (auto* list : {pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests(),
                     pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_limits()}) {
    (*list)["hugepages-2Mi"].set_string("512Mi");
  }
  auto hints = (*made)->Hints(pod, pod.spec().containers(0));
  ASSERT_EQ(hints.size(), 2u);
  EXPECT_EQ(hints["hugepages-2Mi"].size(), 2u);
  EXPECT_EQ(*hints["hugepages-2Mi"][0].nodes, NumaMask("10"));
}

}  // namespace
}  // namespace keelson::kubelet
