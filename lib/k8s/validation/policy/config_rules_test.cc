// ConfigMaps, Secrets, Namespaces, Leases, limits, quotas, nodes and events.
#include "lib/k8s/testing/rule_cases.h"
#include "lib/k8s/text/json_problem.h"

namespace keelson::k8s {
namespace {

TEST(ConfigRules, MapsAndSecrets) {
  ExpectErrors({
      {"v1",
       "ConfigMap",
       Namespaced(R"("data":{"a":"1","b":"2"},"binaryData":{"b":"AA=="})"),
       {"data[b]: Invalid value: \"b\": duplicate of key present in binaryData"}},
      {"v1",
       "ConfigMap",
       Namespaced(R"("data":{"..":"1"})"),
       {"data[..]: Invalid value: \"..\": must not be '..'"}},
      {"v1",
       "Secret",
       Namespaced(R"("type":"kubernetes.io/tls")"),
       {"data[tls.crt]: Required value", "data[tls.key]: Required value"}},
      {"v1",
       "Secret",
       Namespaced(R"("type":"kubernetes.io/basic-auth")"),
       {"data[username]: Required value", "data[password]: Required value"}},
      {"v1",
       "Secret",
       Namespaced(R"("type":"kubernetes.io/service-account-token")"),
       {"metadata.annotations[kubernetes.io/service-account.name]: Required value"}},
      {"v1",
       "Secret",
       Namespaced(R"("type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":"e30="})"),
       {}},
      {"v1",
       "Secret",
       Namespaced(R"("type":"kubernetes.io/dockerconfigjson","data":{".dockerconfigjson":"eA=="})"),
       {"data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'x' "
        "looking "
        "for beginning of value"}},
      {"v1",
       "Secret",
       Namespaced(R"("type":"kubernetes.io/dockercfg","data":{".dockercfg":"W10="})"),
       {"data[.dockercfg]: Invalid value: \"<secret contents redacted>\": json: cannot unmarshal array into "
        "Go "
        "value of type map[string]interface {}"}},
  });
  ExpectChangeErrors(ValidateUpdate, {{"v1",
                                       "ConfigMap",
                                       Namespaced(R"("immutable":true,"data":{"a":"1"})"),
                                       Namespaced(R"("data":{"a":"2"})"),
                                       {"immutable: Forbidden: field is immutable when `immutable` is set",
                                        "data: Forbidden: field is immutable when `immutable` is set"}},
                                      {"v1",
                                       "Secret",
                                       Namespaced(R"("type":"a")"),
                                       Namespaced(R"("type":"kubernetes.io/ssh-auth")"),
                                       {"type: Invalid value: \"kubernetes.io/ssh-auth\": field is immutable",
                                        "data[ssh-privatekey]: Required value"}},
                                      {"v1",
                                       "Secret",
                                       Namespaced(R"("immutable":true)"),
                                       Namespaced(R"("immutable":true,"data":{"a":"MQ=="})"),
                                       {"data: Forbidden: field is immutable when `immutable` is set"}}});
}

TEST(ConfigRules, Finalizers) {
  constexpr char kOdd[] =
      "metadata.finalizers[1]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it "
      "fully "
      "qualified";
  const std::string meta =
      R"({"metadata":{"name":"x","namespace":"d","resourceVersion":"1","finalizers":["a.io/b","mine"]}})";
  ExpectErrors({{"v1", "ConfigMap", meta, {kOdd}}});
  ExpectChangeErrors(ValidateUpdate, {{"v1", "ConfigMap", Namespaced(R"("data":{})"), meta, {kOdd}}});
  const std::string cluster = R"({"metadata":{"name":"x","finalizers":["mine"]}})";
  ExpectErrors({{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", cluster, {}}});
}

TEST(ConfigRules, Json) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", ""},
      {R"( {"a":[1,-2.5e3,"\u00e9",null,true]} )", ""},
      {"", "unexpected end of JSON input"},
      {"{\"a\"", "unexpected end of JSON input"},
      {"{a:1}", "invalid character 'a' looking for beginning of object key string"},
      {"{\"a\" 1}", "invalid character '1' after object key"},
      {"{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"},
      {"[1 2]", "invalid character '2' after array element"},
      {"{} x", "invalid character 'x' after top-level value"},
      {"nul!", "invalid character '!' in literal null (expecting 'l')"},
      {"\"\\q\"", "invalid character 'q' in string escape code"},
  };
  for (const auto& [text, problem] : cases) EXPECT_EQ(JsonProblem(text), problem) << text;
  EXPECT_EQ(JsonObjectProblem("null"), "");
  EXPECT_EQ(JsonObjectProblem("1"),
            "json: cannot unmarshal number into Go value of type map[string]interface {}");
}

TEST(ConfigRules, NamespacesAndLeases) {
  constexpr char kFinalizer[] =
      "spec.finalizers: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully "
      "qualified";
  ExpectErrors({
      {"v1", "Namespace", Cluster(R"("spec":{"finalizers":["kubernetes","example.com/f"]})"), {}},
      {"v1", "Namespace", Cluster(R"("spec":{"finalizers":["mine"]})"), {kFinalizer}},
      {"coordination.k8s.io/v1",
       "Lease",
       Namespaced(R"("spec":{"leaseDurationSeconds":0,"leaseTransitions":-1,"preferredHolder":"me"})"),
       {"spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"}},
  });
  ExpectChangeErrors(ValidateStatusUpdate,
                     {{"v1",
                       "Namespace",
                       Cluster(R"("status":{})"),
                       Cluster(R"("status":{"phase":"Terminating"})"),
                       {"status.Phase: Invalid value: \"Terminating\": may only be 'Active' if "
                        "`deletionTimestamp` is empty"}}});
  const auto finalize = [](const api::Message& object, const api::Message& old) {
    return ValidatePartUpdate(object, old, "finalize");
  };
  ExpectChangeErrors(finalize,
                     {{"v1",
                       "Namespace",
                       Cluster(R"("spec":{})"),
                       Cluster(R"("spec":{"finalizers":["mine"]})"),
                       {"spec.finalizers[0]: Invalid value: \"mine\": name is neither a standard finalizer "
                        "name nor is it fully qualified"}}});
}

std::string Limit(const std::string& item) { return Namespaced(R"("spec":{"limits":[)" + item + "]}"); }

TEST(ConfigRules, LimitRanges) {
  ExpectErrors({
      {"v1", "LimitRange", Limit(R"({"type":"Container","max":{"cpu":"2"},"min":{"cpu":"100m"}})"), {}},
      {"v1",
       "LimitRange",
       Limit(R"({"type":"Container","max":{"cpu":"1"},"min":{"cpu":"2"}})"),
       {"spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
        "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater than default "
        "request "
        "value 1",
        "spec.limits[0].default[cpu]: Invalid value: \"2\": min value 2 is greater than default value 1"}},
      {"v1",
       "LimitRange",
       Limit(R"({"type":"Pod","default":{"cpu":"1"},"defaultRequest":{"cpu":"1"}})"),
       {"spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
        "spec.limits[0].defaultRequest: Forbidden: may not be specified when `type` is 'Pod'"}},
      {"v1",
       "LimitRange",
       Limit(R"({"type":"PersistentVolumeClaim"})"),
       {"spec.limits[0].limits: Required value: either minimum or maximum storage value is required, but "
        "neither "
        "was provided"}},
      {"v1",
       "LimitRange",
       Limit(R"({"type":"Pod","max":{"cpu":"1"}},{"type":"Pod","max":{"cpu":"1"}})"),
       {"spec.limits[1].type: Duplicate value: \"Pod\""}},
      {"v1",
       "LimitRange",
       Limit(R"({"type":"Cat"})"),
       {"spec.limits[0].type: Invalid value: \"Cat\": must be a standard limit type or fully qualified"}},
      {"v1",
       "LimitRange",
       Limit(R"({"type":"Pod","max":{"cpu":"4"},"min":{"cpu":"2"},"maxLimitRequestRatio":{"cpu":"3"}})"),
       {"spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"3\": ratio 3 is greater than max/min = "
        "2.000000"}},
      {"v1",
       "LimitRange",
       Limit(R"({"type":"Pod","maxLimitRequestRatio":{"cpu":"800m"}})"),
       {"spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: \"800m\": ratio 800m is less than 1"}},
      {"v1",
       "LimitRange",
       Limit(R"({"type":"Pod","max":{"pods":"1"}})"),
       {"spec.limits[0].max[pods]: Invalid value: \"pods\": must be a standard resource for containers"}},
  });
}

TEST(ConfigRules, Quotas) {
  const auto quota = [](const std::string& spec) { return Namespaced(R"("spec":{)" + spec + "}"); };
  ExpectErrors({
      {"v1",
       "ResourceQuota",
       quota(R"("hard":{"pods":"2","requests.cpu":"1","count/deployments.apps":"1"})"),
       {}},
      {"v1",
       "ResourceQuota",
       quota(R"("hard":{"pods":"500m","cpu":"-1"})"),
       {"spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
        "spec.hard[pods]: Invalid value: \"500m\": must be an integer"}},
      {"v1",
       "ResourceQuota",
       quota(R"("hard":{"cats":"1"})"),
       {"spec.hard[cats]: Invalid value: \"cats\": must be a standard resource type or fully qualified",
        "spec.hard[cats]: Invalid value: \"cats\": must be a standard resource for quota"}},
      {"v1",
       "ResourceQuota",
       quota(R"("hard":{"pods":"1"},"scopes":["Other"])"),
       {"spec.scopes: Invalid value: [\"Other\"]: unsupported scope"}},
      {"v1",
       "ResourceQuota",
       quota(R"("hard":{"secrets":"1"},"scopes":["BestEffort"])"),
       {"spec.scopes: Invalid value: [\"BestEffort\"]: unsupported scope applied to resource"}},
      {"v1",
       "ResourceQuota",
       quota(R"("hard":{"pods":"1"},"scopes":["BestEffort","NotBestEffort"])"),
       {"spec.scopes: Invalid value: [\"BestEffort\",\"NotBestEffort\"]: conflicting scopes"}},
      {"v1",
       "ResourceQuota",
       quota(R"("scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In"}]})"),
       {"spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when "
        "`operator` is "
        "'In' or 'NotIn' for scope selector"}},
  });
  ExpectChangeErrors(ValidateUpdate, {{"v1",
                                       "ResourceQuota",
                                       quota(R"("scopes":["BestEffort"])"),
                                       quota(R"("hard":{})"),
                                       {"spec.scopes: Invalid value: []: field is immutable"}}});
}

TEST(ConfigRules, Nodes) {
  ExpectErrors({
      {"v1", "Node", Cluster(R"("spec":{"podCIDRs":["10.0.0.0/24","fd00::/64"]})"), {}},
      {"v1",
       "Node",
       Cluster(R"("spec":{"podCIDRs":["10.0.0.0/24","10.1.0.0/24"]})"),
       {"spec.podCIDRs: Invalid value: [\"10.0.0.0/24\",\"10.1.0.0/24\"]: may specify no more than one CIDR "
        "for each "
        "IP family"}},
      {"v1",
       "Node",
       Cluster(R"("spec":{"taints":[{"key":"k","effect":"NoSchedule"},{"key":"k","effect":"NoSchedule"}]})"),
       {"metadata.taints[1]: Duplicate value: "
        "{\"Key\":\"k\",\"Value\":\"\",\"Effect\":\"NoSchedule\",\"TimeAdded\":null}: taints must be "
        "unique by key "
        "and effect pair"}},
  });
  ExpectChangeErrors(
      ValidateUpdate,
      {{"v1",
        "Node",
        Cluster(R"("spec":{"podCIDR":"10.0.0.0/24"})"),
        Cluster(R"("spec":{"podCIDR":"10.1.0.0/24"})"),
        {"spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid"}},
       {"v1",
        "Node",
        Cluster(R"("spec":{"providerID":"a"})"),
        Cluster(R"("spec":{"providerID":"b"})"),
        {"spec.providerID: Forbidden: node updates may not change providerID except from \"\" to valid"}},
       {"v1",
        "Node",
        Cluster(R"("spec":{})"),
        Cluster(R"("spec":{"configSource":{"configMap":{"namespace":"n","name":"m","uid":"u",)"
                R"("kubeletConfigKey":"k"}}},"status":{"config":{"active":{"configMap":{"namespace":"n",)"
                R"("name":"m","uid":"u","kubeletConfigKey":"k"}}}})"),
        {"spec.configSource.configMap.uid: Forbidden: uid must not be set in spec",
         "status.config.active.configMap.resourceVersion: Required value"}},
       {"v1",
        "Node",
        Cluster(R"("spec":{})"),
        Cluster(R"("status":{"capacity":{"cpu":"-1","example.com/gpu":"500m"}})"),
        {"status.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
         "status.capacity.example.com/gpu: Invalid value: \"500m\": must be an integer",
         "status.allocatable.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
         "status.allocatable.example.com/gpu: Invalid value: \"500m\": must be an integer"}}});
}

TEST(ConfigRules, DeclaredFeatures) {
  const auto node = [](const std::string& features) {
    return Cluster(R"("status":{"declaredFeatures":[)" + features + "]}");
  };
  const auto odd = [&](const std::string& name) {
    return RuleCase{
        "v1",
        "Node",
        node("\"" + name + "\""),
        {"status.declaredFeatures[0]: Invalid value: \"" + name + "\": invalid feature name \"" + name +
         "\": must start with an UpperCamelCase segment, with subsequent segments separated by "
         "'/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric "
         "characters and slashes"}};
  };
  const Lines unsorted = {
      "status.declaredFeatures[1]: Invalid value: \"A\": list must be sorted alphabetically"};
  ExpectErrors({
      {"v1", "Node", node(R"("Cpu2","Gpu/b2","Gpu/b2/c")"), {}},
      odd("a"),
      odd("A-b"),
      odd("A/"),
      odd("A/1"),
      odd(""),
      {"v1", "Node", node(R"("B","A")"), unsorted},
      {"v1", "Node", node(R"("A","A")"), {"status.declaredFeatures[1]: Duplicate value: \"A\""}},
  });
  ExpectChangeErrors(ValidateStatusUpdate, {{"v1", "Node", node(""), node(R"("A","B")"), {}},
                                            {"v1", "Node", node(""), node(R"("B","A")"), unsorted}});
}

TEST(ConfigRules, Events) {
  constexpr char kModern[] =
      R"("regarding":{"namespace":"d"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"a.io/c",)"
      R"("reportingInstance":"i","action":"Do","reason":"Why","type":"Normal")";
  ExpectErrors({
      {"v1", "Event", Namespaced(R"("involvedObject":{"namespace":"d"})"), {}},
      {"v1",
       "Event",
       Namespaced(R"("involvedObject":{"namespace":"e"})"),
       {"involvedObject.namespace: Invalid value: \"e\": does not match event.namespace"}},
      {"v1",
       "Event",
       Namespaced(R"("involvedObject":{})"),
       {"involvedObject.namespace: Invalid value: \"\": does not match event.namespace"}},
      {"events.k8s.io/v1", "Event", Namespaced(kModern), {}},
      {"events.k8s.io/v1",
       "Event",
       Namespaced(std::string(kModern) + R"(,"deprecatedCount":1,"series":{"count":1})"),
       {"series.count: Invalid value: \"\": should be at least 2", "series.lastObservedTime: Required value",
        "count: Invalid value: \"\": needs to be unset"}},
      {"events.k8s.io/v1",
       "Event",
       Namespaced(R"("regarding":{"namespace":"d"},"type":"Odd")"),
       {"eventTime: Required value", "type: Invalid value: \"\": has invalid value: Odd"}},
      {"events.k8s.io/v1",
       "Event",
       Namespaced(
           R"("regarding":{"namespace":"d"},"eventTime":"2026-01-01T00:00:00.000000Z","type":"Normal")"),
       {"reportingController: Required value",
        "reportingController: Invalid value: \"\": name part must be non-empty",
        "reportingController: Invalid value: \"\": name part must consist of alphanumeric characters, '-', "
        "'_' or '.', "
        "and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
        "regex used "
        "for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "reportingInstance: Required value", "action: Required value", "reason: Required value"}},
  });
  ExpectChangeErrors(ValidateUpdate, {{"events.k8s.io/v1",
                                       "Event",
                                       Namespaced(kModern),
                                       Namespaced(std::string(kModern) + R"(,"note":"new")"),
                                       {"message: Invalid value: \"new\": field is immutable"}}});
}

}  // namespace
}  // namespace keelson::k8s
