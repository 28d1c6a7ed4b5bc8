#include "lib/k8s/feature_gates.h"

#include <fstream>
#include <map>
#include <optional>
#include <sstream>

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

struct Declared {
  FeatureStage stage;
  bool on, locked;
  bool operator==(const Declared&) const = default;
  friend void PrintTo(const Declared& one, std::ostream* out) {
    *out << "stage " << int{static_cast<uint8_t>(one.stage)} << (one.on ? " on" : " off")
         << (one.locked ? " locked" : "");
  }
};

// The table of the release, by name.
std::map<std::string, Declared> ReadTable() {
  static const std::map<std::string, FeatureStage> kStages = {{"Alpha", FeatureStage::kAlpha},
                                                              {"Beta", FeatureStage::kBeta},
                                                              {"GA", FeatureStage::kGa},
                                                              {"Deprecated", FeatureStage::kDeprecated}};
  std::map<std::string, Declared> out;
  std::optional<Declared> group;
  std::ifstream file(KEELSON_TESTDATA "/feature_gates.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("== ")) {
      std::istringstream words(line.substr(3));
      std::string stage, on, locked;
      words >> stage >> on >> locked;
      group = Declared{kStages.at(stage), on == "on", locked == "locked"};
      continue;
    }
    EXPECT_TRUE(group) << line;
    if (group) {
      EXPECT_TRUE(out.emplace(line, *group).second) << line << " is there twice";
    }
  }
  return out;
}

TEST(FeatureGates, AreThoseOfTheRelease) {
  const std::map<std::string, Declared> expected = ReadTable();
  EXPECT_EQ(expected.size(), 242u);
  std::string_view last;
  for (const FeatureGate& gate : AllFeatureGates()) {
    EXPECT_LT(last, gate.name);
    last = gate.name;
    const auto at = expected.find(std::string(gate.name));
    ASSERT_NE(at, expected.end()) << gate.name << " is not a gate of the release";
    EXPECT_EQ((Declared{gate.stage, gate.on, gate.locked}), at->second) << gate.name;
  }
  for (const auto& [name, declared] : expected) {
    EXPECT_TRUE(Find(name)) << name << " is missing";
  }
}

// Every program takes every gate, at its default to begin with, and a locked one with no other value.
TEST(FeatureGates, AreTheSameInEachProgram) {
  const std::pair<const char*, Programs> programs[] = {{"kube-apiserver", Program::kApiServer},
                                                       {"kube-controller-manager", Program::kControllers},
                                                       {"kube-scheduler", Program::kScheduler},
                                                       {"kubelet", Program::kKubelet},
                                                       {"kube-proxy", Program::kProxy}};
  for (const auto& [name, declared] : ReadTable()) {
    ASSERT_TRUE(Find(name)) << name;
    for (const auto& [program, bit] : programs) {
      EXPECT_EQ(FeatureInEffect({}, name, bit), declared.on) << name << " of " << program;
    }
    EXPECT_TRUE(CheckFeatureGates({{name, declared.on}})) << name;
    const Result<> other = CheckFeatureGates({{name, !declared.on}});
    const bool refused = !other && other.error().message().find("feature is locked") != std::string::npos;
    EXPECT_EQ(refused, declared.locked) << name;
  }
}

// These are removed, and one is kubeadm's.
TEST(FeatureGates, OfOtherReleasesAndProgramsAreUnknown) {
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
