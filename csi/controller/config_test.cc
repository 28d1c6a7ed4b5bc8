#include "csi/controller/config.h"

#include <gmock/gmock.h>

namespace keelson::csi::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ConfigTest, Controllers) {
  Config config;
  EXPECT_THAT(*ChosenControllers(config), ElementsAre("attacher", "health-monitor", "modifier", "provisioner",
                                                      "resizer", "snapshot-controller", "snapshotter"));
  EXPECT_EQ(AddressesOf(config, *ChosenControllers(config)).size(), 1U);
  config.controllers = {"*", "-attacher", "-modifier", "-health-monitor", "-snapshot-controller"};
  EXPECT_THAT(*ChosenControllers(config), ElementsAre("provisioner", "resizer", "snapshotter"));
  config.controllers = {"snapshot-controller"};
  EXPECT_TRUE(AddressesOf(config, *ChosenControllers(config)).empty());
  config.controllers = {"resizer"};
  EXPECT_THAT(*ChosenControllers(config), ElementsAre("resizer"));
  config.controllers = {"else"};
  EXPECT_FALSE(ChosenControllers(config));
  config.controllers = {"-resizer"};
  EXPECT_FALSE(ChosenControllers(config));
}

TEST(ConfigTest, Endpoints) {
  EXPECT_EQ(ParseEndpoint("")->host, "");
  EXPECT_EQ(ParseEndpoint(":8080")->host, "0.0.0.0");
  EXPECT_EQ(ParseEndpoint(":8080")->port, 8080);
  EXPECT_EQ(ParseEndpoint("[::1]:80")->host, "::1");
  EXPECT_FALSE(ParseEndpoint("8080"));
  EXPECT_FALSE(ParseEndpoint(":http"));
}

TEST(ConfigTest, Validate) {
  const Config fine;
  EXPECT_TRUE(Validate(fine));
  auto refuses = [&](auto change, const char* text) {
    Config config = fine;
    change(config);
    const Result<> valid = Validate(config);
    ASSERT_FALSE(valid) << text;
    EXPECT_THAT(valid.error().message(), HasSubstr(text));
  };
  refuses([](Config& c) { c.addresses = {"csi.sock"}; }, "--csi-address");
  refuses([](Config& c) { c.addresses = {"/a", "/a"}; }, "given twice");
  refuses(
      [](Config& c) {
        c.enable_capacity = true;
        c.controllers = {"resizer"};
      },
      "needs the provisioner");
  refuses([](Config& c) { c.capacity_ownerref_level = 1; }, "--capacity-ownerref-level");
  refuses([](Config& c) { c.capacity_poll = std::chrono::milliseconds(0); }, "--capacity-poll-interval");
  refuses([](Config& c) { c.node_deployment = true; }, "--node-name");
  refuses(
      [](Config& c) {
        c.node_deployment = c.leader_election = true;
        c.node_name = "n";
      },
      "exclude each other");
  refuses([](Config& c) { c.node_deployment_immediate_binding = true; }, "is not supported");
  refuses([](Config& c) { c.volume_name_uuid_length = 33; }, "--volume-name-uuid-length");
  refuses([](Config& c) { c.snapshot_name_prefix = ""; }, "--snapshot-name-prefix");
  refuses([](Config& c) { c.snapshot_name_uuid_length = 0; }, "--snapshot-name-uuid-length");
  refuses([](Config& c) { c.monitor_interval = std::chrono::milliseconds(0); }, "--monitor-interval");
  refuses(
      [](Config& c) {
        c.enable_node_watcher = true;
        c.controllers = {"resizer"};
      },
      "needs the health-monitor");
  refuses(
      [](Config& c) {
        c.node_deployment = c.enable_node_watcher = true;
        c.node_name = "n";
      },
      "exclude each other");
  refuses([](Config& c) { c.worker_threads = 0; }, "--worker-threads");
  refuses([](Config& c) { c.feature_gates = {"Topology=false"}; }, "Topology=false is not supported");
  refuses([](Config& c) { c.feature_gates = {"CrossNamespaceVolumeDataSource=true"}; }, "is not supported");
  refuses([](Config& c) { c.feature_gates = {"Topology=true", "Else=true"}; }, "the gate is unknown");
  refuses([](Config& c) { c.feature_gates = {"Topology"}; }, "neither GATE=true nor");
  Config gates;
  gates.feature_gates = {"Topology=true", "HonorPVReclaimPolicy=true", "CSIVolumeGroupSnapshot=false"};
  EXPECT_TRUE(Validate(gates));
  refuses([](Config& c) { c.retry_start = c.retry_max * 2; }, "--retry-interval");
}

TEST(ConfigTest, LeasesOfTheStockSidecars) {
  EXPECT_EQ(LeaseName(kProvisioner, "a/b.example.com"), "a-b-example-com");
  EXPECT_EQ(LeaseName(kAttacher, "disk.example.com"), "external-attacher-leader-disk-example-com");
  EXPECT_EQ(LeaseName(kResizer, "disk.example.com"), "external-resizer-disk-example-com");
  EXPECT_EQ(LeaseName(kSnapshotter, "disk.example.com"), "external-snapshotter-leader-disk-example-com");
  EXPECT_EQ(LeaseName(kHealthMonitor, "a."), "external-health-monitor-leader-a-X");
  EXPECT_EQ(LeaseName(kSnapshotController, ""), "snapshot-controller-leader");
}

}  // namespace
}  // namespace keelson::csi::controller
