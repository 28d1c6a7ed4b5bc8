#include "lib/k8s/validation/validation.h"

#include <gtest/gtest.h>

#include "lib/k8s/testing/rules.h"

namespace keelson::k8s {
namespace {

constexpr char kLabelRule[] =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

struct Case {
  const char* api_version;
  const char* kind;
  std::string json;
  Lines errors;
};

class ValidateTest : public testing::TestWithParam<Case> {};

TEST_P(ValidateTest, SaysWhatIsWrong) {
  const Case& c = GetParam();
  EXPECT_EQ(Print(Validate(*Parse(c.api_version, c.kind, c.json))), c.errors) << c.json;
}

INSTANTIATE_TEST_SUITE_P(
    Pods, ValidateTest,
    testing::Values(
        Case{"v1", "Pod", Pod(kContainers), {}},
        Case{"v1", "Pod", Pod(""), {"spec.containers: Required value"}},
        Case{
            "v1", "Pod", Pod(R"("containers":[{"image":"i"}])"), {"spec.containers[0].name: Required value"}},
        Case{
            "v1", "Pod", Pod(R"("containers":[{"name":"c"}])"), {"spec.containers[0].image: Required value"}},
        Case{"v1",
             "Pod",
             Pod(R"("containers":[{"name":"C_","image":"i"}])"),
             {std::string("spec.containers[0].name: Invalid value: \"C_\": ") + kLabelRule}},
        Case{"v1",
             "Pod",
             Pod(R"("containers":[{"name":"c","image":"i"},{"name":"c","image":"i"}])"),
             {"spec.containers[1].name: Duplicate value: \"c\""}},
        Case{"v1",
             "Pod",
             Pod(std::string(kContainers) + R"(,"restartPolicy":"Sometimes")"),
             {"spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", "
              "\"OnFailure\", "
              "\"Never\""}},
        Case{"v1",
             "Pod",
             PodWith(R"("ports":[{"containerPort":70000}])"),
             {"spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, "
              "inclusive"}},
        Case{"v1",
             "Pod",
             PodWith(R"("volumeMounts":[{"name":"v","mountPath":"/v"}])"),
             {"spec.containers[0].volumeMounts[0].name: Not found: \"v\""}},
        Case{"v1",
             "Pod",
             PodWith(R"("resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}})"),
             {"spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to "
              "cpu limit "
              "of 1"}},
        Case{"v1",
             "Pod",
             PodWith(R"("resources":{"requests":{"cpu":"-1"}})"),
             {"spec.containers[0].resources.requests[cpu]: Invalid value: \"-1\": must be greater than or "
              "equal to "
              "0"}},
        Case{"v1",
             "Pod",
             PodWith(R"("resources":{"requests":{"gold":"1"}})"),
             {"spec.containers[0].resources.requests[gold]: Invalid value: \"gold\": must be a standard "
              "resource type "
              "or fully qualified",
              "spec.containers[0].resources.requests[gold]: Invalid value: \"gold\": must be a standard "
              "resource "
              "for containers"}},
        Case{"v1",
             "Pod",
             PodWith(R"("livenessProbe":{"successThreshold":2,"tcpSocket":{"port":80}})"),
             {"spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"}},
        Case{"v1",
             "Pod",
             PodWith(R"("readinessProbe":{})"),
             {"spec.containers[0].readinessProbe: Required value: must specify a handler type"}},
        Case{
            "v1",
            "Pod",
            PodWith(R"("env":[{"name":"A=B","value":"x"}])"),
            {"spec.containers[0].env[0].name: Invalid value: \"A=B\": a valid environment variable name must "
             "consist only of printable ASCII characters other than '='"}},
        Case{"v1",
             "Pod",
             PodWith(R"("env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.x"}}}])"),
             {"spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.x\": error "
              "converting "
              "fieldPath: field label not supported: spec.x"}},
        Case{"v1",
             "Pod",
             PodWith(R"("env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['x']"}}}])"),
             {}},
        Case{"v1",
             "Pod",
             Pod(std::string(kContainers) +
                 R"(,"volumes":[{"name":"v","emptyDir":{},"secret":{"secretName":"s"}}])"),
             {"spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type"}},
        Case{
            "v1",
            "Pod",
            Pod(std::string(kContainers) + R"(,"tolerations":[{"key":"k","operator":"Exists","value":"v"}])"),
            {"spec.tolerations[0].operator: Invalid value: \"v\": value must be empty when `operator` is "
             "'Exists'"}},
        Case{
            "v1",
            "Pod",
            Pod(std::string(kContainers) +
                R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}})"),
            {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
             "Required "
             "value: must have at least one node selector term"}},
        Case{
            "v1",
            "Pod",
            Pod(std::string(kContainers) + R"(,"nodeSelector":{"a":"b c"})"),
            {"spec.nodeSelector: Invalid value: \"b c\": a valid label must be an empty string or consist of "
             "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
             "character (e.g. "
             "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
             "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"}}));

INSTANTIATE_TEST_SUITE_P(
    Metadata, ValidateTest,
    testing::Values(
        Case{"v1",
             "ConfigMap",
             R"({"metadata":{"namespace":"d"}})",
             {"metadata.name: Required value: name or generateName is required"}},
        Case{"v1", "ConfigMap", R"({"metadata":{"name":"x"}})", {"metadata.namespace: Required value"}},
        Case{"v1",
             "Namespace",
             R"({"metadata":{"name":"x","namespace":"y"}})",
             {"metadata.namespace: Forbidden: not allowed on this type"}},
        Case{"v1",
             "Namespace",
             R"({"metadata":{"name":"a.b"}})",
             {"metadata.name: Invalid value: \"a.b\": must not contain dots"}},
        Case{"v1",
             "ConfigMap",
             R"({"metadata":{"name":"x","namespace":"d","labels":{"/a":"b"}}})",
             {"metadata.labels: Invalid value: \"/a\": prefix part must be non-empty"}},
        Case{"v1",
             "ConfigMap",
             R"({"metadata":{"name":"x","namespace":"d","annotations":{"a":")" +
                 std::string(256 * 1024, 'x') + R"("}}})",
             {"metadata.annotations: Too long: may not be more than 262144 bytes"}},
        Case{"v1", "ConfigMap", R"({"metadata":{"generateName":"x-","name":"x-a","namespace":"d"}})", {}},
        Case{"rbac.authorization.k8s.io/v1", "ClusterRole", R"({"metadata":{"name":"system:a"}})", {}},
        Case{"v1",
             "ConfigMap",
             R"({"metadata":{"name":"system:a","namespace":"d"}})",
             {"metadata.name: Invalid value: \"system:a\": a lowercase RFC 1123 subdomain must consist of "
              "lower case "
              "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character "
              "(e.g. "
              "'example.com', regex used for validation is "
              "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"}}));

INSTANTIATE_TEST_SUITE_P(
    OtherKinds, ValidateTest,
    testing::Values(
        Case{"v1",
             "Service",
             R"({"metadata":{"name":"s","namespace":"d"},"spec":{"ports":[{"port":80}]}})",
             {}},
        Case{"v1",
             "Service",
             R"({"metadata":{"name":"s","namespace":"d"},"spec":{}})",
             {"spec.ports: Required value"}},
        Case{"v1",
             "Service",
             R"({"metadata":{"name":"s","namespace":"d"},"spec":{"type":"X","ports":[{"port":80}]}})",
             {"spec.type: Unsupported value: \"X\": supported values: \"ClusterIP\", \"ExternalName\", "
              "\"LoadBalancer\", \"NodePort\""}},
        Case{"v1",
             "Service",
             R"({"metadata":{"name":"s","namespace":"d"},"spec":{"ports":[{"port":80},{"port":81}]}})",
             {"spec.ports[0].name: Required value", "spec.ports[1].name: Required value"}},
        Case{"v1",
             "Service",
             R"({"metadata":{"name":"s","namespace":"d"},"spec":{"ports":[{"port":80,"nodePort":30000}]}})",
             {"spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"}},
        Case{
            "apps/v1",
            "Deployment",
            R"({"metadata":{"name":"d","namespace":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"c"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})",
            {"spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match "
             "template "
             "`labels`"}},
        Case{
            "apps/v1",
            "Deployment",
            R"({"metadata":{"name":"d","namespace":"d"},"spec":{"replicas":-1,"selector":{"matchLabels":{"a":"c"}},"template":{"metadata":{"labels":{"a":"c"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}})",
            {"spec.replicas: Invalid value: -1: must be greater than or equal to 0",
             "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""}},
        Case{
            "v1",
            "Secret",
            R"({"metadata":{"name":"s","namespace":"d"},"type":"kubernetes.io/tls","data":{"tls.crt":"YQ=="}})",
            {"data[tls.key]: Required value"}},
        Case{"rbac.authorization.k8s.io/v1",
             "RoleBinding",
             R"({"metadata":{"name":"r","namespace":"d"},"roleRef":{"kind":"X","name":"r"}})",
             {"roleRef.kind: Unsupported value: \"X\": supported values: \"Role\", \"ClusterRole\""}},
        Case{"v1",
             "Node",
             R"({"metadata":{"name":"n"},"spec":{"taints":[{"key":"k","effect":"Bad"}]}})",
             {"metadata.taints[0].effect: Unsupported value: \"Bad\": supported values: \"NoSchedule\", "
              "\"PreferNoSchedule\", \"NoExecute\""}},
        Case{"v1",
             "PersistentVolumeClaim",
             R"({"metadata":{"name":"c","namespace":"d"},"spec":{}})",
             {"spec.accessModes: Required value: at least 1 access mode is required",
              "spec.resources[storage]: Required value"}},
        Case{"coordination.k8s.io/v1",
             "Lease",
             R"({"metadata":{"name":"l","namespace":"d"},"spec":{"leaseDurationSeconds":0}})",
             {"spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"}},
        Case{"networking.k8s.io/v1",
             "NetworkPolicy",
             R"({"metadata":{"name":"n","namespace":"d"},"spec":{"policyTypes":["X"]}})",
             {"spec.policyTypes[0]: Unsupported value: \"X\": supported values: \"Ingress\", \"Egress\""}}));

struct UpdateCase {
  const char* api_version;
  const char* kind;
  std::string old_json, json;
  Lines errors;
};

std::string WithVersion(const std::string& json) {
  std::string out = json;
  out.insert(out.find(R"("name":)"), R"("resourceVersion":"1",)");
  return out;
}

class ValidateUpdateTest : public testing::TestWithParam<UpdateCase> {};

TEST_P(ValidateUpdateTest, SaysWhatMayNotChange) {
  const UpdateCase& c = GetParam();
  const auto old = Parse(c.api_version, c.kind, WithVersion(c.old_json));
  const auto object = Parse(c.api_version, c.kind, WithVersion(c.json));
  EXPECT_EQ(Print(ValidateUpdate(*object, *old)), c.errors) << c.json;
  EXPECT_EQ(Print(ValidateUpdate(*old, *old)), Lines()) << c.old_json;
}

constexpr char kPodFields[] =
    "spec: Forbidden: pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec."
    "tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
    "was "
    "previously negative)";

INSTANTIATE_TEST_SUITE_P(
    Kinds, ValidateUpdateTest,
    testing::Values(
        UpdateCase{"v1",
                   "Pod",
                   Pod(kContainers),
                   Pod(R"("containers":[{"name":"c","image":"j:1","imagePullPolicy":"Always"}])"),
                   {}},
        UpdateCase{"v1",
                   "Pod",
                   Pod(kContainers),
                   Pod(std::string(kContainers) + R"(,"hostname":"h")"),
                   {std::string(kPodFields) + "\n+ spec.hostname: \"h\"\n"}},
        UpdateCase{"v1",
                   "Pod",
                   Pod(kContainers),
                   Pod(std::string(kContainers) + R"(,"tolerations":[{"operator":"Exists"}])"),
                   {}},
        UpdateCase{"v1",
                   "Pod",
                   Pod(std::string(kContainers) + R"(,"tolerations":[{"operator":"Exists"}])"),
                   Pod(kContainers),
                   {"spec.tolerations: Forbidden: existing toleration can not be modified except its "
                    "tolerationSeconds"}},
        UpdateCase{"v1",
                   "Pod",
                   Pod(kContainers),
                   Pod(R"("containers":[])"),
                   {"spec.containers: Required value",
                    "spec.containers: Forbidden: pod updates may not add or remove containers"}},
        UpdateCase{
            "v1",
            "Pod",
            Pod(std::string(kContainers) + R"(,"activeDeadlineSeconds":10)"),
            Pod(std::string(kContainers) + R"(,"activeDeadlineSeconds":20)"),
            {"spec.activeDeadlineSeconds: Invalid value: 20: must be less than or equal to previous value"}},
        UpdateCase{"v1",
                   "Pod",
                   Pod(std::string(kContainers) + R"(,"schedulingGates":[{"name":"a"}])"),
                   Pod(std::string(kContainers) + R"(,"nodeSelector":{"a":"b"})"),
                   {}},
        UpdateCase{"v1",
                   "ConfigMap",
                   R"({"metadata":{"name":"c","namespace":"d"},"immutable":true,"data":{"a":"b"}})",
                   R"({"metadata":{"name":"c","namespace":"d"},"immutable":true,"data":{"a":"c"}})",
                   {"data: Forbidden: field is immutable when `immutable` is set"}},
        UpdateCase{"v1",
                   "Secret",
                   R"({"metadata":{"name":"c","namespace":"d"},"type":"a"})",
                   R"({"metadata":{"name":"c","namespace":"d"},"type":"b"})",
                   {"type: Invalid value: \"b\": field is immutable"}},
        UpdateCase{
            "v1",
            "Service",
            R"({"metadata":{"name":"s","namespace":"d"},"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ports":[{"port":80}]}})",
            R"({"metadata":{"name":"s","namespace":"d"},"spec":{"clusterIP":"10.0.0.2","clusterIPs":["10.0.0.2"],"ports":[{"port":80}]}})",
            {"spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\"]: may not change once set"}},
        UpdateCase{
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            R"({"metadata":{"name":"r"},"roleRef":{"kind":"ClusterRole","name":"a"}})",
            R"({"metadata":{"name":"r"},"roleRef":{"kind":"ClusterRole","name":"b"}})",
            {R"(roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"b"}: cannot change roleRef)"}}));

TEST(ValidateUpdate, MetadataIsGuarded) {
  corev1::ConfigMap old, object;
  old.mutable_metadata()->set_name("a");
  old.mutable_metadata()->set_namespace_("d");
  old.mutable_metadata()->set_uid("u1");
  object = old;
  object.mutable_metadata()->set_uid("u2");
  EXPECT_EQ(Print(ValidateUpdate(object, old)),
            (Lines{"metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
                   "metadata.uid: Invalid value: \"u2\": field is immutable"}));
}

TEST(ValidateUpdate, DeletionAcceptsNoNewFinalizers) {
  corev1::ConfigMap old, object;
  old.mutable_metadata()->set_name("a");
  old.mutable_metadata()->set_namespace_("d");
  old.mutable_metadata()->set_resource_version("1");
  old.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(5);
  object = old;
  object.mutable_metadata()->add_finalizers("example.com/x");
  EXPECT_EQ(
      Print(ValidateUpdate(object, old)),
      (Lines{"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
             "found new finalizers []string{\"example.com/x\"}"}));
}

TEST(ValidateStatusUpdate, EndedContainersStayEnded) {
  corev1::Pod old;
  old.mutable_metadata()->set_name("a");
  old.mutable_metadata()->set_namespace_("d");
  old.mutable_metadata()->set_resource_version("1");
  old.mutable_spec()->set_restart_policy("Never");
  corev1::ContainerStatus& status = *old.mutable_status()->add_container_statuses();
  status.set_name("c");
  status.mutable_state()->mutable_terminated();
  corev1::Pod object = old;
  object.mutable_status()->mutable_container_statuses(0)->mutable_state()->mutable_running();
  object.mutable_status()->mutable_container_statuses(0)->mutable_state()->clear_terminated();
  EXPECT_EQ(
      Print(ValidateStatusUpdate(object, old)),
      (Lines{
          "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"}));
}

TEST(ToInvalid, SpellsStatusAsUpstream) {
  const FieldErrors errors = Validate(*Parse("v1", "Pod", Pod(R"("containers":[{}])")));
  const Error error = ToInvalid({"", "v1", "Pod"}, "p", errors);
  EXPECT_TRUE(error.Is(Code::kInvalid));
  EXPECT_EQ(
      error.message(),
      "Pod \"p\" is invalid: [spec.containers[0].name: Required value, spec.containers[0].image: Required "
      "value]");
  ASSERT_EQ(error.details()->causes.size(), 2u);
  EXPECT_EQ(error.details()->causes[0].reason, "FieldValueRequired");
  EXPECT_EQ(error.details()->causes[0].message, "Required value");
  EXPECT_EQ(error.details()->causes[0].field, "spec.containers[0].name");
  EXPECT_EQ(ToInvalid({"apps", "v1", "Deployment"}, "d", {Required(Path("a"))}).message(),
            "Deployment.apps \"d\" is invalid: a: Required value");
}

}  // namespace
}  // namespace keelson::k8s
