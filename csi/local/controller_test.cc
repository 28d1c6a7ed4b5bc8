// The service Controller on volumes, call by call as csi-sanity does it.
#include <gmock/gmock.h>

#include <sys/stat.h>

#include "csi/local/host/image.h"
#include "csi/local/testing/driver_fixture.h"
#include "lib/base/file.h"

namespace keelson::csi::local {
namespace {

using grpc::StatusCode;
using testing::IsEmpty;
using Controller = v1::Controller::Stub;
using Mode = v1::VolumeCapability::AccessMode;

class ControllerTest : public DriverFixture {
 protected:
  void SetUp() override {
    DriverFixture::SetUp();
    Start();
  }
  StatusCode Create(const v1::CreateVolumeRequest& request) {
    return Call(&Controller::CreateVolume, request).code;
  }
  std::vector<std::string> List() {
    auto answer = Call(&Controller::ListVolumes, v1::ListVolumesRequest());
    EXPECT_TRUE(answer.ok()) << answer.message;
    std::vector<std::string> ids;
    for (const auto& entry : answer.reply.entries()) ids.push_back(entry.volume().volume_id());
    return ids;
  }
};

TEST_F(ControllerTest, CapabilitiesAreThoseThatCsiSanityKnows) {
  auto answer = Call(&Controller::ControllerGetCapabilities, v1::ControllerGetCapabilitiesRequest());
  std::vector<int> types;
  for (const auto& capability : answer.reply.capabilities()) types.push_back(capability.rpc().type());
  using RPC = v1::ControllerServiceCapability::RPC;
  EXPECT_THAT(types,
              testing::UnorderedElementsAre(RPC::CREATE_DELETE_VOLUME, RPC::LIST_VOLUMES, RPC::GET_CAPACITY,
                                            RPC::CREATE_DELETE_SNAPSHOT, RPC::LIST_SNAPSHOTS,
                                            RPC::CLONE_VOLUME, RPC::EXPAND_VOLUME, RPC::VOLUME_CONDITION,
                                            RPC::GET_VOLUME, RPC::SINGLE_NODE_MULTI_WRITER));
}

TEST_F(ControllerTest, WhatIsNotAnnouncedIsUnimplemented) {
  EXPECT_EQ(Call(&Controller::ControllerPublishVolume, v1::ControllerPublishVolumeRequest()).code,
            StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Call(&Controller::ControllerModifyVolume, v1::ControllerModifyVolumeRequest()).code,
            StatusCode::UNIMPLEMENTED);
}

TEST_F(ControllerTest, CreateRefusesWhatIsMissingOrUnknown) {
  EXPECT_EQ(Create(VolumeRequest("", kMi)), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Create(VolumeRequest(std::string(129, 'a'), kMi)), StatusCode::INVALID_ARGUMENT);
  v1::CreateVolumeRequest request = VolumeRequest("a", kMi);
  request.clear_volume_capabilities();
  EXPECT_EQ(Create(request), StatusCode::INVALID_ARGUMENT);
  request = VolumeRequest("a", kMi);
  request.mutable_volume_capabilities(0)->mutable_access_mode()->set_mode(Mode::MULTI_NODE_MULTI_WRITER);
  EXPECT_EQ(Create(request), StatusCode::INVALID_ARGUMENT);
  request = VolumeRequest("a", kMi);
  (*request.mutable_parameters())["type"] = "nfs";
  EXPECT_EQ(Create(request), StatusCode::INVALID_ARGUMENT);
  request = VolumeRequest("a", kMi);
  (*request.mutable_mutable_parameters())["iops"] = "1";
  EXPECT_EQ(Create(request), StatusCode::INVALID_ARGUMENT);
  request = VolumeRequest("a", 8 * kMi);
  request.mutable_capacity_range()->set_limit_bytes(4 * kMi);
  EXPECT_EQ(Create(request), StatusCode::INVALID_ARGUMENT);
  request = VolumeRequest("a", 8 * kMi, Mount("xfs"));
  request.mutable_capacity_range()->set_limit_bytes(8 * kMi);
  EXPECT_EQ(Create(request), StatusCode::OUT_OF_RANGE);
  request = VolumeRequest("a", 8 * kMi);
  request.mutable_volume_content_source();
  EXPECT_EQ(Create(request), StatusCode::INVALID_ARGUMENT);
  request.mutable_volume_content_source()->mutable_volume()->set_volume_id("fake-vol-id");
  EXPECT_EQ(Create(request), StatusCode::NOT_FOUND);
  request.mutable_volume_content_source()->mutable_snapshot()->set_snapshot_id("../../etc/passwd");
  EXPECT_EQ(Create(request), StatusCode::NOT_FOUND);
  request = VolumeRequest("a", 8 * kMi);
  (*request.mutable_accessibility_requirements()
        ->add_requisite()
        ->mutable_segments())["topology.local.csi.keelson.dev/node"] = "node2";
  EXPECT_EQ(Create(request), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Create(VolumeRequest("a", int64_t{1} << 60)), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(Files("volumes"), IsEmpty());
  EXPECT_THAT(Files("tmp"), IsEmpty());
}

TEST_F(ControllerTest, CreateIsIdempotentAndComparesWhatExists) {
  v1::CreateVolumeRequest request = VolumeRequest("a", 8 * kMi);
  request.mutable_capacity_range()->set_limit_bytes(8 * kMi);
  (*request.mutable_accessibility_requirements()
        ->add_requisite()
        ->mutable_segments())["topology.local.csi.keelson.dev/node"] = "node1";
  auto first = Call(&Controller::CreateVolume, request);
  ASSERT_TRUE(first.ok()) << first.message;
  EXPECT_EQ(first.reply.volume().capacity_bytes(), 8 * kMi);
  EXPECT_EQ(first.reply.volume().accessible_topology(0).segments().at("topology.local.csi.keelson.dev/node"),
            "node1");
  auto second = Call(&Controller::CreateVolume, request);
  ASSERT_TRUE(second.ok()) << second.message;
  EXPECT_EQ(second.reply.SerializeAsString(), first.reply.SerializeAsString());
  request.mutable_capacity_range()->set_required_bytes(16 * kMi);
  request.mutable_capacity_range()->set_limit_bytes(16 * kMi);
  EXPECT_EQ(Create(request), StatusCode::ALREADY_EXISTS);
  request = VolumeRequest("a", 8 * kMi);
  (*request.mutable_parameters())["provisioning"] = "thick";
  EXPECT_EQ(Create(request), StatusCode::ALREADY_EXISTS);
  request = VolumeRequest("a", 8 * kMi);
  request.mutable_volume_content_source()->mutable_volume()->set_volume_id(CreateVolume("b", 8 * kMi));
  EXPECT_EQ(Create(request), StatusCode::ALREADY_EXISTS);
}

TEST_F(ControllerTest, NamesAreNeverPaths) {
  for (const std::string& name :
       {std::string(128, 'x'), std::string("../../../etc/passwd"), std::string("a/b\n\xc3\xa4 ")}) {
    const std::string id = CreateVolume(name, 8 * kMi);
    EXPECT_TRUE(PathExists(Image(id))) << name;
    EXPECT_EQ(id.find('/'), std::string::npos);
  }
}

TEST_F(ControllerTest, DeleteIsIdempotentAndFreesTheSpace) {
  v1::DeleteVolumeRequest request;
  EXPECT_EQ(Call(&Controller::DeleteVolume, request).code, StatusCode::INVALID_ARGUMENT);
  DeleteVolume("fake-vol-id");
  DeleteVolume("../volumes");
  const std::string id = CreateVolume("a", 8 * kMi);
  DeleteVolume(id);
  DeleteVolume(id);
  EXPECT_THAT(Files("volumes"), IsEmpty());
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(ControllerTest, ThickVolumesTakeTheirSpace) {
  v1::CreateVolumeRequest request = VolumeRequest("a", 32 * kMi);
  (*request.mutable_parameters())["provisioning"] = "thick";
  auto answer = Call(&Controller::CreateVolume, request);
  ASSERT_TRUE(answer.ok()) << answer.message;
  EXPECT_GE(SizeOf(Image(answer.reply.volume().volume_id()))->taken, 32 * kMi);
  EXPECT_LT(SizeOf(Image(CreateVolume("b", 32 * kMi)))->taken, kMi);
  // mkfs replaces the file.
  Stage(answer.reply.volume().volume_id());
  EXPECT_GE(SizeOf(Image(answer.reply.volume().volume_id()))->taken, 32 * kMi);
}

TEST_F(ControllerTest, ListHasPages) {
  auto page = [&](int most, const std::string& token) {
    v1::ListVolumesRequest request;
    request.set_max_entries(most);
    request.set_starting_token(token);
    return Call(&Controller::ListVolumes, request);
  };
  EXPECT_EQ(page(0, "invalid-token").code, StatusCode::ABORTED);
  EXPECT_EQ(page(-1, "").code, StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(List(), IsEmpty());
  for (const char* name : {"a", "b", "c", "d", "e"}) CreateVolume(name, 8 * kMi);
  const std::vector<std::string> all = List();
  ASSERT_EQ(all.size(), 5u);
  auto first = page(2, "");
  ASSERT_EQ(first.reply.entries_size(), 2);
  EXPECT_EQ(first.reply.entries(0).volume().volume_id(), all[0]);
  EXPECT_FALSE(first.reply.entries(0).status().volume_condition().abnormal());
  // The pages' border may go away.
  DeleteVolume(all[1]);
  auto rest = page(0, first.reply.next_token());
  ASSERT_EQ(rest.reply.entries_size(), 3);
  EXPECT_EQ(rest.reply.entries(0).volume().volume_id(), all[2]);
  EXPECT_EQ(rest.reply.next_token(), "");
}

TEST_F(ControllerTest, CapacityIsThatOfThisNode) {
  v1::GetCapacityRequest request;
  auto thin = Call(&Controller::GetCapacity, request);
  ASSERT_TRUE(thin.ok());
  EXPECT_GT(thin.reply.available_capacity(), 0);
  EXPECT_EQ(thin.reply.maximum_volume_size().value(), thin.reply.available_capacity());
  EXPECT_EQ(thin.reply.minimum_volume_size().value(), 4 * kMi);
  (*request.mutable_parameters())["provisioning"] = "thick";
  EXPECT_LT(Call(&Controller::GetCapacity, request).reply.available_capacity(),
            thin.reply.available_capacity());
  (*request.mutable_accessible_topology()->mutable_segments())["topology.local.csi.keelson.dev/node"] =
      "node2";
  EXPECT_EQ(Call(&Controller::GetCapacity, request).reply.available_capacity(), 0);
  (*request.mutable_parameters())["unknown"] = "";
  EXPECT_EQ(Call(&Controller::GetCapacity, request).code, StatusCode::INVALID_ARGUMENT);
  v1::GetCapacityRequest shared;
  *shared.add_volume_capabilities() = Mount();
  shared.mutable_volume_capabilities(0)->mutable_access_mode()->set_mode(Mode::MULTI_NODE_MULTI_WRITER);
  EXPECT_EQ(Call(&Controller::GetCapacity, shared).reply.available_capacity(), 0);
}

TEST_F(ControllerTest, ValidateAnswersWhatIsSupported) {
  v1::ValidateVolumeCapabilitiesRequest request;
  EXPECT_EQ(Call(&Controller::ValidateVolumeCapabilities, request).code, StatusCode::INVALID_ARGUMENT);
  request.set_volume_id("fake-vol-id");
  EXPECT_EQ(Call(&Controller::ValidateVolumeCapabilities, request).code, StatusCode::INVALID_ARGUMENT);
  *request.add_volume_capabilities() = Mount();
  EXPECT_EQ(Call(&Controller::ValidateVolumeCapabilities, request).code, StatusCode::NOT_FOUND);
  request.set_volume_id(CreateVolume("a", 8 * kMi));
  auto answer = Call(&Controller::ValidateVolumeCapabilities, request);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.reply.confirmed().volume_capabilities_size(), 1);
  request.mutable_volume_capabilities(0)->mutable_access_mode()->set_mode(Mode::MULTI_NODE_MULTI_WRITER);
  answer = Call(&Controller::ValidateVolumeCapabilities, request);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer.reply.has_confirmed());
  EXPECT_NE(answer.reply.message(), "");
}

TEST_F(ControllerTest, GetTellsTheCondition) {
  v1::ControllerGetVolumeRequest request;
  EXPECT_EQ(Call(&Controller::ControllerGetVolume, request).code, StatusCode::INVALID_ARGUMENT);
  request.set_volume_id("fake-vol-id");
  EXPECT_EQ(Call(&Controller::ControllerGetVolume, request).code, StatusCode::NOT_FOUND);
  request.set_volume_id(CreateVolume("a", 8 * kMi));
  auto answer = Call(&Controller::ControllerGetVolume, request);
  EXPECT_EQ(answer.reply.volume().capacity_bytes(), 8 * kMi);
  EXPECT_FALSE(answer.reply.status().volume_condition().abnormal());
  ASSERT_TRUE(RemoveFile(Image(request.volume_id())));
  answer = Call(&Controller::ControllerGetVolume, request);
  EXPECT_TRUE(answer.reply.status().volume_condition().abnormal());
  EXPECT_EQ(answer.reply.status().volume_condition().message(),
            "the volume's file is missing or cannot be read");
}

TEST_F(ControllerTest, ExpandGrowsAndNeverShrinks) {
  v1::ControllerExpandVolumeRequest request;
  EXPECT_EQ(Call(&Controller::ControllerExpandVolume, request).code, StatusCode::INVALID_ARGUMENT);
  request.mutable_capacity_range()->set_required_bytes(16 * kMi);
  EXPECT_EQ(Call(&Controller::ControllerExpandVolume, request).code, StatusCode::INVALID_ARGUMENT);
  request.set_volume_id("fake-vol-id");
  EXPECT_EQ(Call(&Controller::ControllerExpandVolume, request).code, StatusCode::NOT_FOUND);
  request.set_volume_id(CreateVolume("a", 8 * kMi));
  for (int64_t required : {16 * kMi, 16 * kMi, 8 * kMi}) {
    request.mutable_capacity_range()->set_required_bytes(required);
    auto answer = Call(&Controller::ControllerExpandVolume, request);
    ASSERT_TRUE(answer.ok()) << answer.message;
    EXPECT_EQ(answer.reply.capacity_bytes(), 16 * kMi);
    EXPECT_TRUE(answer.reply.node_expansion_required());
  }
  EXPECT_EQ(SizeOf(Image(request.volume_id()))->size, 16 * kMi);
  request.mutable_capacity_range()->set_limit_bytes(8 * kMi);
  EXPECT_EQ(Call(&Controller::ControllerExpandVolume, request).code, StatusCode::OUT_OF_RANGE);
  request.mutable_capacity_range()->clear_limit_bytes();
  request.mutable_capacity_range()->set_required_bytes(int64_t{1} << 60);
  EXPECT_EQ(Call(&Controller::ControllerExpandVolume, request).code, StatusCode::OUT_OF_RANGE);
  request.clear_capacity_range();
  EXPECT_EQ(Call(&Controller::ControllerExpandVolume, request).code, StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace keelson::csi::local
