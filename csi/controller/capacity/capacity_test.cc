#include "csi/controller/capacity/capacity.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "csi/controller/testing/controller_test.h"
#include "lib/api/quantity.h"
#include "lib/metrics/metrics.h"

namespace keelson::csi::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class CapacityTest : public ControllerTest {
 protected:
  void SetUp() override {
    ControllerTest::SetUp();
    driver_->SetCapabilities({"CREATE_DELETE_VOLUME", "GET_CAPACITY"}, true);
    driver_->SetCapacity("a", 5 << 20);
    driver_->SetCapacity("b", 7 << 20);
    PutClass("late", "WaitForFirstConsumer");
    PutClass("now", "Immediate");
    PutNode("n1", "a");
    PutNode("n2", "b");
    PutNode("n3", "b");
  }
  void PutClass(const std::string& name, const std::string& mode,
                const std::string& driver = "disk.example.com") {
    Put<storagev1::StorageClass>(
        R"({"metadata":{"name":")" + name + R"("},"provisioner":")" + driver +
        R"(","parameters":{"csi.storage.k8s.io/fstype":"xfs"},"volumeBindingMode":")" + mode + R"("})");
  }
  void PutNode(const std::string& name, const std::string& zone) {
    Put<corev1::Node>(R"({"metadata":{"name":")" + name + R"(","labels":{"zone":")" + zone + R"("}}})");
    Put<storagev1::CSINode>(
        R"({"metadata":{"name":")" + name +
        R"("},"spec":{"drivers":[{"name":"disk.example.com","nodeID":"x","topologyKeys":["zone"]}]}})");
  }
  void Start(const std::string& node = "", bool immediate = false,
             std::chrono::nanoseconds poll = std::chrono::hours(1)) {
    StartControllers(
        [&](const Environment& environment) {
          CapacityOptions options;
          options.ns = "storage";
          options.poll = poll;
          options.settle = std::chrono::milliseconds(5);
          options.immediate = immediate;
          controllers_.push_back(std::make_unique<Capacity>(environment, options));
        },
        node);
  }
  // "CLASS ZONE CAPACITY" of each object.
  std::vector<std::string> Objects() {
    std::vector<std::string> out;
    const auto objects = api_.List<StorageCapacity>("storage");
    if (!objects) return out;
    for (const StorageCapacity& one : *objects) {
      out.push_back(one.storage_class_name() + " " + one.node_topology().match_labels().at("zone") + " " +
                    api::Amount::Of(one.capacity()).ToString());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  bool Await(const std::vector<std::string>& objects) {
    if (Eventually([&] { return Objects() == objects; })) return true;
    EXPECT_EQ(Objects(), objects);
    return false;
  }
};

TEST_F(CapacityTest, OneObjectForEachTopologyAndClass) {
  PutClass("foreign", "WaitForFirstConsumer", "else.example.com");
  Start();
  ASSERT_TRUE(Await({"late a 5Mi", "late b 7Mi"}));
  const StorageCapacity object = api_.List<StorageCapacity>("storage")->front();
  EXPECT_EQ(object.metadata().labels().at("csi.storage.k8s.io/drivername"), "disk.example.com");
  EXPECT_EQ(object.metadata().labels().at("csi.storage.k8s.io/managed-by"), "external-provisioner");
  EXPECT_EQ(object.metadata().name().substr(0, 6), "csisc-");
  PutClass("second", "WaitForFirstConsumer");
  PutNode("n4", "a");
  ASSERT_TRUE(Await({"late a 5Mi", "late b 7Mi", "second a 5Mi", "second b 7Mi"}));
  for (const char* gauge : {"desired_goal{driver_name=\"disk.example.com\"} 4\n",
                            "desired_current{driver_name=\"disk.example.com\"} 4\n",
                            "obsolete{driver_name=\"disk.example.com\"} 0\n"}) {
    EXPECT_TRUE(Eventually([&] {
      return metrics::Print().find(std::string("csistoragecapacities_") + gauge) != std::string::npos;
    })) << gauge;
  }
  ASSERT_TRUE(api_.Delete<storagev1::StorageClass>("", "late"));
  ASSERT_TRUE(api_.Delete<storagev1::CSINode>("", "n1"));
  ASSERT_TRUE(api_.Delete<storagev1::CSINode>("", "n4"));
  EXPECT_TRUE(Await({"second b 7Mi"}));
}

TEST_F(CapacityTest, FollowsTheDriver) {
  Start("", true, std::chrono::milliseconds(20));
  ASSERT_TRUE(Await({"late a 5Mi", "late b 7Mi", "now a 5Mi", "now b 7Mi"}));
  driver_->SetCapacity("a", 1 << 20);
  EXPECT_TRUE(Await({"late a 1Mi", "late b 7Mi", "now a 1Mi", "now b 7Mi"}));
}

TEST_F(CapacityTest, AsksAgainWhenVolumesCome) {
  Start();
  ASSERT_TRUE(Await({"late a 5Mi", "late b 7Mi"}));
  driver_->SetCapacity("a", 1 << 20);
  Put<Volume>(
      R"({"metadata":{"name":"v"},"spec":{"capacity":{"storage":"4Mi"},"csi":{"driver":"disk.example.com",
      "volumeHandle":"h"}}})");
  EXPECT_TRUE(Await({"late a 1Mi", "late b 7Mi"}));
}

TEST_F(CapacityTest, OnANodeTellsItsOwnSpace) {
  driver_->SetNodeTopology({{"zone", "a"}});
  Start("n1");
  ASSERT_TRUE(Await({"late a 5Mi"}));
  EXPECT_EQ(
      api_.List<StorageCapacity>("storage")->front().metadata().labels().at("csi.storage.k8s.io/managed-by"),
      "external-provisioner-n1");
}

TEST_F(CapacityTest, TakesOverWhatIsThere) {
  auto put = [&](const std::string& name, const std::string& zone, const std::string& owner) {
    Put<StorageCapacity>(
        R"({"metadata":{"name":")" + name +
        R"(","namespace":"storage","labels":{"csi.storage.k8s.io/drivername":"disk.example.com",
        "csi.storage.k8s.io/managed-by":")" +
        owner + R"("}},"nodeTopology":{"matchLabels":{"zone":")" + zone +
        R"("}},"storageClassName":"late","capacity":"1Mi"})");
  };
  put("first", "a", "external-provisioner");
  put("second", "a", "external-provisioner");
  put("gone", "c", "external-provisioner");
  put("theirs", "c", "external-provisioner-n9");
  Start();
  ASSERT_TRUE(Await({"late a 5Mi", "late b 7Mi", "late c 1Mi"}));
  EXPECT_TRUE(Get<StorageCapacity>("storage", "theirs"));
}

TEST_F(CapacityTest, LongNamesOfNodes) {
  EXPECT_EQ(ManagedBy(""), "external-provisioner");
  EXPECT_EQ(ManagedBy(std::string(42, 'n')).size(), 63U);
  EXPECT_EQ(ManagedBy(std::string(43, 'n')).size(), 29U);
  EXPECT_NE(ManagedBy(std::string(43, 'n')), ManagedBy(std::string(43, 'm')));
}

// The object of a class whose capacity is not known is not taken for empty.
TEST_F(CapacityTest, KeepsWhatItCannotAsk) {
  Start("", false, std::chrono::milliseconds(20));
  ASSERT_TRUE(Await({"late a 5Mi", "late b 7Mi"}));
  driver_->Fail("GetCapacity", grpc::StatusCode::INTERNAL, "no", 1000000);
  driver_->SetCapacity("a", 1 << 20);
  const int before = driver_->Count("GetCapacity");
  ASSERT_TRUE(Eventually([&] { return driver_->Count("GetCapacity") > before + 4; }));
  EXPECT_THAT(Objects(), ElementsAre("late a 5Mi", "late b 7Mi"));
  driver_->Fail("GetCapacity", 0, "", 0);
  EXPECT_TRUE(Await({"late a 1Mi", "late b 7Mi"}));
}

}  // namespace
}  // namespace keelson::csi::controller
