#include "kubelet/volume/trust_anchors.h"

#include "kubelet/volume/testing/volume_test.h"

namespace keelson::kubelet {
namespace {

// Not real certificates: the code under test does not parse them.
constexpr char kOne[] = "-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----\n",
               kTwo[] = "-----BEGIN CERTIFICATE-----\ndHdv\n-----END CERTIFICATE-----\n";

class TrustAnchorsTest : public VolumeTest {
 protected:
  static TrustBundle Bundle(const std::string& name, const std::string& signer, const std::string& tier,
                            const std::string& pem) {
    TrustBundle bundle{name, signer, {}, pem};
    bundle.labels["tier"] = tier;
    return bundle;
  }
  // What the projection's file holds, or why there is none.
  std::string Project(const std::string& source) {
    auto pod = PodWith(R"({"name":"v","projected":{"sources":[{"clusterTrustBundle":{"path":"ca.pem",)" +
                       source + "}}]}}");
    auto problem = Problem(pod);
    if (!problem.empty()) return problem;
    return *ReadFile(VolumeDir("kubernetes.io/projected", "v") + "/ca.pem");
  }
};

TEST_F(TrustAnchorsTest, BundlesAreChosenAndMerged) {
  objects_.trust_bundles = {Bundle("a", "x/y", "gold", std::string("words\n") + kOne + kOne),
                            Bundle("b", "x/y", "tin", std::string(kTwo) + kOne),
                            Bundle("c", "other/z", "gold", kTwo), Bundle("plain", "", "gold", kTwo)};
  const std::string failed = "MountVolume.SetUp failed for volume \"v\" : ";
  struct Case {
    const char *name, *source;
    std::string want;
  };
  for (const Case& c : {
           Case{"one by name, each certificate once", R"("name":"a")", kOne},
           {"no signer", R"("name":"plain")", kTwo},
           {"by signer and label", R"("signerName":"x/y","labelSelector":{"matchLabels":{"tier":"gold"}})",
            kOne},
           {"no selector chooses nothing", R"("signerName":"x/y")",
            failed + "combination of signerName and labelSelector matched zero ClusterTrustBundles"},
           {"missing", R"("name":"d")", failed + "while getting ClusterTrustBundle: \"d\" not found"},
           {"missing, which may be", R"("name":"d","optional":true)", ""},
           {"nothing chosen, which may be", R"("signerName":"no/body","labelSelector":{},"optional":true)",
            ""},
           {"neither", R"("optional":true)",
            failed + "ClusterTrustBundle projection requires either name or signerName to be set"},
       }) {
    EXPECT_EQ(Project(c.source), c.want) << c.name;
  }
  const std::string all = Project(R"("signerName":"x/y","labelSelector":{})");
  EXPECT_TRUE(all == std::string(kOne) + kTwo || all == std::string(kTwo) + kOne) << all;
  EXPECT_EQ(Project(R"("signerName":"x/y","labelSelector":{})"), all) << "the order stays";
}

TEST_F(TrustAnchorsTest, ApiServersWithoutBundles) {
  EXPECT_EQ(
      Project(R"("name":"a","optional":true)"),
      "MountVolume.SetUp failed for volume \"v\" : ClusterTrustBundle projection is not supported in static "
      "kubelet mode");
}

TEST_F(TrustAnchorsTest, WhatIsThereOutlivesTheApiServersAbsence) {
  objects_.trust_bundles = {Bundle("a", "", "", kOne)};
  EXPECT_EQ(Project(R"("name":"a")"), kOne);
  objects_.failure = Error(Code::kUnavailable, "away");
  EXPECT_EQ(Project(R"("name":"a")"), kOne);
}

}  // namespace
}  // namespace keelson::kubelet
