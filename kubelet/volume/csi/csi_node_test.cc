#include "kubelet/volume/csi/csi_node.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"

namespace keelson::kubelet::csi {
namespace {

corev1::Node NodeWith(const std::string& metadata) {
  corev1::Node out;
  EXPECT_TRUE(api::DecodeJson(R"({"metadata":{"name":"n1","uid":"nu")" + metadata + "}}", out));
  return out;
}

TEST(CsiNodeTest, IsOwnedByItsNode) {
  const CsiNode made = NewCsiNode(NodeWith(""));
  EXPECT_EQ(made.metadata().name(), "n1");
  ASSERT_EQ(made.metadata().owner_references_size(), 1);
  EXPECT_EQ(made.metadata().owner_references(0).kind(), "Node");
  EXPECT_EQ(made.metadata().owner_references(0).uid(), "nu");
  EXPECT_EQ(made.metadata().annotations().at("storage.alpha.kubernetes.io/migrated-plugins"),
            "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,"
            "kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume");
}

TEST(CsiNodeTest, DriversComeAndGo) {
  CsiNode object = NewCsiNode(NodeWith(""));
  EXPECT_FALSE(SetMigratedPlugins(object));
  EXPECT_TRUE(InstallDriver(object, "a", {"id-a", 5, {{"zone", "1"}, {"rack", "2"}}}));
  EXPECT_FALSE(InstallDriver(object, "a", {"id-a", 5, {{"zone", "3"}, {"rack", "2"}}}))
      << "the keys are the same";
  EXPECT_TRUE(InstallDriver(object, "b", {"id-b", 0, {}}));
  ASSERT_EQ(object.spec().drivers_size(), 2);
  EXPECT_EQ(object.spec().drivers(0).node_id(), "id-a");
  EXPECT_EQ(object.spec().drivers(0).allocatable().count(), 5);
  EXPECT_EQ(object.spec().drivers(0).topology_keys(0), "rack");
  EXPECT_FALSE(object.spec().drivers(1).has_allocatable()) << "no limit";
  EXPECT_TRUE(InstallDriver(object, "a", {"id-a", 4, {{"zone", "1"}, {"rack", "2"}}}));
  EXPECT_EQ(object.spec().drivers(1).allocatable().count(), 4);
  EXPECT_TRUE(InstallDriver(object, "b", {"id-b", int64_t{1} << 40, {}}));
  EXPECT_EQ(object.spec().drivers(1).allocatable().count(), std::numeric_limits<int32_t>::max());
  EXPECT_TRUE(UninstallDriver(object, "a"));
  EXPECT_FALSE(UninstallDriver(object, "a"));
  EXPECT_EQ(object.spec().drivers_size(), 1);
}

TEST(CsiNodeTest, PatchesOfTheNode) {
  struct Case {
    const char *metadata, *patch, *problem;
  };
  for (
      const Case& c :
      {Case{
           "",
           R"({"metadata":{"labels":{"zone":"1"},"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"d\":\"id\"}"}}})",
           ""},
       {R"(,"labels":{"zone":"1"},"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"c\":\"x\",\"d\":\"old\"}"})",
        R"({"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"c\":\"x\",\"d\":\"id\"}"}}})",
        ""},
       {R"(,"labels":{"zone":"1"},"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"d\":\"id\"}"})", "",
        ""},
       {R"(,"labels":{"zone":"2"})", "",
        "detected topology value collision: driver reported \"zone\":\"1\" but existing label is "
        "\"zone\":\"2\""},
       {R"(,"annotations":{"csi.volume.kubernetes.io/nodeid":"[]"})", "",
        "failed to parse node's \"csi.volume.kubernetes.io/nodeid\" annotation value (\"[]\") err=it is no "
        "object"}}) {
    auto patch = InstallPatch(NodeWith(c.metadata), "d", {"id", 0, {{"zone", "1"}}});
    EXPECT_EQ(patch ? patch->value_or("") : "", c.patch) << c.metadata;
    EXPECT_EQ(patch ? "" : patch.error().message(), c.problem) << c.metadata;
  }
}

TEST(CsiNodeTest, TheLastDriverTakesTheAnnotationWithIt) {
  const char* two = R"(,"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"c\":\"x\",\"d\":\"id\"}"})";
  const char* one = R"(,"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"d\":\"id\"}"})";
  EXPECT_EQ(**UninstallPatch(NodeWith(two), "d"),
            R"({"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":"{\"c\":\"x\"}"}}})");
  EXPECT_EQ(**UninstallPatch(NodeWith(one), "d"),
            R"({"metadata":{"annotations":{"csi.volume.kubernetes.io/nodeid":null}}})");
  EXPECT_FALSE(*UninstallPatch(NodeWith(one), "c"));
}

}  // namespace
}  // namespace keelson::kubelet::csi
