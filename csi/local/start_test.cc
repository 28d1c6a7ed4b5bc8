// The driver's start and end, and what it says of itself.
#include <gmock/gmock.h>

#include "csi/local/testing/driver_fixture.h"
#include "lib/base/file.h"
#include "lib/rpc/channel.h"
#include "lib/rpc/proto/pluginregistration.grpc.pb.h"

namespace keelson::csi::local {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class StartTest : public DriverFixture {};

// The exit code and log of a driver that cannot start.
std::pair<int, std::string> RunToEnd(const std::vector<std::string>& argv, const std::string& log) {
  event::ProcessOptions options;
  options.argv = argv;
  options.output_file = log;
  auto process = event::Process::Start(options);
  if (!process) return {-1, process.error().message()};
  auto end = process->Wait({}, std::chrono::seconds(30));
  return {end ? end->code : -1, ReadFile(log).value_or("")};
}

TEST_F(StartTest, TellsWhatItIs) {
  Start({"--max-volumes-per-node=7"});
  auto info = Call(&v1::Identity::Stub::GetPluginInfo, v1::GetPluginInfoRequest());
  EXPECT_EQ(info.reply.name(), "local.csi.keelson.dev");
  EXPECT_NE(info.reply.vendor_version(), "");
  auto capabilities = Call(&v1::Identity::Stub::GetPluginCapabilities, v1::GetPluginCapabilitiesRequest());
  std::vector<int> services, expansions;
  for (const auto& capability : capabilities.reply.capabilities()) {
    if (capability.has_service()) services.push_back(capability.service().type());
    if (capability.has_volume_expansion()) expansions.push_back(capability.volume_expansion().type());
  }
  using Service = v1::PluginCapability::Service;
  EXPECT_THAT(services,
              UnorderedElementsAre(Service::CONTROLLER_SERVICE, Service::VOLUME_ACCESSIBILITY_CONSTRAINTS,
                                   Service::GROUP_CONTROLLER_SERVICE));
  EXPECT_THAT(expansions, UnorderedElementsAre(v1::PluginCapability::VolumeExpansion::ONLINE));
  auto node = Call(&v1::Node::Stub::NodeGetInfo, v1::NodeGetInfoRequest());
  EXPECT_EQ(node.reply.node_id(), "node1");
  EXPECT_EQ(node.reply.max_volumes_per_node(), 7);
  EXPECT_EQ(node.reply.accessible_topology().segments().at("topology.local.csi.keelson.dev/node"), "node1");
}

TEST_F(StartTest, RegistersWithTheKubelet) {
  Start({"--kubelet-registration-dir=" + dir_ + "/plugins_registry"});
  auto registration = pluginregistration::Registration::NewStub(
      rpc::UnixChannel(dir_ + "/plugins_registry/local.csi.keelson.dev-reg.sock"));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  pluginregistration::PluginInfo info;
  ASSERT_TRUE(registration->GetInfo(&context, {}, &info).ok());
  EXPECT_EQ(info.type(), "CSIPlugin");
  EXPECT_EQ(info.name(), "local.csi.keelson.dev");
  EXPECT_EQ(info.endpoint(), dir_ + "/csi.sock");
  EXPECT_THAT(info.supported_versions(), testing::ElementsAre("1.0.0"));
}

TEST_F(StartTest, OneDriverADataDirectory) {
  Start();
  auto [code, log] = RunToEnd({KEELSON_CSI_LOCAL, "--csi-endpoint=unix://" + dir_ + "/other.sock",
                               "--node-id=node1", "--data-dir=" + dir_ + "/data"},
                              dir_ + "/other");
  EXPECT_EQ(code, 1);
  EXPECT_THAT(log, HasSubstr("is in use by another driver"));
}

TEST_F(StartTest, ADamagedRecordStopsTheStart) {
  Start();
  const std::string id = CreateVolume("a", 8 * kMi);
  Stop();
  ASSERT_TRUE(WriteFile(dir_ + "/data/volumes/" + id + ".json", "{"));
  auto [code, log] = RunToEnd(Command(), dir_ + "/other");
  EXPECT_EQ(code, 1);
  EXPECT_THAT(log, HasSubstr("record of " + id));
  EXPECT_TRUE(PathExists(Image(id)));
}

TEST_F(StartTest, RemovesWhatHasNoRecord) {
  Start();
  const std::string id = CreateVolume("a", 8 * kMi), lost = CreateVolume("b", 8 * kMi);
  Stop();
  ASSERT_TRUE(RemoveFile(dir_ + "/data/volumes/" + lost + ".json"));
  ASSERT_TRUE(WriteFile(dir_ + "/data/volumes/" + id + ".json.tmpAbCdEf", "{"));
  ASSERT_TRUE(WriteFile(dir_ + "/data/tmp/" + id + ".img", "x"));
  ASSERT_TRUE(WriteFile(dir_ + "/data/volumes/notes.txt", "not the driver's"));
  Start();
  EXPECT_THAT(Files("volumes"), UnorderedElementsAre(id + ".img", id + ".json", "notes.txt"));
  EXPECT_THAT(Files("tmp"), IsEmpty());
}

TEST_F(StartTest, VolumesOutliveTheDriver) {
  Start();
  const std::string id = CreateVolume("a", 16 * kMi);
  Stage(id);
  Publish(id);
  ASSERT_TRUE(WriteFile(Target("target") + "/file", "kept"));
  Kill();
  EXPECT_EQ(*ReadFile(Target("target") + "/file"), "kept");
  Start();
  Stage(id);
  Publish(id);
  EXPECT_EQ(Loops().size(), 1u);
  EXPECT_EQ(Mounts().size(), 2u);
  Unpublish(id);
  Unstage(id);
  EXPECT_THAT(Loops(), IsEmpty());
  Stage(id);
  Publish(id);
  EXPECT_EQ(*ReadFile(Target("target") + "/file"), "kept");
}

}  // namespace
}  // namespace keelson::csi::local
