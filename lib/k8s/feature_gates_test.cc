#include "lib/k8s/feature_gates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/k8s/validation_settings.h"
#include "lib/metrics/metrics.h"

namespace keelson::k8s {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const FeatureGate* Find(std::string_view name) {
  for (const FeatureGate& gate : AllFeatureGates()) {
    if (gate.name == name) return &gate;
  }
  return nullptr;
}

// The number of gates of each stage in 1.36. A new release changes the numbers.
TEST(FeatureGates, AreThoseOfTheRelease) {
  std::map<std::tuple<FeatureStage, bool, bool>, int> kinds;
  std::string_view last;
  for (const FeatureGate& gate : AllFeatureGates()) {
    EXPECT_LT(last, gate.name);
    last = gate.name;
    ++kinds[{gate.stage, gate.on, gate.locked}];
  }
  using S = FeatureStage;
  EXPECT_EQ(kinds, (std::map<std::tuple<FeatureStage, bool, bool>, int>{{{S::kAlpha, false, false}, 50},
                                                                        {{S::kBeta, false, false}, 12},
                                                                        {{S::kBeta, true, false}, 88},
                                                                        {{S::kDeprecated, false, false}, 7},
                                                                        {{S::kDeprecated, false, true}, 3},
                                                                        {{S::kDeprecated, true, false}, 4},
                                                                        {{S::kDeprecated, true, true}, 2},
                                                                        {{S::kGa, true, false}, 5},
                                                                        {{S::kGa, true, true}, 71}}));
}

TEST(FeatureGates, OfSpecialInterest) {
  const struct {
    const char* name;
    FeatureStage stage;
    bool on, locked;
  } cases[] = {
      {"AllowServiceExternalIPs", FeatureStage::kGa, true, false},
      {"CustomCPUCFSQuotaPeriod", FeatureStage::kGa, true, false},
      {"GitRepoVolumeDriver", FeatureStage::kDeprecated, false, true},
      {"PodCertificateRequest", FeatureStage::kBeta, false, false},
      {"ServiceCIDRStatusFieldWiping", FeatureStage::kDeprecated, true, false},
  };
  for (const auto& c : cases) {
    const FeatureGate* gate = Find(c.name);
    ASSERT_TRUE(gate) << c.name;
    EXPECT_EQ(gate->stage, c.stage) << c.name;
    EXPECT_EQ(gate->on, c.on) << c.name;
    EXPECT_EQ(gate->locked, c.locked) << c.name;
  }
  // These are removed, and one is kubeadm's.
  for (const char* name : {"CSIMigrationPortworx", "HonorPVReclaimPolicy", "MemoryManager",
                           "NodeLocalCRISocket", "ServiceTrafficDistribution", "TopologyAwareHints"}) {
    EXPECT_FALSE(Find(name)) << name;
  }
}

TEST(FeatureGates, DependOnGatesThatThereAre) {
  for (const FeatureDependency& one : FeatureDependencies()) {
    EXPECT_TRUE(Find(one.gate)) << one.gate;
    ASSERT_TRUE(Find(one.needs)) << one.needs;
    EXPECT_FALSE(Find(one.needs)->locked) << one.needs;
  }
  EXPECT_TRUE(CheckFeatureGates({})) << "the defaults fit together";
}

TEST(FeatureGates, AreReadFromText) {
  const struct {
    const char* text;
    FeatureGates want;
    const char* error = "";
  } cases[] = {
      {"", {}},
      {"A=true,B=false", {{"A", true}, {"B", false}}},
      {",A = T , B=0,", {{"A", true}, {"B", false}}},
      {"kube:A=1", {{"A", true}}},
      {"A", {}, "missing bool value for A"},
      {"A=on", {}, "invalid value of A=on, err: strconv.ParseBool: parsing \"on\": invalid syntax"},
      {"other:A=1", {}, "component not registered: other"},
  };
  for (const auto& c : cases) {
    FeatureGates gates;
    const Result<> parsed = ParseFeatureGates(c.text, gates);
    EXPECT_EQ(parsed ? "" : parsed.error().message(), c.error) << c.text;
    if (parsed) {
      EXPECT_EQ(gates, c.want) << c.text;
    }
  }
  FeatureGates gates = {{"A", false}, {"C", true}};
  ASSERT_TRUE(ParseFeatureGates("A=true", gates));
  EXPECT_EQ(gates, (FeatureGates{{"A", true}, {"C", true}})) << "what was set before stays";
}

TEST(FeatureGates, AreChecked) {
  const struct {
    FeatureGates gates;
    const char* error;
  } cases[] = {
      {{{"MemoryQoS", true}, {"NodeSwap", true}}, ""},
      {{{"AllAlpha", true}}, ""},
      {{{"AllBeta", false}}, ""},
      {{{"Nonsense", true}}, "unrecognized feature gate: Nonsense"},
      {{{"NodeSwap", false}}, "cannot set feature gate NodeSwap to false, feature is locked to true"},
      {{{"GitRepoVolumeDriver", true}, {"NodeSwap", false}},
       "[cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false, cannot set feature "
       "gate "
       "NodeSwap to false, feature is locked to true]"},
      {{{"ClusterTrustBundleProjection", true}},
       "ClusterTrustBundleProjection is enabled, but depends on features that are disabled: "
       "[ClusterTrustBundle]"},
      {{{"ClusterTrustBundleProjection", true}, {"ClusterTrustBundle", true}}, ""},
      {{{"NodeDeclaredFeatures", false}, {"RestartAllContainersOnContainerExits", false}},
       "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: "
       "[NodeDeclaredFeatures]"},
  };
  for (const auto& c : cases) {
    const Result<> checked = CheckFeatureGates(c.gates);
    EXPECT_EQ(checked ? "" : checked.error().message(), c.error);
  }
}

TEST(FeatureGates, FollowAllAlphaAndAllBetaWhereTheyAreNotSetThemselves) {
  const FeatureGates gates = {
      {"AllAlpha", true}, {"AllBeta", false}, {"MemoryQoS", false}, {"WatchList", true}};
  EXPECT_TRUE(FeatureEnabled(gates, "QOSReserved"));
  EXPECT_FALSE(FeatureEnabled(gates, "MemoryQoS"));
  EXPECT_FALSE(FeatureEnabled(gates, "EnvFiles"));
  EXPECT_TRUE(FeatureEnabled(gates, "WatchList"));
  EXPECT_TRUE(FeatureEnabled(gates, "NodeSwap")) << "neither is about what is generally available";
  EXPECT_FALSE(FeatureEnabled({}, "QOSReserved"));
  EXPECT_TRUE(FeatureEnabled({}, "EnvFiles"));
}

TEST(FeatureGates, HaveNoEffectInProgramsThatDoNotHonourThem) {
  const FeatureGates gates = {{"StorageVersionAPI", true}, {"MemoryQoS", true}, {"EnvFiles", false}};
  EXPECT_FALSE(FeatureInEffect(gates, "StorageVersionAPI", Program::kApiServer)) << "nowhere";
  EXPECT_TRUE(FeatureInEffect(gates, "MemoryQoS", Program::kKubelet | Program::kProxy));
  EXPECT_FALSE(FeatureInEffect(gates, "MemoryQoS", Program::kApiServer));
  EXPECT_TRUE(FeatureInEffect(gates, "EnvFiles", Program::kKubelet)) << "always on";
}

TEST(FeatureGates, NoneIsIgnoredWithoutAWord) {
  EXPECT_THAT(FeatureGateWarnings({}, Program::kKubelet), IsEmpty());
  EXPECT_THAT(FeatureGateWarnings({{"MemoryQoS", true}, {"EnvFiles", true}}, Program::kKubelet), IsEmpty());
  EXPECT_THAT(FeatureGateWarnings({{"MemoryQoS", true}, {"EnvFiles", false}}, Program::kApiServer),
              ElementsAre("These feature gates have no effect in this program, which behaves as by default: "
                          "EnvFiles=false,MemoryQoS=true"));
  EXPECT_THAT(
      FeatureGateWarnings({{"AllowServiceExternalIPs", false}}, Program::kProxy),
      ElementsAre("Setting GA feature gate AllowServiceExternalIPs=false. It will be removed in a future "
                  "release."));
  EXPECT_THAT(
      FeatureGateWarnings({{"KMSv1", false}}, Program::kApiServer),
      ElementsAre("Setting deprecated feature gate KMSv1=false. It will be removed in a future release."));
  const auto all = FeatureGateWarnings({{"AllAlpha", true}}, Program::kKubelet);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0], HasSubstr("EventedPLEG=true"));
  EXPECT_THAT(all[0], Not(HasSubstr("MemoryQoS")));
}

TEST(FeatureGates, ChangeValidation) {
  const ValidationSettings usual = ValidationSettingsOf({});
  EXPECT_TRUE(usual.allow_privileged && usual.relaxed_service_names);
  EXPECT_FALSE(usual.autoscale_to_zero || usual.mutable_volume_node_affinity);
  const ValidationSettings other = ValidationSettingsOf({{"RelaxedServiceNameValidation", false},
                                                         {"HPAScaleToZero", true},
                                                         {"MutablePVNodeAffinity", true},
                                                         {"ContainerStopSignals", true}});
  EXPECT_FALSE(other.relaxed_service_names);
  EXPECT_TRUE(other.autoscale_to_zero && other.mutable_volume_node_affinity);
  EXPECT_TRUE(!usual.container_stop_signals && other.container_stop_signals);
}

TEST(FeatureGates, AreShownWithTheirStages) {
  TellFeatureGates({{"MemoryQoS", true}}, Program::kKubelet);
  const std::string metrics = metrics::Print();
  for (const char* line : {R"({name="AllAlpha",stage="ALPHA"} 0)", R"({name="MemoryQoS",stage="ALPHA"} 1)",
                           R"({name="EnvFiles",stage="BETA"} 1)", R"({name="NodeSwap",stage=""} 1)",
                           R"({name="KMSv1",stage="DEPRECATED"} 0)"}) {
    EXPECT_THAT(metrics, HasSubstr(std::string("kubernetes_feature_enabled") + line));
  }
}

}  // namespace
}  // namespace keelson::k8s
