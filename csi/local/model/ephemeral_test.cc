#include "csi/local/model/ephemeral.h"

#include <gtest/gtest.h>

#include <map>

namespace keelson::csi::local {
namespace {

constexpr int64_t kMi = int64_t{1} << 20;

Result<EphemeralVolume> Parse(const std::map<std::string, std::string>& attributes,
                              const std::string& type = "") {
  v1::VolumeCapability capability;
  capability.mutable_mount()->set_fs_type(type);
  Strings context;
  for (const auto& [key, value] : attributes) context[key] = value;
  context["csi.storage.k8s.io/ephemeral"] = "true";
  context["csi.storage.k8s.io/pod.name"] = "p";
  return ParseEphemeral(context, capability);
}

TEST(EphemeralTest, TheKubeletSaysSo) {
  Strings context;
  EXPECT_FALSE(IsEphemeral(context));
  context["csi.storage.k8s.io/ephemeral"] = "false";
  EXPECT_FALSE(IsEphemeral(context));
  context["csi.storage.k8s.io/ephemeral"] = "true";
  EXPECT_TRUE(IsEphemeral(context));
}

TEST(EphemeralTest, Identities) {
  EXPECT_TRUE(IsEphemeralId("csi-" + std::string(64, 'a')));
  for (const std::string& id :
       {std::string("csi-"), "csi-" + std::string(63, '0'), "csi-" + std::string(64, 'G'),
        "vol-" + std::string(64, '0'), std::string()}) {
    EXPECT_FALSE(IsEphemeralId(id)) << id;
  }
}

TEST(EphemeralTest, Sizes) {
  EXPECT_EQ(Parse({})->capacity, 1024 * kMi);
  EXPECT_EQ(Parse({{"size", "64Mi"}})->capacity, 64 * kMi);
  EXPECT_EQ(Parse({{"size", "1"}})->capacity, 4 * kMi) << "the least of ext4";
  EXPECT_EQ(Parse({{"size", "64Mi"}}, "xfs")->capacity, 300 * kMi) << "the least of XFS";
  EXPECT_EQ(Parse({{"size", "4194305"}})->capacity, 4 * kMi + kBlock) << "rounded up";
  for (const char* size : {"", "0", "-1Mi", "much", "64 Mi"}) {
    const auto parsed = Parse({{"size", size}});
    ASSERT_FALSE(parsed) << size;
    EXPECT_TRUE(parsed.error().Is(Code::kInvalid)) << size;
  }
}

TEST(EphemeralTest, Attributes) {
  EXPECT_TRUE(Parse({{"type", "directory"}})->parameters.directory);
  EXPECT_TRUE(Parse({{"provisioning", "thick"}})->parameters.thick);
  EXPECT_FALSE(Parse({{"path", "/etc"}}));
  v1::VolumeCapability device;
  device.mutable_block();
  EXPECT_FALSE(ParseEphemeral(Strings(), device));
}

}  // namespace
}  // namespace keelson::csi::local
