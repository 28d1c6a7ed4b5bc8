#include <gmock/gmock.h>

#include "csi/controller/health/health_monitor.h"
#include "csi/controller/health/node_watcher.h"
#include "csi/controller/testing/controller_test.h"

namespace keelson::csi::controller {
namespace {

class HealthTest : public ControllerTest {
 protected:
  void Start(const std::string& node = "") {
    StartControllers(
        [&](const Environment& environment) {
          controllers_.push_back(std::make_unique<HealthMonitor>(
              environment, HealthOptions{std::chrono::milliseconds(5), std::chrono::milliseconds(5)}));
        },
        node);
  }
  void PutVolume(const std::string& name, const std::string& more = "") {
    driver_->AddVolume("id-" + name, 1);
    Put<Volume>(R"({"metadata":{"name":")" + name +
                R"("},"spec":{"claimRef":{"namespace":"default","name":"claim-)" + name + R"(","uid":"uid-)" +
                name + R"("},"csi":{"driver":"disk.example.com","volumeHandle":"id-)" + name + R"("})" +
                more + R"(},"status":{"phase":"Bound"}})");
  }
  bool AwaitEvent(const std::string& reason, const std::string& text) {
    return Eventually([&] { return HasEvent(reason, text); });
  }
};

TEST_F(HealthTest, ListsConditions) {
  driver_->SetCapabilities({"LIST_VOLUMES", "GET_VOLUME", "VOLUME_CONDITION"});
  for (const char* name : {"a", "b", "c"}) PutVolume(name);
  driver_->SetAbnormal("id-c", "the disk is full");
  Start();
  ASSERT_TRUE(AwaitEvent("VolumeConditionAbnormal", "the disk is full"));
  driver_->SetAbnormal("id-c", "");
  EXPECT_TRUE(AwaitEvent("VolumeConditionNormal", "The Volume returns to the healthy state"));
  const auto events = api_.List<corev1::Event>();
  ASSERT_EQ(events->size(), 2U);
  for (const corev1::Event& event : *events) {
    EXPECT_EQ(event.involved_object().kind(), "PersistentVolumeClaim");
    EXPECT_EQ(event.involved_object().name(), "claim-c");
  }
  EXPECT_EQ(driver_->Count("ControllerGetVolume"), 0);
}

TEST_F(HealthTest, AsksVolumeByVolume) {
  driver_->SetCapabilities({"GET_VOLUME", "VOLUME_CONDITION"});
  PutVolume("a");
  driver_->SetAbnormal("id-a", "broken");
  Start();
  EXPECT_TRUE(AwaitEvent("VolumeConditionAbnormal", "broken"));
  PutVolume("b");
  driver_->SetAbnormal("id-b", "lost");
  EXPECT_TRUE(AwaitEvent("VolumeConditionAbnormal", "lost"));
  EXPECT_EQ(driver_->Count("ListVolumes"), 0);
}

TEST_F(HealthTest, ANewProcessKnowsWhatWasTold) {
  driver_->SetCapabilities({"LIST_VOLUMES", "VOLUME_CONDITION"});
  PutVolume("a");
  driver_->SetAbnormal("id-a", "broken");
  Start();
  ASSERT_TRUE(AwaitEvent("VolumeConditionAbnormal", "broken"));
  StopControllers();
  driver_->SetAbnormal("id-a", "");
  Start();
  EXPECT_TRUE(AwaitEvent("VolumeConditionNormal", "healthy"));
}

TEST_F(HealthTest, DriversWithoutConditionsAreLeftAlone) {
  driver_->SetCapabilities({"LIST_VOLUMES", "GET_VOLUME"});
  PutVolume("a");
  driver_->SetAbnormal("id-a", "broken");
  Start();
  // A driver that comes back may be a new version.
  driver_->Stop();
  driver_->SetCapabilities({"LIST_VOLUMES", "VOLUME_CONDITION"});
  driver_->Start();
  StopControllers();
  EXPECT_EQ(driver_->Count("ListVolumes"), 0);
  EXPECT_EQ(driver_->Count("ControllerGetVolume"), 0);
  Start();
  EXPECT_TRUE(AwaitEvent("VolumeConditionAbnormal", "broken"));
}

TEST_F(HealthTest, OnlyTheNodesVolumes) {
  driver_->SetCapabilities({"LIST_VOLUMES", "VOLUME_CONDITION"});
  driver_->SetNodeTopology({{"host", "h1"}});
  auto at = [](const std::string& host) {
    return R"(,"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"host","operator":"In",
        "values":[")" +
           host + R"("]}]}]}})";
  };
  PutVolume("there", at("h2"));
  PutVolume("here", at("h1"));
  driver_->SetAbnormal("id-there", "broken there");
  driver_->SetAbnormal("id-here", "broken here");
  Start("n1");
  ASSERT_TRUE(AwaitEvent("VolumeConditionAbnormal", "broken here"));
  EXPECT_FALSE(HasEvent("VolumeConditionAbnormal", "broken there"));
}

class NodeWatcherTest : public HealthTest {
 protected:
  void SetUp() override {
    HealthTest::SetUp();
    PutVolume("a");
    Put<corev1::Pod>(
        R"({"metadata":{"name":"p","namespace":"default"},"spec":{"nodeName":"n1","volumes":[{"name":"d",
        "persistentVolumeClaim":{"claimName":"claim-a"}}]}})");
    PutNode("True");
  }
  void PutNode(const std::string& ready) {
    Put<corev1::Node>(R"({"metadata":{"name":"n1"},"status":{"conditions":[{"type":"Ready","status":")" +
                      ready + R"("}]}})");
  }
  void Start(std::chrono::nanoseconds patience) {
    StartControllers([&](const Environment& environment) {
      controllers_.push_back(std::make_unique<NodeWatcher>(
          environment, NodeWatcherOptions{patience, std::chrono::milliseconds(5)}));
    });
  }
};

TEST_F(NodeWatcherTest, TellsClaimsOfFailedNodes) {
  Start(std::chrono::milliseconds(20));
  PutNode("Unknown");
  EXPECT_TRUE(AwaitEvent(
      "NodeFailed", "Pods: [ p ] consuming PVC: claim-a in namespace: default are now on a failed node: n1"));
  PutNode("True");
  EXPECT_TRUE(AwaitEvent("NodeRecovered", "Node: n1 recovered"));
  ASSERT_TRUE(api_.Delete<corev1::Node>("", "n1"));
  EXPECT_TRUE(Eventually([&] {
    const auto events = api_.List<corev1::Event>();
    return std::any_of(events->begin(), events->end(), [](const corev1::Event& event) {
      return event.reason() == "NodeFailed" && event.count() == 2;
    });
  }));
}

TEST_F(NodeWatcherTest, AShortFailureIsNone) {
  Put<corev1::Node>(R"({"metadata":{"name":"n2"}})");
  Start(std::chrono::hours(1));
  PutNode("False");
  PutNode("True");
  // The queue hands keys out in order.
  Put<corev1::Pod>(
      R"({"metadata":{"name":"q","namespace":"default"},"spec":{"nodeName":"n2","volumes":[{"name":"d",
      "persistentVolumeClaim":{"claimName":"claim-a"}}]}})");
  ASSERT_TRUE(api_.Delete<corev1::Node>("", "n2"));
  EXPECT_TRUE(AwaitEvent("NodeFailed", "Pods: [ q ]"));
  EXPECT_FALSE(HasEvent("NodeFailed", "Pods: [ p ]"));
}

}  // namespace
}  // namespace keelson::csi::controller
