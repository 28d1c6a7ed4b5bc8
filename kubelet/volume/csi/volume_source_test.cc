#include "kubelet/volume/csi/volume_source.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::kubelet::csi {
namespace {

CsiDriver DriverWith(const std::string& spec) {
  CsiDriver out;
  EXPECT_TRUE(api::DecodeJson(R"({"metadata":{"name":"d"},"spec":{)" + spec + "}}", out));
  return out;
}

TEST(CsiVolumeSource, AccessModes) {
  struct Case {
    const char* mode;
    AccessMode plain, capable;
  };
  for (const Case& c :
       {Case{"", AccessMode::kSingleNodeWriter, AccessMode::kSingleNodeMultiWriter},
        {"ReadWriteOnce", AccessMode::kSingleNodeWriter, AccessMode::kSingleNodeMultiWriter},
        {"ReadWriteOncePod", AccessMode::kSingleNodeWriter, AccessMode::kSingleNodeSingleWriter},
        {"ReadOnlyMany", AccessMode::kMultiNodeReaderOnly, AccessMode::kMultiNodeReaderOnly},
        {"ReadWriteMany", AccessMode::kMultiNodeMultiWriter, AccessMode::kMultiNodeMultiWriter},
        {"Other", AccessMode::kUnknown, AccessMode::kUnknown}}) {
    VolumeSource source;
    if (*c.mode) source.access_modes = {c.mode, "ReadOnlyMany"};
    NodeCapabilities capabilities;
    EXPECT_EQ(AccessModeOf(source, capabilities), c.plain) << c.mode;
    capabilities.multi_writer = true;
    EXPECT_EQ(AccessModeOf(source, capabilities), c.capable) << c.mode;
  }
}

TEST(CsiVolumeSource, WhoAttaches) {
  const CsiDriver no = DriverWith(R"("attachRequired":false)"), yes = DriverWith(R"("attachRequired":true)"),
                  unset = DriverWith("");
  VolumeSource source;
  EXPECT_TRUE(NeedsAttaching(nullptr, source));
  EXPECT_TRUE(NeedsAttaching(&yes, source));
  EXPECT_TRUE(NeedsAttaching(&unset, source));
  EXPECT_FALSE(NeedsAttaching(&no, source));
  source.ephemeral = true;
  EXPECT_FALSE(NeedsAttaching(nullptr, source));
  EXPECT_FALSE(NeedsAttaching(&yes, source));
}

TEST(CsiVolumeSource, LifecycleModes) {
  const CsiDriver persistent = DriverWith(R"("volumeLifecycleModes":["Persistent"])");
  const CsiDriver both = DriverWith(R"("volumeLifecycleModes":["Persistent","Ephemeral"])");
  VolumeSource source;
  source.driver = "d";
  EXPECT_TRUE(CheckLifecycleMode(nullptr, source));
  EXPECT_TRUE(CheckLifecycleMode(&persistent, source));
  source.ephemeral = true;
  EXPECT_TRUE(CheckLifecycleMode(&both, source));
  EXPECT_EQ(CheckLifecycleMode(nullptr, source).error().message(),
            "volume mode \"Ephemeral\" not supported by driver d (no CSIDriver object)");
  EXPECT_EQ(CheckLifecycleMode(&persistent, source).error().message(),
            "volume mode \"Ephemeral\" not supported by driver d (only supports [\"Persistent\"])");
}

TEST(CsiVolumeSource, FsGroupPolicies) {
  corev1::Pod pod;
  VolumeSource source;
  source.fs_type = "ext4";
  source.access_modes = {"ReadWriteOnce"};
  EXPECT_EQ(*AppliesFsGroup(nullptr, source, pod), false) << "the pod has none";
  pod.mutable_spec()->mutable_security_context()->set_fs_group(7);
  EXPECT_EQ(*AppliesFsGroup(nullptr, source, pod), true);
  source.read_only = true;
  EXPECT_EQ(*AppliesFsGroup(nullptr, source, pod), false);
  source.read_only = false;
  source.access_modes.clear();
  EXPECT_EQ(*AppliesFsGroup(nullptr, source, pod), false);
  source.ephemeral = true;
  EXPECT_EQ(*AppliesFsGroup(nullptr, source, pod), true);
  const CsiDriver invalid = DriverWith("");
  EXPECT_EQ(AppliesFsGroup(&invalid, source, pod).error().message(),
            "kubernetes.io/csi: expected valid fsGroupPolicy, received nil value or empty string");
}

TEST(CsiVolumeSource, Names) {
  // printf 'vol-1disk.example.comn1' | sha256sum: what the attach-detach controller says too.
  EXPECT_EQ(AttachmentName("vol-1", "disk.example.com", "n1"),
            "csi-67beaef07640111ae4680dbb1618fdc2d7e8b400988a31892dc9e25a33572edd");
  EXPECT_EQ(AttachName("disk.example.com", "vol-1"), "kubernetes.io/csi/disk.example.com^vol-1");
  EXPECT_EQ(EphemeralHandle("uid", "v").size(), 68u);
  EXPECT_EQ(TokensJson({{"", {"a", api::ToTime(WallTime(std::chrono::seconds(0)))}}}),
            R"({"":{"token":"a","expirationTimestamp":"1970-01-01T00:00:00Z"}})");
}

TEST(CsiVolumeSource, RecordsOfBothKubeletsAreRead) {
  auto data = DecodeVolumeData(
      R"({"attachmentID":"csi-x","driverName":"d","nodeName":"n","specVolID":"pv","volumeHandle":"h",)"
      R"("volumeLifecycleMode":"Ephemeral","seLinuxMountContext":""})"
      "\n");
  ASSERT_TRUE(data);
  EXPECT_EQ(data->handle, "h");
  EXPECT_TRUE(data->ephemeral);
  EXPECT_FALSE(DecodeVolumeData(EncodeVolumeData({"d", "h", "pv", "n", "csi-x", false}, false))->ephemeral);
  for (const char* broken :
       {"", "[]", "{}", R"({"driverName":"d"})", R"({"driverName":1,"volumeHandle":"h"})"}) {
    EXPECT_EQ(DecodeVolumeData(broken).error().code(), Code::kInvalid) << broken;
  }
}

}  // namespace
}  // namespace keelson::kubelet::csi
