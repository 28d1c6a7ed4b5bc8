// Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers, ControllerRevisions.
#include <gtest/gtest.h>

#include "lib/k8s/testing/rules.h"

namespace keelson::k8s {
namespace {

constexpr char kTemplate[] =
    R"("template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}})";

// `spec`: fields with a trailing comma.
std::string Workload(const std::string& spec, const std::string& status = "") {
  return R"({"metadata":{"name":"w","namespace":"default"},"spec":{)" + spec +
         R"("selector":{"matchLabels":{"a":"b"}},)" + kTemplate + "}" +
         (status.empty() ? "" : R"(,"status":{)" + status + "}") + "}";
}

TEST(ValidateWorkload, Deployments) {
  ExpectErrors(
      "apps/v1", "Deployment",
      {
          {Workload(R"("replicas":3,)"), {}},
          {std::string(R"({"metadata":{"name":"w","namespace":"default"},"spec":{)") + kTemplate + "}}",
           {"spec.selector: Required value",
            R"(spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template )"
            "`labels`"}},
          {Workload(R"("strategy":{"type":"Recreate","rollingUpdate":{}},)"),
           {"spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is "
            "'Recreate'"}},
          {Workload(R"("strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":0}},)"),
           {"spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is "
            "0"}},
          {Workload(R"("strategy":{"rollingUpdate":{"maxUnavailable":"150%"}},)"),
           {R"(spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "150%": must not be greater than )"
            "100%"}},
          {Workload(R"("minReadySeconds":9,"progressDeadlineSeconds":9,)"),
           {"spec.progressDeadlineSeconds: Invalid value: 9: must be greater than minReadySeconds"}},
      });
  ExpectUpdateErrors(
      "apps/v1", "Deployment", "",
      {{Workload(""),
        R"({"metadata":{"name":"w","namespace":"default"},"spec":{"selector":{"matchLabels":{"a":"c"}},)"
        R"("template":{"metadata":{"labels":{"a":"c"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})",
        {R"(spec.selector: Invalid value: {"matchLabels":{"a":"c"}}: field is immutable)"}}});
  ExpectUpdateErrors(
      "apps/v1", "Deployment", "status",
      {{Workload(""), Workload("", R"("replicas":2,"updatedReplicas":2,"readyReplicas":1)"), {}},
       {Workload(""),
        Workload("", R"("replicas":1,"updatedReplicas":2)"),
        {"status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas"}},
       {Workload("", R"("collisionCount":2)"),
        Workload("", R"("collisionCount":1)"),
        {"status.collisionCount: Invalid value: 1: cannot be decremented"}}});
}

TEST(ValidateWorkload, ReplicaSets) {
  ExpectErrors("apps/v1", "ReplicaSet",
               {{Workload(""), {}},
                {Workload(R"("replicas":-1,)"),
                 {"spec.replicas: Invalid value: -1: must be greater than or equal to 0"}}});
  ExpectUpdateErrors(
      "apps/v1", "ReplicaSet", "status",
      {{Workload(""),
        Workload("", R"("replicas":1,"readyReplicas":1,"availableReplicas":2)"),
        {"status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
         "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"}}});
}

TEST(ValidateWorkload, StatefulSets) {
  const std::string claim =
      R"("volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],)"
      R"("resources":{"requests":{"storage":"1Gi"}}}}],)";
  // A mount of a claim template's volume.
  const std::string mounting =
      R"({"metadata":{"name":"w","namespace":"default"},"spec":{)" + claim +
      R"("selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{)"
      R"("containers":[{"name":"c","image":"i","volumeMounts":[{"name":"data","mountPath":"/d"}]}]}}}})";
  ExpectErrors(
      "apps/v1", "StatefulSet",
      {
          {Workload(R"("serviceName":"s",)"), {}},
          {mounting, {}},
          {Workload(R"("serviceName":"1s",)"), {}},
          {Workload(R"("serviceName":"s.t",)"),
           {R"(spec.serviceName: Invalid value: "s.t": must not contain dots)"}},
          // Claim templates are checked as claims.
          {Workload(R"("volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["Odd"],)"
                    R"("resources":{"requests":{"storage":"0"}}}}],)"),
           {R"(spec.volumeClaimTemplates[0].spec.accessModes: Unsupported value: "Odd": supported values: )"
            R"("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")",
            R"(spec.volumeClaimTemplates[0].spec.resources[storage]: Invalid value: "0": must be greater )"
            "than zero"}},
          {Workload(R"("volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{}}],)"),
           {"spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is "
            "required",
            "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"}},
          {Workload(R"("podManagementPolicy":"Random",)"),
           {"spec.podManagementPolicy: Invalid value: \"Random\": must be 'OrderedReady' or 'Parallel'"}},
          {Workload(R"("updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":-1}},)"),
           {"spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal "
            "to "
            "0"}},
          {Workload(R"("updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0}},)"),
           {"spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0"}},
          {Workload(
               R"("persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Keep","whenScaled":"Retain"},)"),
           {R"(spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Keep": supported )"
            R"(values: "Retain", "Delete")"}},
      });
  ExpectUpdateErrors(
      "apps/v1", "StatefulSet", "",
      {{Workload(R"("serviceName":"s",)"),
        Workload(R"("serviceName":"s","replicas":2,"minReadySeconds":1,)"),
        {}},
       // Stored templates are not checked again.
       {Workload(R"("serviceName":"S","volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{}}],)"),
        Workload(R"("serviceName":"S","volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{}}],)"
                 R"("replicas":2,)"),
        {}},
       {Workload(R"("serviceName":"s",)"),
        Workload(R"("serviceName":"t",)"),
        {"spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
         "'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
         "'minReadySeconds' are forbidden"}}});
}

TEST(ValidateWorkload, DaemonSets) {
  auto rolling = [](const std::string& fields) {
    return Workload(R"("updateStrategy":{"type":"RollingUpdate","rollingUpdate":{)" + fields + "}},");
  };
  ExpectErrors(
      "apps/v1", "DaemonSet",
      {
          {rolling(R"("maxUnavailable":1)"), {}},
          {rolling(R"("maxUnavailable":0,"maxSurge":0)"),
           {"spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is "
            "0"}},
          {rolling(R"("maxUnavailable":1,"maxSurge":1)"),
           {"spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when "
            "maxUnavailable is non-zero"}},
          {Workload(R"("updateStrategy":{"type":"Never"},)"),
           {R"(spec.updateStrategy: Unsupported value: {"type":"Never"}: supported values: "RollingUpdate", )"
            R"("OnDelete")"}},
      });
  ExpectUpdateErrors("apps/v1", "DaemonSet", "status",
                     {{Workload(""),
                       Workload("", R"("numberReady":-1,"currentNumberScheduled":0,"numberMisscheduled":0,)"
                                    R"("desiredNumberScheduled":0)"),
                       {"status.numberReady: Invalid value: -1: must be greater than or equal to 0"}}});
}

TEST(ValidateWorkload, ReplicationControllers) {
  const std::string head = R"({"metadata":{"name":"w","namespace":"default"},"spec":{)";
  ExpectErrors(
      "v1", "ReplicationController",
      {{head + R"("selector":{"a":"b"},)" + kTemplate + "}}", {}},
       {head + R"("selector":{"a":"c"},)" + kTemplate + "}}",
        {R"(spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template )"
         "`labels`"}},
       // The selector is a plain map: its keys and values are only compared.
       {head + R"("selector":{"a":"not a label"},)" + kTemplate + "}}",
        {R"(spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template )"
         "`labels`"}},
       {head + R"("selector":{"a":"b"}}})", {"spec.template: Required value"}}});
}

TEST(ValidateWorkload, ControllerRevisions) {
  const std::string head = R"({"metadata":{"name":"w","namespace":"default"},)";
  ExpectErrors("apps/v1", "ControllerRevision",
               {{head + R"("revision":1,"data":{"a":1}})", {}},
                {head + R"("revision":-1,"data":{"a":1}})",
                 {"revision: Invalid value: -1: must be greater than or equal to 0"}}});
}

}  // namespace
}  // namespace keelson::k8s
