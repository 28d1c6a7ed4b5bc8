#include "csi/controller/model/new_volume.h"

#include <gmock/gmock.h>

#include "lib/api/codec/codec.h"
#include "lib/api/quantity.h"

namespace keelson::csi::controller {
namespace {

using ::testing::HasSubstr;

template <typename T>
T Read(const std::string& json) {
  T out;
  const auto read = api::DecodeJson(json, out);
  EXPECT_TRUE(read) << read.error().message();
  return out;
}

const ProvisionOptions kOptions{.driver = "disk.example.com", .identity = "me"};

TEST(NewVolumeTest, Names) {
  Claim claim;
  EXPECT_FALSE(VolumeName(claim, kOptions));
  claim.mutable_metadata()->set_uid("12-34-56");
  EXPECT_EQ(*VolumeName(claim, kOptions), "pvc-12-34-56");
  EXPECT_EQ(*VolumeName(claim, {.name_prefix = "v", .name_uuid_length = 4}), "v-1234");
  EXPECT_FALSE(VolumeName(claim, {.name_uuid_length = 40}));
  EXPECT_FALSE(VolumeName(claim, {.name_prefix = ""}));
}

TEST(NewVolumeTest, RefusesWhatDriversAreNotAskedFor) {
  const auto storage_class = Read<storagev1::StorageClass>(R"({"provisioner":"disk.example.com"})");
  auto claim = Read<Claim>(R"({"metadata":{"name":"c","uid":"u"},"spec":{"accessModes":["ReadWriteOnce"],
      "selector":{"matchLabels":{"a":"b"}}}})");
  EXPECT_THAT(PlanProvision(claim, {.storage_class = &storage_class}, kOptions).error().message(),
              HasSubstr("claim Selector is not supported"));
  claim.mutable_spec()->clear_selector();
  const auto attributes = Read<storagev1::VolumeAttributesClass>(
      R"({"metadata":{"name":"gold"},"driverName":"else.example.com","parameters":{"iops":"9"}})");
  EXPECT_THAT(
      PlanProvision(claim, {.storage_class = &storage_class, .attributes_class = &attributes}, kOptions)
          .error()
          .message(),
      HasSubstr("VAC gold referenced in PVC is for driver else.example.com which does not match"));
}

TEST(NewVolumeTest, AVolumeWithAttributesClassAndUnknownCapacity) {
  const auto storage_class =
      Read<storagev1::StorageClass>(R"({"provisioner":"disk.example.com","reclaimPolicy":"Retain"})");
  const auto claim = Read<Claim>(R"({"metadata":{"name":"c","uid":"u"},"spec":{"accessModes":["ReadOnlyMany"],
      "volumeMode":"Block","resources":{"requests":{"storage":"3Gi"}}}})");
  const auto attributes = Read<storagev1::VolumeAttributesClass>(
      R"({"metadata":{"name":"gold"},"driverName":"disk.example.com","parameters":{"iops":"9"}})");
  ProvisionOptions options = kOptions;
  options.publish_read_only = true;
  const auto plan =
      PlanProvision(claim, {.storage_class = &storage_class, .attributes_class = &attributes}, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->request.mutable_parameters().at("iops"), "9");
  v1::Volume created;
  created.set_volume_id("id");
  const Volume volume = FinishVolume(*plan, created, options, true);
  EXPECT_EQ(volume.spec().volume_attributes_class_name(), "gold");
  EXPECT_EQ(volume.spec().volume_mode(), "Block");
  EXPECT_TRUE(volume.spec().persistent_volume_source().csi().read_only());
  EXPECT_EQ(api::Amount::Of(volume.spec().capacity().at("storage")).ToString(), "3Gi");
  EXPECT_FALSE(volume.spec().has_node_affinity());
  // Only the deleter of volumes with policy Delete removes it.
  EXPECT_EQ(volume.metadata().finalizers_size(), 0);
}

}  // namespace
}  // namespace keelson::csi::controller
