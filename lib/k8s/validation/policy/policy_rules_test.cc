// Disruption budgets, autoscalers, classes, flow control and reviews.
#include "lib/k8s/autoscaler_conversion.h"
#include "lib/k8s/testing/rule_cases.h"
#include "lib/k8s/validation_settings.h"
#include "lib/k8s/warnings/warnings.h"

namespace keelson::k8s {
namespace {

TEST(PolicyRules, Budgets) {
  const auto budget = [](const std::string& spec) { return Namespaced(R"("spec":{)" + spec + "}"); };
  ExpectErrors({
      {"policy/v1", "PodDisruptionBudget", budget(R"("minAvailable":"50%")"), {}},
      {"policy/v1",
       "PodDisruptionBudget",
       budget(R"("minAvailable":1,"maxUnavailable":1)"),
       {"spec: Invalid value: "
        "{\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":1,\"UnhealthyPodEvictionPolicy\":null}: "
        "minAvailable and maxUnavailable "
        "cannot be both "
        "set"}},
      {"policy/v1",
       "PodDisruptionBudget",
       budget(R"("maxUnavailable":"150%")"),
       {"spec.maxUnavailable: Invalid value: \"150%\": must not be greater than 100%"}},
      {"policy/v1",
       "PodDisruptionBudget",
       budget(R"("unhealthyPodEvictionPolicy":"Never")"),
       {"spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \"AlwaysAllow\", "
        "\"IfHealthyBudget\""}},
  });
  ExpectChangeErrors(
      ValidateStatusUpdate,
      {{"policy/v1",
        "PodDisruptionBudget",
        budget(""),
        Namespaced(
            R"("status":{"disruptionsAllowed":-1,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0,)"
            R"("conditions":[{"type":"A","status":"Maybe","reason":"","message":""}]})"),
        {"status.conditions[0].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", "
         "\"Unknown\"",
         "status.conditions[0].lastTransitionTime: Required value: must be set",
         "status.conditions[0].reason: Required value: must be set",
         "status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0"}}});
}

std::string ScalerOf(const std::string& target, const std::string& spec = "") {
  return Namespaced(R"("spec":{"scaleTargetRef":{)" + target + R"(,"name":"d"},"maxReplicas":3)" + spec +
                    "}");
}
std::string Scaler(const std::string& spec) {
  return ScalerOf(R"("apiVersion":"apps/v1","kind":"Deployment")", spec);
}

TEST(PolicyRules, Autoscalers) {
  ExpectErrors({
      {"autoscaling/v2", "HorizontalPodAutoscaler", Scaler(""), {}},
      {"autoscaling/v1", "HorizontalPodAutoscaler", Scaler(""), {}},
      {"autoscaling/v1",
       "HorizontalPodAutoscaler",
       Namespaced(
           R"("spec":{"scaleTargetRef":{"kind":"D","name":""},"minReplicas":0,"maxReplicas":0,"targetCPUUtilizationPercentage":0})"),
       {"spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
        "spec.maxReplicas: Required value: must be set and greater than 0",
        "spec.scaleTargetRef.name: Required value",
        "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group",
        "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
        "spec.metrics: Forbidden: must specify at least one Object or External metric to support scaling to "
        "zero "
        "replicas"}},
      {"autoscaling/v2",
       "HorizontalPodAutoscaler",
       Scaler(R"(,"minReplicas":4)"),
       {"spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"}},
      {"autoscaling/v2",
       "HorizontalPodAutoscaler",
       Scaler(R"(,"metrics":[{"type":"Pods"},{"type":"Odd"}])"),
       {"spec.metrics[0].pods: Required value: must populate information for the given metric source",
        "spec.metrics[1].type: Unsupported value: \"Odd\": supported values: \"ContainerResource\", "
        "\"External\", \"Object\", \"Pods\", \"Resource\"",
        "spec.metrics[1].type: Unsupported value: \"Odd\": supported values: \"ContainerResource\", "
        "\"External\", \"Object\", \"Pods\", \"Resource\""}},
      {"autoscaling/v2",
       "HorizontalPodAutoscaler",
       Scaler(R"(,"metrics":[{"type":"Resource","resource":{"name":"","target":{"type":"Utilization"}}}])"),
       {"spec.metrics[0].resource.name: Required value: must specify a resource name",
        "spec.metrics[0].resource.target.averageUtilization: Required value: must set either a target raw "
        "value or a "
        "target utilization"}},
      {"autoscaling/v2",
       "HorizontalPodAutoscaler",
       Scaler(
           R"(,"behavior":{"scaleUp":{"stabilizationWindowSeconds":4000,"selectPolicy":"Odd","policies":[{"type":"X","value":0,"periodSeconds":2000}]}})"),
       {"spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 4000: must be less than or equal "
        "to 3600",
        "spec.behavior.scaleUp.selectPolicy: Unsupported value: \"Odd\": supported values: \"Disabled\", "
        "\"Max\", \"Min\"",
        "spec.behavior.scaleUp.policies[0].type: Unsupported value: \"X\": supported values: \"Percent\", "
        "\"Pods\"",
        "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
        "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 2000: must be less than or equal to "
        "1800"}},
  });
}

// A scale target needs an API group, unless it is a ReplicationController.
TEST(PolicyRules, AutoscalerTargets) {
  constexpr char kV2[] = "autoscaling/v2", kKind[] = "HorizontalPodAutoscaler";
  constexpr char kNoGroup[] = "apiVersion must specify API group";
  const auto wrong = [](const std::string& version, const std::string& why) {
    return Lines{"spec.scaleTargetRef.apiVersion: Invalid value: \"" + version + "\": " + why};
  };
  const std::string none = ScalerOf(R"("kind":"Deployment")"),
                    core = ScalerOf(R"("apiVersion":"v1","kind":"Deployment")"),
                    odd = ScalerOf(R"("apiVersion":"a/b/c","kind":"Deployment")");
  ExpectErrors({
      {kV2, kKind, none, wrong("", kNoGroup)},
      {"autoscaling/v1", kKind, none, wrong("", kNoGroup)},
      {kV2, kKind, core, wrong("v1", kNoGroup)},
      {kV2, kKind, ScalerOf(R"("apiVersion":"/v1","kind":"Deployment")"), wrong("/v1", kNoGroup)},
      {kV2, kKind, odd, wrong("a/b/c", "unexpected GroupVersion string: a/b/c")},
      {kV2, kKind, ScalerOf(R"("apiVersion":"v1","kind":"ReplicationController")"), {}},
      {kV2, kKind, ScalerOf(R"("kind":"ReplicationController")"), {}},
  });
  ExpectChangeErrors(ValidateUpdate, {
                                         // What the stored object has may stay.
                                         {kV2, kKind, none, none, {}},
                                         {"autoscaling/v1", kKind, odd, odd, {}},
                                         {kV2, kKind, Scaler(""), none, wrong("", kNoGroup)},
                                         {kV2, kKind, none, core, wrong("v1", kNoGroup)},
                                     });
}

TEST(PolicyRules, AutoscalerZero) {
  constexpr char kV2[] = "autoscaling/v2", kKind[] = "HorizontalPodAutoscaler";
  constexpr char kMetric[] =
      R"("metrics":[{"type":"External","external":{"metric":{"name":"m"},"target":{"type":"Value","value":"1"}}}])";
  const std::string zero = Scaler(std::string(R"(,"minReplicas":0,)") + kMetric);
  const Lines refused = {"spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"};
  ExpectErrors({{kV2, kKind, zero, refused}});
  ExpectChangeErrors(ValidateUpdate, {{kV2, kKind, zero, zero, {}}, {kV2, kKind, Scaler(""), zero, refused}});
  const ScopedValidationSettings settings({.autoscale_to_zero = true});
  ExpectErrors({{kV2, kKind, zero, {}},
                {kV2,
                 kKind,
                 Scaler(R"(,"minReplicas":-1)"),
                 {"spec.minReplicas: Invalid value: -1: must be greater than or equal to 0"}}});
}

TEST(PolicyRules, AutoscalerMetrics) {
  const auto metric = [](const std::string& type, const std::string& source) {
    return Scaler(R"(,"metrics":[{"type":")" + type + "\"," + source + "}]");
  };
  constexpr char kV2[] = "autoscaling/v2", kKind[] = "HorizontalPodAutoscaler";
  constexpr char kObject[] = R"("object":{"describedObject":{"kind":"K","name":"n","apiVersion":)";
  ExpectErrors({
      {kV2,
       kKind,
       metric("Pods", R"("pods":{"metric":{"name":"m"},"target":{"type":"AverageValue"}})"),
       {"spec.metrics[0].pods.target.averageValue: Required value: must specify a positive target "
        "averageValue"}},
      // The described object may be in the core group.
      {kV2,
       kKind,
       metric("Object", std::string(kObject) + R"("v1"},"metric":{"name":"m"},"target":{"type":"Value"}})"),
       {"spec.metrics[0].object.target.averageValue: Required value: must set either a target value or "
        "averageValue"}},
      {kV2,
       kKind,
       metric("ContainerResource", std::string(R"("containerResource":{"name":"cats","container":"A",)") +
                                       R"("target":{"type":"Utilization","averageUtilization":1}})"),
       {"spec.metrics[0].containerResource.name: Invalid value: \"cats\": must be a standard resource type "
        "or fully qualified",
        "spec.metrics[0].containerResource.name: Invalid value: \"cats\": must be a standard resource for "
        "containers",
        std::string("spec.metrics[0].containerResource.container: Invalid value: \"A\": ") + kLabelRule}},
  });
}

TEST(PolicyRules, AutoscalersConvert) {
  auto v2 = ParseObject(
      "autoscaling/v2", "HorizontalPodAutoscaler",
      Scaler(
          R"(,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":60}}},)"
          R"({"type":"Pods","pods":{"metric":{"name":"qps"},"target":{"type":"AverageValue","averageValue":"10"}}}],)"
          R"("behavior":{"scaleDown":{"policies":[{"type":"Pods","value":1,"periodSeconds":60}]}})"));
  const auto& object = static_cast<const autoscalingv2::HorizontalPodAutoscaler&>(*v2);
  const autoscalingv1::HorizontalPodAutoscaler v1 = ToAutoscalingV1(object);
  EXPECT_EQ(v1.spec().target_cpu_utilization_percentage(), 60);
  EXPECT_EQ(v1.metadata().annotations().at("autoscaling.alpha.kubernetes.io/metrics"),
            R"([{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"10"}}])");
  EXPECT_EQ(
      v1.metadata().annotations().at("autoscaling.alpha.kubernetes.io/behavior"),
      R"({"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[)"
      R"({"Type":"Pods","Value":4,"PeriodSeconds":15},{"Type":"Percent","Value":100,"PeriodSeconds":15}],)"
      R"("Tolerance":null},"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Max",)"
      R"("Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":60}],"Tolerance":null}})");
  const autoscalingv2::HorizontalPodAutoscaler back = ToAutoscalingV2(v1);
  EXPECT_TRUE(back.metadata().annotations().empty());
  ASSERT_EQ(back.spec().metrics_size(), 2);
  EXPECT_EQ(back.spec().metrics(0).pods().metric().name(), "qps");
  EXPECT_EQ(back.spec().metrics(1).resource().target().average_utilization(), 60);
  EXPECT_EQ(api::EncodeJson(back.spec().behavior()), api::EncodeJson(object.spec().behavior()));
}

TEST(PolicyRules, Classes) {
  ExpectErrors({
      {"scheduling.k8s.io/v1",
       "PriorityClass",
       Cluster(R"("value":1000000001)"),
       {"value: Forbidden: maximum allowed value of a user defined priority is 1000000000"}},
      {"scheduling.k8s.io/v1",
       "PriorityClass",
       R"({"metadata":{"name":"system-x"},"value":1})",
       {"metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use "
        "only. error: "
        "system-x is not a known system priority class"}},
      {"scheduling.k8s.io/v1",
       "PriorityClass",
       R"({"metadata":{"name":"system-node-critical"},"value":1})",
       {"metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use "
        "only. error: "
        "value of system-node-critical PriorityClass must be 2000001000"}},
      {"node.k8s.io/v1",
       "RuntimeClass",
       Cluster(R"("handler":"runc","overhead":{"podFixed":{"cpu":"-1"}})"),
       {"overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"}},
      {"apps/v1",
       "ControllerRevision",
       Namespaced(R"("revision":-1)"),
       {"data: Required value: data is mandatory",
        "revision: Invalid value: -1: must be greater than or equal to 0"}},
  });
  ExpectChangeErrors(ValidateUpdate,
                     {{"scheduling.k8s.io/v1",
                       "PriorityClass",
                       Cluster(R"("value":1)"),
                       Cluster(R"("value":2,"preemptionPolicy":"Never")"),
                       {"value: Forbidden: may not be changed in an update.",
                        "preemptionPolicy: Invalid value: \"Never\": field is immutable"}},
                      {"node.k8s.io/v1",
                       "RuntimeClass",
                       Cluster(R"("handler":"a")"),
                       Cluster(R"("handler":"b")"),
                       {"handler: Invalid value: \"b\": field is immutable"}},
                      {"node.k8s.io/v1",
                       "RuntimeClass",
                       Cluster(R"("handler":"a")"),
                       Cluster(R"("handler":"a","scheduling":{"nodeSelector":{"a b":"c"}})"),
                       {std::string("scheduling.nodeSelector: Invalid value: \"a b\": ") + kQualifiedRule}}});
}

TEST(PolicyRules, FlowControl) {
  constexpr char kV1[] = "flowcontrol.apiserver.k8s.io/v1";
  ExpectErrors({
      {kV1,
       "FlowSchema",
       Cluster(R"("spec":{"priorityLevelConfiguration":{"name":""},"matchingPrecedence":1,"rules":[{}]})"),
       {"spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have "
        "matchingPrecedence 1",
        "spec.priorityLevelConfiguration.name: Required value: must reference a priority level",
        "spec.rules[0].subjects: Required value: subjects must contain at least one value",
        "spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be "
        "non-empty"}},
      {kV1,
       "FlowSchema",
       Cluster(
           R"("spec":{"priorityLevelConfiguration":{"name":"p"},"rules":[{"subjects":[{"kind":"User","group":{"name":"g"}}],)"
           R"("nonResourceRules":[{"verbs":["*","get"],"nonResourceURLs":["a","/b*"]}]}]})"),
       {"spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
        "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
        "spec.rules[0].nonResourceRules[0].verbs: Invalid value: [\"*\",\"get\"]: if '*' is present, must "
        "not specify other "
        "verbs",
        "spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: \"a\": must start with slash",
        "spec.rules[0].nonResourceRules[0].nonResourceURLs[1]: Invalid value: \"/b*\": wildcard can only do "
        "suffix "
        "matching"}},
      {kV1,
       "PriorityLevelConfiguration",
       Cluster(R"("spec":{"type":"Exempt"})"),
       {"spec.type: Invalid value: \"Exempt\": type must be 'Exempt' if and only if name is 'exempt'"}},
      {kV1,
       "PriorityLevelConfiguration",
       Cluster(
           R"("spec":{"type":"Limited","limited":{"lendablePercent":101,"limitResponse":{"type":"Queue","queuing":{"queues":4,"handSize":8}}}})"),
       {"spec.limited.limitResponse.queuing.handSize: Invalid value: 8: should not be greater than queues "
        "(4)",
        "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive"}},
  });
}

TEST(PolicyRules, Warnings) {
  EXPECT_EQ(
      WarningsOnCreate(*ParseObject("networking.k8s.io/v1", "Ingress",
                                    R"({"metadata":{"annotations":{"kubernetes.io/ingress.class":"a"}}})")),
      Lines{"annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' "
            "instead"});
  EXPECT_EQ(WarningsOnCreate(*ParseObject("v1", "Node", Cluster(R"("spec":{"externalID":"e"})"))),
            Lines{"spec.externalID: this field is deprecated, and is unused by Kubernetes"});
}

TEST(PolicyRules, Reviews) {
  const auto said = [](const char* kind, const std::string& json) {
    return PrintErrors(ValidateReview(*ParseObject("authorization.k8s.io/v1", kind, json)));
  };
  EXPECT_EQ(said("SubjectAccessReview", R"({"spec":{"user":"u","resourceAttributes":{"verb":"get"}}})"),
            Lines());
  EXPECT_EQ(
      said("SubjectAccessReview", R"({"spec":{}})"),
      (Lines{"spec.resourceAttributes: Invalid value: \"null\": exactly one of nonResourceAttributes or "
             "resourceAttributes must be specified",
             "spec.user: Invalid value: \"\": at least one of user or group must be specified"}));
  EXPECT_EQ(
      said("SelfSubjectAccessReview",
           R"({"spec":{"resourceAttributes":{},"nonResourceAttributes":{"path":"/"}}})"),
      Lines{
          "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/\",\"Verb\":\"\"}: cannot be specified in "
          "combination with "
          "resourceAttributes"});
  EXPECT_EQ(
      said("SelfSubjectAccessReview",
           R"({"spec":{"resourceAttributes":{"labelSelector":{"requirements":[{"key":"a b","operator":"In",)"
           R"("values":["c"]},{"key":"k","operator":"Near"}]},"fieldSelector":{}}}})"),
      (Lines{"spec.resourceAttributes.fieldSelector.requirements: Required value: when "
             "spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
             "spec.resourceAttributes.labelSelector.requirements[0].key: Invalid value: \"a b\": " +
                 std::string(kQualifiedRule)}));
  EXPECT_EQ(
      said("LocalSubjectAccessReview",
           R"({"metadata":{"namespace":"a"},"spec":{"user":"u","resourceAttributes":{"namespace":"b"}}})"),
      Lines{"spec.resourceAttributes.namespace: Invalid value: \"b\": must match metadata.namespace"});
}

}  // namespace
}  // namespace keelson::k8s
