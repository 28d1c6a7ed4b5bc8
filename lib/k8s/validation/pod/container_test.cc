// Containers: ports, environment, mounts, probes, hooks, restart rules, init containers.
#include <gtest/gtest.h>

#include "lib/k8s/testing/rules.h"

namespace keelson::k8s {
namespace {

TEST(ValidateContainer, Ports) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodWith(R"("ports":[{"name":"http","containerPort":80},{"name":"https","containerPort":443}])"),
           {}},
          {PodWith(R"("ports":[{"name":"a","containerPort":80},{"name":"a","containerPort":81}])"),
           {R"(spec.containers[0].ports[1].name: Duplicate value: "a")"}},
          {PodWith(R"("ports":[{"hostPort":80}])"),
           {"spec.containers[0].ports[0].containerPort: Required value"}},
          {PodWith(R"("ports":[{"containerPort":1,"hostPort":8080},{"containerPort":2,"hostPort":8080}])"),
           {R"(spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//8080")"}},
          {PodWith(R"("ports":[{"containerPort":1,"protocol":"X"}])"),
           {R"(spec.containers[0].ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", )"
            R"("UDP")"}},
      });
}

TEST(ValidateContainer, Environment) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodWith(R"("env":[{"name":"A","value":"b"},{"name":"B","valueFrom":{"fieldRef":{)"
                   R"("fieldPath":"metadata.labels['x']"}}}])"),
           {}},
          {PodWith(R"("env":[{"value":"b"}])"), {"spec.containers[0].env[0].name: Required value"}},
          {PodWith(R"("env":[{"name":"A=","value":"b"}])"),
           {R"(spec.containers[0].env[0].name: Invalid value: "A=": a valid environment variable name must )"
            R"(consist only of printable ASCII characters other than '=')"}},
          {PodWith(R"("env":[{"name":"A","valueFrom":{}}])"),
           {R"(spec.containers[0].env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, )"
            R"(`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`)"}},
          {PodWith(R"("env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.whatever"}}}])"),
           {R"(spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.whatever": )"
            R"(error converting fieldPath: field label not supported: spec.whatever)"}},
          {PodWith(R"("env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s"}}}])"),
           {"spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value"}},
          {PodWith(R"("envFrom":[{}])"),
           {R"(spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or )"
            R"(`secretRef`)"}},
      });
}

// Paths of subPath and the like have no index, as in upstream.
TEST(ValidateContainer, Mounts) {
  const std::string tail = R"(,"volumes":[{"name":"v","emptyDir":{}}])";
  auto with = [&](const std::string& mounts) {
    return Pod(R"("containers":[{"name":"c","image":"i","volumeMounts":[)" + mounts + "]}]" + tail);
  };
  ExpectErrors(
      "v1", "Pod",
      {
          {with(R"({"name":"v","mountPath":"/a","subPath":"b/c"},{"name":"v","mountPath":"/b"})"), {}},
          {with(R"({"name":"v"})"), {"spec.containers[0].volumeMounts[0].mountPath: Required value"}},
          {with(R"({"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/a"})"),
           {R"(spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/a": must be unique)"}},
          {with(R"({"name":"v","mountPath":"/a","subPath":"/x"})"),
           {R"(spec.containers[0].volumeMounts.subPath: Invalid value: "/x": must be a relative path)"}},
          {with(R"({"name":"v","mountPath":"/a","subPath":"a/../b"})"),
           {R"(spec.containers[0].volumeMounts.subPath: Invalid value: "a/../b": must not contain '..')"}},
          {with(R"({"name":"v","mountPath":"/a","recursiveReadOnly":"Enabled"})"),
           {"spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when "
            "readOnly is true"}},
          {with(R"({"name":"v","mountPath":"/a","mountPropagation":"Bidirectional"})"),
           {"spec.containers[0].volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation "
            "is available only to privileged containers"}},
      });
}

TEST(ValidateContainer, ProbesAndHooks) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodWith(R"("livenessProbe":{"httpGet":{"port":80}},"readinessProbe":{"exec":{"command":["x"]}})"),
           {}},
          {PodWith(R"("livenessProbe":{})"),
           {"spec.containers[0].livenessProbe: Required value: must specify a handler type"}},
          {PodWith(R"("livenessProbe":{"tcpSocket":{"port":80},"successThreshold":2})"),
           {"spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"}},
          {PodWith(R"("livenessProbe":{"exec":{}})"),
           {"spec.containers[0].livenessProbe.exec.command: Required value"}},
          {PodWith(R"("readinessProbe":{"grpc":{"port":0}})"),
           {"spec.containers[0].readinessProbe.grpc.port: Invalid value: 0: must be between 1 and 65535, "
            "inclusive"}},
          {PodWith(R"("readinessProbe":{"tcpSocket":{"port":1},"terminationGracePeriodSeconds":1})"),
           {"spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be "
            "set for readinessProbes"}},
          {PodWith(R"("lifecycle":{"preStop":{"sleep":{"seconds":31}}})"),
           {"spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less "
            "than "
            "terminationGracePeriodSeconds (30)"}},
          {PodWith(R"("lifecycle":{"stopSignal":"SIGTERM"})"),
           {"spec.containers[0].lifecycle.stopSignal: Forbidden: may not be set for "
            "containers with empty `spec.os.name`"}},
      });
}

TEST(ValidateContainer, InitContainers) {
  auto init = [](const std::string& fields) {
    return PodAnd(R"("initContainers":[{"name":"i","image":"i")" + fields + "}]");
  };
  ExpectErrors(
      "v1", "Pod",
      {
          {init(R"(,"restartPolicy":"Always","livenessProbe":{"tcpSocket":{"port":1}})"), {}},
          {init(R"(,"livenessProbe":{"tcpSocket":{"port":1}})"),
           {"spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without "
            "restartPolicy=Always"}},
          {PodAnd(R"("initContainers":[{"name":"c","image":"i"}])"),
           {R"(spec.initContainers[0].name: Duplicate value: "c")"}},
          {init(R"(,"restartPolicy":"Often")"),
           {R"(spec.initContainers[0].restartPolicy: Unsupported value: "Often": supported values: "Always", )"
            R"("Never", "OnFailure")"}},
      });
}

TEST(ValidateContainer, RestartRules) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodWith(R"("restartPolicy":"Never","restartPolicyRules":[{"action":"Restart",)"
                   R"("exitCodes":{"operator":"In","values":[42]}}])"),
           {}},
          {PodWith(
               R"("restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}])"),
           {"spec.containers[0].restartPolicy: Required value: must specify restartPolicy when "
            "restart rules are used"}},
      });
}

}  // namespace
}  // namespace keelson::k8s
