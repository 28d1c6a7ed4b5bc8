// A volume manager with the CSI plugin and a driver on a socket, for tests.
#pragma once

#include "kubelet/volume/csi/drivers.h"
#include "kubelet/volume/csi/plugin.h"
#include "kubelet/volume/csi/testing/fake_driver.h"
#include "kubelet/volume/csi/volume_data.h"
#include "kubelet/volume/testing/volume_test.h"

namespace keelson::kubelet::csi {

constexpr char kDriver[] = "disk.example.com";
constexpr char kAttached[] = "kubernetes.io/csi/disk.example.com^vol-1";

class CsiTest : public VolumeTest {
 protected:
  void SetUp() override {
    VolumeTest::SetUp();
    node_.node_name = "node-1";
    driver_ = std::make_unique<FakeDriver>(dir_ + "/csi.sock");
    driver_->SetCapabilities({"STAGE_UNSTAGE_VOLUME"});
    Restart();
    DriverObject(R"("attachRequired":false,"fsGroupPolicy":"ReadWriteOnceWithFSType",
        "volumeLifecycleModes":["Persistent","Ephemeral"])");
    Bind("");
  }
  void TearDown() override {
    EXPECT_EQ(driver_->Violations(), std::vector<std::string>());
    manager_.reset();
    driver_.reset();
    VolumeTest::TearDown();
  }

  // A kubelet that knows nothing of the one before; its driver has registered again.
  void Restart() {
    manager_.reset();
    drivers_ = std::make_unique<Drivers>();
    Register();
    std::vector<std::unique_ptr<VolumePlugin>> plugins = NewVolumePlugins(mounter_, objects_, clock_);
    plugins.push_back(NewPlugin(mounter_, objects_, *drivers_, clock_));
    VolumeTest::Use(std::move(plugins));
    manager_->Restore(node_.paths);
  }
  void Register() {
    drivers_->Set(kDriver,
                  {dir_ + "/csi.sock", *ParseVersion("1.0"), NewNodeClient(kDriver, dir_ + "/csi.sock")});
  }
  void DriverObject(const std::string& spec) {
    objects_.Put<api::storage::v1::CSIDriver>(R"({"metadata":{"name":"disk.example.com"},"spec":{)" + spec +
                                              "}}");
  }
  // Claim n/c, bound to pv-1 of the driver. `source` and `spec` begin with a comma.
  void Bind(const std::string& source, const std::string& spec = R"(,"accessModes":["ReadWriteOnce"])") {
    objects_.Put<corev1::PersistentVolumeClaim>(
        R"({"metadata":{"name":"c","namespace":"n","uid":"cu"},"spec":{"volumeName":"pv-1",
            "resources":{"requests":{"storage":"2Gi"}}},
            "status":{"phase":"Bound","capacity":{"storage":"2Gi"}}})");
    objects_.Put<corev1::PersistentVolume>(
        R"({"metadata":{"name":"pv-1"},"spec":{"claimRef":{"uid":"cu"},"capacity":{"storage":"2Gi"},
            "csi":{"driver":"disk.example.com","volumeHandle":"vol-1")" +
        source + "}" + spec + "}}");
  }
  // The claim shows less than its volume has. `status` begins with a comma.
  void Grow(const std::string& status = "", const std::string& asked = "2Gi") {
    objects_.Put<corev1::PersistentVolumeClaim>(
        R"({"metadata":{"name":"c","namespace":"n","uid":"cu"},"spec":{"volumeName":"pv-1",
            "resources":{"requests":{"storage":")" +
        asked + R"("}}},"status":{"phase":"Bound","capacity":{"storage":"1Gi"})" + status + "}}");
  }
  corev1::Pod Claiming(const std::string& uid = "u") {
    return PodWith(R"({"name":"v","persistentVolumeClaim":{"claimName":"c"}})", uid);
  }
  corev1::Pod Inline(const std::string& more = "", const std::string& uid = "u") {
    return PodWith(R"({"name":"v","csi":{"driver":"disk.example.com")" + more + "}}", uid);
  }
  // Of the node's status.
  void Attach(bool reported = true) {
    auto node = std::make_shared<corev1::Node>();
    if (reported) node->mutable_status()->add_volumes_in_use(kAttached);
    node->mutable_status()->add_volumes_attached()->set_name(kAttached);
    node_object_ = node;
  }
  std::string Staging() const { return StagingPath(node_.paths, kDriver, "vol-1"); }
  std::string Target(const std::string& uid = "u", const std::string& name = "pv-1") {
    return VolumeDir(kPluginName, name, uid) + "/mount";
  }
  Result<> Remove(const std::string& uid = "u") { return manager_->Remove(node_.paths, uid); }
  using Strings = std::vector<std::string>;

  std::unique_ptr<FakeDriver> driver_;
  std::unique_ptr<Drivers> drivers_;
};

}  // namespace keelson::kubelet::csi
