#include "lib/k8s/warnings/warnings.h"

#include <gtest/gtest.h>

#include "lib/k8s/disabled_fields.h"
#include "lib/k8s/object_diff.h"
#include "lib/k8s/testing/rules.h"
#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {
namespace {

struct WarningCase {
  const char* api_version;
  const char* kind;
  std::string json;
  Lines warnings;
};

class WarningsTest : public testing::TestWithParam<WarningCase> {};

TEST_P(WarningsTest, OnCreate) {
  const WarningCase& c = GetParam();
  EXPECT_EQ(WarningsOnCreate(*Parse(c.api_version, c.kind, c.json)), c.warnings) << c.json;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, WarningsTest,
    testing::Values(
        WarningCase{"v1", "Pod", Pod(kContainers), {}},
        WarningCase{"v1",
                    "Pod",
                    PodAnd(R"("nodeSelector":{"beta.kubernetes.io/os":"linux"})"),
                    {R"(spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use )"
                     R"("kubernetes.io/os" instead)"}},
        WarningCase{"v1",
                    "Pod",
                    PodWith(R"("resources":{"requests":{"memory":"100m"}})"),
                    {R"(spec.containers[0].resources.requests[memory]: fractional byte value "100m" is )"
                     "invalid, must be an integer"}},
        WarningCase{"v1",
                    "Pod",
                    PodWith(R"("env":[{"name":"A","value":"1"},{"name":"A","value":"2"}])"),
                    {R"(spec.containers[0].env[1]: hides previous definition of "A", which may be dropped )"
                     "when using apply"}},
        WarningCase{"v1",
                    "Pod",
                    PodWith(R"("ports":[{"containerPort":80},{"containerPort":80}])"),
                    {"spec.containers[0].ports[1]: duplicate port definition with "
                     "spec.containers[0].ports[0]"}},
        WarningCase{"v1",
                    "Pod",
                    PodAnd(R"("topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"t",)"
                           R"("whenUnsatisfiable":"DoNotSchedule"}])"),
                    {"spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in "
                     "matching no pod"}},
        WarningCase{
            "apps/v1",
            "Deployment",
            R"({"metadata":{"name":"a.b","namespace":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},)"
            R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"hostAliases":[{"ip":"1.1.1.1"},)"
            R"({"ip":"1.1.1.1"}],"containers":[{"name":"c","image":"i"}]}}}})",
            {"metadata.name: this is used in Pod names and hostnames, which can result in surprising "
             "behavior; "
             "a DNS label is recommended: [must not contain dots]",
             R"(spec.template.spec.hostAliases[1].ip: duplicate ip "1.1.1.1")"}},
        WarningCase{
            "v1",
            "PersistentVolumeClaim",
            R"({"metadata":{"name":"c","namespace":"d","annotations":)"
            R"({"volume.beta.kubernetes.io/storage-class":"x"}},"spec":{"accessModes":["ReadWriteOnce"],)"
            R"("resources":{"requests":{"storage":"1Gi"}}}})",
            {"metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "
             "\"storageClassName\" attribute instead"}}));

TEST(DropDisabledFields, KeepsWhatIsStored) {
  const auto parse = [] {
    return Parse("v1", "Pod",
                 PodAnd(R"("volumes":[{"name":"v","projected":{"sources":[{"clusterTrustBundle":)"
                        R"({"name":"b","path":"p"}}]}}])"));
  };
  auto pod = parse();
  const auto old = parse();
  auto& spec = *static_cast<corev1::Pod&>(*pod).mutable_spec();
  const auto& source = spec.volumes(0).volume_source().projected().sources(0);
  DropDisabledFields(spec, &static_cast<const corev1::Pod&>(*old).spec());
  EXPECT_TRUE(source.has_cluster_trust_bundle());
  DropDisabledFields(spec, nullptr);
  EXPECT_FALSE(source.has_cluster_trust_bundle());

  auto& containers = *spec.mutable_containers();
  auto& init = *spec.add_init_containers()->mutable_lifecycle();
  init.set_stop_signal("SIGUSR1");
  init.mutable_pre_stop()->mutable_sleep()->set_seconds(1);
  containers.Mutable(0)->mutable_lifecycle()->set_stop_signal("SIGUSR1");
  const corev1::PodSpec signals = spec;
  DropDisabledFields(spec, &signals);
  EXPECT_EQ(containers.Get(0).lifecycle().stop_signal(), "SIGUSR1");
  {
    ValidationSettings settings;
    settings.container_stop_signals = true;
    const ScopedValidationSettings on(settings);
    DropDisabledFields(spec, nullptr);
  }
  EXPECT_EQ(containers.Get(0).lifecycle().stop_signal(), "SIGUSR1");
  DropDisabledFields(spec, nullptr);
  EXPECT_FALSE(containers.Get(0).has_lifecycle()) << "nothing else was in it";
  EXPECT_FALSE(init.has_stop_signal());
  EXPECT_TRUE(init.has_pre_stop());

  api::apps::v1::StatefulSetSpec set;
  auto& rolling = *set.mutable_update_strategy()->mutable_rolling_update();
  rolling.mutable_max_unavailable()->set_int_val(2);
  const api::apps::v1::StatefulSetSpec stored = set;
  DropDisabledFields(set, &stored);
  EXPECT_EQ(rolling.max_unavailable().int_val(), 2);
  const api::apps::v1::StatefulSetSpec without;
  DropDisabledFields(set, &without);
  EXPECT_FALSE(rolling.has_max_unavailable());
}

// Formats that nothing checks. An update warns of what it brings.
TEST(Warnings, FormatsOfDefinitions) {
  const auto definition = [](const std::string& properties) {
    return Parse("apiextensions.k8s.io/v1", "CustomResourceDefinition",
                 R"({"metadata":{"name":"a.b"},"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":)"
                 R"({"type":"object","properties":{)" +
                     properties + "}}}}]}}");
  };
  const auto fine = definition(
      R"("a":{"type":"integer","format":"int32"},"b":{"type":"number","format":"double"},"c":{"type":"string","format":"date-time"},"d":{"format":"k8s-short-name"},"e":{"type":"string","format":"quantity"})");
  EXPECT_EQ(WarningsOnCreate(*fine), Lines{});
  const auto odd = definition(
      R"("a":{"type":"string","format":"int32"},"b":{"type":"array","items":{"type":"string","format":"tea"}},"c":{"type":"object","additionalProperties":{"type":"string","format":"tea"},"format":"email"})");
  const Lines warnings = {R"(unrecognized format "int32")", R"(unrecognized format "tea")",
                          R"(unrecognized format "email")"};
  EXPECT_EQ(WarningsOnCreate(*odd), warnings);
  EXPECT_EQ(WarningsOnUpdate(*odd, *fine), warnings);
  EXPECT_EQ(WarningsOnUpdate(*odd, *odd), Lines{});
  EXPECT_EQ(WarningsOnUpdate(*odd, *definition(R"("z":{"type":"string","format":"tea"})")),
            (Lines{R"(unrecognized format "int32")", R"(unrecognized format "email")"}));
}

TEST(ObjectDiff, GoesDownToTheField) {
  const auto old = Parse("v1", "Pod", Pod(kContainers)),
             now = Parse("v1", "Pod", PodAnd(R"("hostname":"h")"));
  EXPECT_EQ(ObjectDiff(*old, *old, ""), "");
  EXPECT_EQ(ObjectDiff(static_cast<const corev1::Pod&>(*old).spec(),
                       static_cast<const corev1::Pod&>(*now).spec(), "spec"),
            "+ spec.hostname: \"h\"\n");
}

}  // namespace
}  // namespace keelson::k8s
