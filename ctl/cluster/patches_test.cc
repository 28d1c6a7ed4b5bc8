#include "ctl/cluster/patches.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <sstream>

#include "lib/base/file.h"

namespace keelson::ctl {
namespace {

namespace json = boost::json;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Patches, AreNamedByTargetAndType) {
  const struct {
    const char *file, *target;
    PatchKind kind;
  } cases[] = {
      {"kubeletconfiguration.yaml", "kubeletconfiguration", PatchKind::kStrategic},
      {"kubeletconfiguration.json", "kubeletconfiguration", PatchKind::kStrategic},
      {"kubeletconfiguration0+merge.yaml", "kubeletconfiguration", PatchKind::kMerge},
      {"kubeletconfiguration1+json.yaml", "kubeletconfiguration", PatchKind::kJson},
      {"kubeletconfiguration-a+strategic.json", "kubeletconfiguration", PatchKind::kStrategic},
      {"kube-apiserver0+merge.yaml", "kube-apiserver", PatchKind::kMerge},
      {"etcd.json", "etcd", PatchKind::kStrategic},
      {"corednsdeployment+json.json", "corednsdeployment", PatchKind::kJson},
  };
  for (const auto& one : cases) {
    const auto name = ParsePatchName(one.file);
    ASSERT_TRUE(name) << one.file;
    EXPECT_EQ(name->target, one.target) << one.file;
    EXPECT_EQ(name->kind, one.kind) << one.file;
    EXPECT_EQ(name->why, "");
  }
  for (const char* file : {"README", "kubeletconfiguration.yml", ".json", "kubelet.yaml", "x-etcd.json"}) {
    const auto name = ParsePatchName(file);
    ASSERT_TRUE(name) << file;
    EXPECT_EQ(name->target, "") << file;
    EXPECT_NE(name->why, "") << file;
  }
  for (const char* file : {"kubeletconfiguration+.yaml", "kubeletconfiguration+yaml.json"}) {
    EXPECT_THAT(ParsePatchName(file).error().message(),
                HasSubstr("unknown or missing patch type after '+', must be one of [json merge strategic]"));
  }
}

class PatchFiles : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/keelson-patches-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(directory_)); }
  void Add(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFile(directory_ + "/" + name, text));
  }
  Result<json::object> Patched(const char* document) {
    const auto patches = ReadPatches(directory_, out_, err_);
    if (!patches) return patches.error();
    return ApplyPatches(json::parse(document).as_object(), *patches);
  }

  std::string directory_;
  std::ostringstream out_, err_;
};

constexpr char kDocument[] =
    R"({"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","maxPods":110,)"
    R"("clusterDNS":["10.96.0.10"],"evictionHard":{"memory.available":"100Mi","nodefs.available":"10%"}})";

TEST_F(PatchFiles, ChangeTheKubeletInTheOrderOfTheirNames) {
  Add("kubeletconfiguration0.yaml",
      "# strategic\nmaxPods: 50\nclusterDNS: [10.0.0.1]\nevictionHard:\n  nodefs.available: 5%\n");
  Add("kubeletconfiguration1+merge.yaml", "maxPods: 60\nevictionHard:\n  memory.available: null\n");
  Add("kubeletconfiguration2+json.json",
      "[\n\t{\"op\": \"add\", \"path\": \"/clusterDNS/-\", \"value\": \"10.0.0.2\"}\n]\n");
  Add("kubeletconfiguration3.yaml", "podsPerCore: 3\n---\npodsPerCore: 4\n---\n");
  Add("kube-apiserver.yaml", "spec: {}\n");
  Add("notes.txt", "x");
  const auto patched = Patched(kDocument);
  ASSERT_TRUE(patched) << patched.error().message();
  EXPECT_EQ(
      json::value(*patched),
      json::parse(
          R"({"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","maxPods":60,)"
          R"("clusterDNS":["10.0.0.1","10.0.0.2"],"evictionHard":{"nodefs.available":"5%"},"podsPerCore":4})"));
  EXPECT_THAT(out_.str(),
              AllOf(HasSubstr("[patches] Found the following patch files: [kubeletconfiguration0.yaml "),
                    HasSubstr("[patches] Ignored the following files: [kube-apiserver.yaml notes.txt]")));
  EXPECT_THAT(err_.str(), HasSubstr("Ignoring file \"kube-apiserver.yaml\": there is no static pod"));
}

TEST_F(PatchFiles, AreRefusedWhenTheyDoNotFit) {
  Add("kubeletconfiguration+json.yaml", "- {op: remove, path: /absent}\n");
  EXPECT_THAT(Patched(kDocument).error().message(),
              AllOf(HasSubstr("could not apply the patch of type \"application/json-patch+json\""),
                    HasSubstr("to target \"kubeletconfiguration\"")));
  Add("kubeletconfiguration+json.yaml", "- {op: replace, path: /kind, value: Pod}\n");
  EXPECT_THAT(Patched(kDocument).error().message(), HasSubstr("the result is no KubeletConfiguration"));
  Add("kubeletconfiguration+json.yaml", "- {op: replace, path: '', value: 1}\n");
  EXPECT_FALSE(Patched(kDocument));
  Add("kubeletconfiguration+json.yaml", "a: [\n");
  EXPECT_THAT(Patched(kDocument).error().message(), HasSubstr("kubeletconfiguration+json.yaml"));
}

TEST_F(PatchFiles, NeedADirectory) {
  EXPECT_THAT(*ReadPatches("", out_, err_), IsEmpty());
  EXPECT_THAT(ReadPatches(directory_ + "/none", out_, err_).error().message(),
              HasSubstr("could not list patch files for path"));
  EXPECT_THAT(*ReadPatches(directory_, out_, err_), IsEmpty());
}

}  // namespace
}  // namespace keelson::ctl
