#include "controlplane/controllers/volumebinding/match.h"

#include <gtest/gtest.h>

#include <functional>

#include "controlplane/controllers/volumebinding/testing/volumes.h"
#include "lib/api/meta.h"

namespace keelson::controllers {
namespace {

using Modes = std::vector<std::string>;
const Modes kOnceAndMany = {"ReadWriteOnce", "ReadOnlyMany"};

std::string Fit(const std::vector<PersistentVolume>& volumes, const PersistentVolumeClaim& claim,
                bool reserved_only = false) {
  Volumes candidates;
  for (const PersistentVolume& volume : volumes) {
    candidates.push_back(std::make_shared<PersistentVolume>(volume));
  }
  auto fit = BestFit(candidates, claim, reserved_only);
  if (!fit) return fit.error().message();
  return *fit ? (*fit)->metadata().name() : "none";
}

template <typename T>
T With(T object, const std::function<void(T&)>& change) {
  change(object);
  return object;
}

TEST(BestFitTest, Chooses) {
  const auto block = [](auto& object) { object.mutable_spec()->set_volume_mode("Block"); };
  const auto file = [](auto& object) { object.mutable_spec()->set_volume_mode("Filesystem"); };
  const auto leaving = [](auto& object) { object.mutable_metadata()->mutable_deletion_timestamp(); };
  const auto gold = [](auto& object) { object.mutable_spec()->set_volume_attributes_class_name("gold"); };
  const auto fast = [](PersistentVolume& v) { (*v.mutable_metadata()->mutable_labels())["speed"] = "fast"; };
  const auto wants_fast = [](PersistentVolumeClaim& claim) {
    (*claim.mutable_spec()->mutable_selector()->mutable_match_labels())["speed"] = "fast";
  };
  const auto released = [](PersistentVolume& v) { v.mutable_status()->set_phase("Released"); };
  const auto old_class = [](auto& object) {
    (*object.mutable_metadata()->mutable_annotations())[kBetaClass] = "slow";
  };
  const PersistentVolumeClaim claim = ClaimNamed("c", "5Gi");
  struct Case {
    const char* what;
    std::vector<PersistentVolume> volumes;
    PersistentVolumeClaim claim;
    const char* want;
  };
  const std::vector<Case> cases = {
      {"smallest that is large enough",
       {VolumeNamed("s", "4Gi"), VolumeNamed("l", "20Gi"), VolumeNamed("m", "10Gi")},
       claim,
       "m"},
      {"just as large, in other words", {VolumeNamed("v", "5120Mi")}, claim, "v"},
      {"too small", {VolumeNamed("v", "4Gi")}, claim, "none"},
      {"fewest modes before least size",
       {VolumeNamed("two", "5Gi", "slow", kOnceAndMany), VolumeNamed("one", "50Gi")},
       claim,
       "one"},
      {"more modes than asked for", {VolumeNamed("two", "5Gi", "slow", kOnceAndMany)}, claim, "two"},
      {"mode missing", {VolumeNamed("v", "5Gi")}, ClaimNamed("c", "5Gi", "slow", kOnceAndMany), "none"},
      {"another class", {VolumeNamed("v", "5Gi", "fast")}, claim, "none"},
      {"no class is a class", {VolumeNamed("v", "5Gi", "")}, claim, "none"},
      {"none with none", {VolumeNamed("v", "5Gi", "")}, ClaimNamed("c", "5Gi", ""), "v"},
      {"none with unset", {VolumeNamed("v", "5Gi", "")}, ClaimNamed("c", "5Gi", nullptr), "v"},
      {"class by annotation",
       {With<PersistentVolume>(VolumeNamed("v", "5Gi", "fast"), old_class)},
       With<PersistentVolumeClaim>(ClaimNamed("c", "5Gi", nullptr), old_class),
       "v"},
      {"block for file", {With<PersistentVolume>(VolumeNamed("v", "5Gi"), block)}, claim, "none"},
      {"file for unset", {With<PersistentVolume>(VolumeNamed("v", "5Gi"), file)}, claim, "v"},
      {"block for block",
       {VolumeNamed("f", "5Gi"), With<PersistentVolume>(VolumeNamed("b", "9Gi"), block)},
       With<PersistentVolumeClaim>(claim, block),
       "b"},
      {"leaving", {With<PersistentVolume>(VolumeNamed("v", "5Gi"), leaving)}, claim, "none"},
      {"not available", {With<PersistentVolume>(VolumeNamed("v", "5Gi"), released)}, claim, "none"},
      {"attributes class of the volume",
       {With<PersistentVolume>(VolumeNamed("v", "5Gi"), gold)},
       claim,
       "none"},
      {"same attributes class",
       {VolumeNamed("plain", "5Gi"), With<PersistentVolume>(VolumeNamed("gold", "9Gi"), gold)},
       With<PersistentVolumeClaim>(claim, gold),
       "gold"},
      {"selector",
       {VolumeNamed("v", "5Gi"), With<PersistentVolume>(VolumeNamed("f", "9Gi"), fast)},
       With<PersistentVolumeClaim>(claim, wants_fast),
       "f"},
      {"reserved first, whatever its class and size",
       {VolumeNamed("v", "5Gi"), MeantFor(VolumeNamed("mine", "9Gi", "fast"), "c")},
       claim,
       "mine"},
      {"reserved for another", {MeantFor(VolumeNamed("v", "5Gi"), "other")}, claim, "none"},
      {"reserved for one of that name before",
       {MeantFor(VolumeNamed("v", "5Gi"), "c", "old")},
       claim,
       "none"},
      {"reserved and too small",
       {MeantFor(VolumeNamed("mine", "1Gi"), "c"), VolumeNamed("v", "5Gi")},
       claim,
       "v"},
  };
  for (const Case& one : cases) EXPECT_EQ(Fit(one.volumes, one.claim), one.want) << one.what;
}

TEST(BestFitTest, ReservedOnlyLeavesTheRestToTheScheduler) {
  const PersistentVolumeClaim claim = ClaimNamed("c");
  EXPECT_EQ(Fit({VolumeNamed("v")}, claim, true), "none");
  EXPECT_EQ(Fit({VolumeNamed("v"), MeantFor(VolumeNamed("mine"), "c")}, claim, true), "mine");
}

TEST(MismatchTest, SaysWhy) {
  const PersistentVolumeClaim claim = ClaimNamed("c", "5Gi");
  EXPECT_EQ(Mismatch(VolumeNamed("v", "5Gi"), claim), "");
  EXPECT_EQ(Mismatch(VolumeNamed("v", "1Gi"), claim), "requested PV is too small");
  EXPECT_EQ(Mismatch(VolumeNamed("v", "5Gi", "x"), claim), "storageClassName does not match");
  EXPECT_EQ(Mismatch(VolumeNamed("v", "5Gi", "slow", {"ReadOnlyMany"}), claim), "incompatible accessMode");
  PersistentVolume volume = VolumeNamed("v", "5Gi");
  volume.mutable_spec()->set_volume_mode("Block");
  EXPECT_EQ(Mismatch(volume, claim), "incompatible volumeMode");
  volume.mutable_spec()->set_volume_attributes_class_name("gold");
  EXPECT_EQ(Mismatch(volume, claim), "volumeAttributesClassName does not match");
  volume.mutable_metadata()->mutable_deletion_timestamp();
  EXPECT_EQ(Mismatch(volume, claim), "the volume is marked for deletion \"v\"");
}

TEST(DefaultOfTest, YoungestThenByName) {
  auto at = [](const char* name, int64_t seconds, const char* value = "true") {
    StorageClass one = ClassNamed(name);
    one.mutable_metadata()->mutable_creation_timestamp()->set_seconds(seconds);
    (*one.mutable_metadata()->mutable_annotations())["storageclass.kubernetes.io/is-default-class"] = value;
    return std::make_shared<const StorageClass>(one);
  };
  EXPECT_EQ(DefaultOf({}), nullptr);
  EXPECT_EQ(DefaultOf({at("a", 9, "false")}), nullptr);
  EXPECT_EQ(DefaultOf({at("a", 1), at("z", 5), at("c", 5), at("d", 9, "false")})->metadata().name(), "c");
}

TEST(ExternalProvisionerTest, Names) {
  EXPECT_EQ(ExternalProvisioner("example.com/disk"), "example.com/disk");
  EXPECT_EQ(ExternalProvisioner("kubernetes.io/vsphere-volume"), "csi.vsphere.vmware.com");
  EXPECT_EQ(ExternalProvisioner("kubernetes.io/no-provisioner"), "");
}

}  // namespace
}  // namespace keelson::controllers
