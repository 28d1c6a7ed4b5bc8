// Allowed changes to a pod: through the pod itself, its status, resize and ephemeralcontainers.
#include <gtest/gtest.h>

#include "lib/k8s/testing/rules.h"

namespace keelson::k8s {
namespace {

std::string Container(const std::string& fields) {
  return R"("containers":[{"name":"c","image":"i")" + fields + "}]";
}
std::string Cpu(const std::string& requests, const std::string& limits = "") {
  return R"(,"resources":{"requests":{"cpu":")" + requests + "\"}" +
         (limits.empty() ? "" : R"(,"limits":{"cpu":")" + limits + "\"}") + "}";
}

TEST(ValidatePodUpdate, Gates) {
  const std::string gated = R"("schedulingGates":[{"name":"a"}])";
  ExpectUpdateErrors("v1", "Pod", "",
                     {
                         {PodAnd(gated), Pod(kContainers), {}},
                         {Pod(kContainers),
                          PodAnd(gated),
                          {"spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new "
                           "scheduling gate 'a'"}},
                     },
                     /*self=*/false);
}

TEST(ValidatePodUpdate, Numbers) {
  ExpectUpdateErrors(
      "v1", "Pod", "",
      {
          {Pod(kContainers), PodAnd(R"("activeDeadlineSeconds":5)"), {}},
          {PodAnd(R"("activeDeadlineSeconds":5)"),
           Pod(kContainers),
           {R"(spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to )"
            "nil value"}},
          {Pod(kContainers),
           Pod(R"("containers":[{"name":"c","image":"i"},{"name":"d","image":"i"}])"),
           {"spec.containers: Forbidden: pod updates may not add or remove containers"}},
      });
}

TEST(ValidatePodResize, OnlyCpuAndMemory) {
  auto pod = [&](const std::string& fields, const char* qos = "Burstable") {
    return Pod(Container(fields), "", std::string(R"("qosClass":")") + qos + "\"");
  };
  ExpectUpdateErrors(
      "v1", "Pod", "resize",
      {
          {pod(Cpu("1")), pod(Cpu("2")), {}},
          {pod(Cpu("1", "1")), pod(Cpu("2", "2")), {}},
          {pod(Cpu("1")), pod(Cpu("2", "2")), {}},
          {pod(Cpu("1", "2")),
           pod(Cpu("1")),
           {"spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed"}},
          {pod(Cpu("1")),
           pod(R"(,"resources":{"requests":{"cpu":"1","ephemeral-storage":"1Gi"}})"),
           {"spec: Forbidden: only cpu and memory resources are mutable"}},
      },
      /*self=*/false);
}

TEST(ValidatePodResize, InitContainers) {
  auto pod = [](const std::string& fields) {
    return Pod(std::string(kContainers) + R"(,"initContainers":[{"name":"i","image":"i")" + fields + "}]", "",
               R"("qosClass":"Burstable")");
  };
  const std::string sidecar = R"(,"restartPolicy":"Always")";
  const std::string restarts =
      R"(,"resizePolicy":[{"resourceName":"cpu","restartPolicy":"RestartContainer"}])";
  const std::string storage = R"(,"resources":{"requests":{"cpu":"1","ephemeral-storage":"1Gi"}})";
  const std::string only_cpu_and_memory =
      "spec.initContainers[0]: Forbidden: only cpu and memory resources for init or sidecar containers are "
      "mutable";
  ExpectUpdateErrors(
      "v1", "Pod", "resize",
      {
          {pod(Cpu("1")), pod(Cpu("2")), {}},
          {pod(Cpu("1") + sidecar), pod(Cpu("2") + sidecar), {}},
          {pod(Cpu("1") + sidecar + restarts), pod(Cpu("2") + sidecar + restarts), {}},
          {pod(Cpu("1", "2")),
           pod(Cpu("1")),
           {"spec.initContainers[0].resources.limits: Forbidden: resource limits cannot be removed"}},
          // A container that runs to completion cannot be restarted.
          {pod(Cpu("1") + restarts), pod(Cpu("1") + restarts), {}},
          {pod(Cpu("1") + restarts),
           pod(Cpu("2") + restarts),
           {"spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy of "
            "RestartContainer cannot be resized"}},
          {pod(Cpu("1")), pod(storage), {only_cpu_and_memory}},
          {pod(Cpu("1") + sidecar), pod(storage + sidecar), {only_cpu_and_memory}},
      },
      /*self=*/false);
}

TEST(ValidateEphemeralContainers, OnlyComeNew) {
  const std::string ephemeral = R"("ephemeralContainers":[{"name":"e","image":"i"}])";
  ExpectUpdateErrors(
      "v1", "Pod", "ephemeralcontainers",
      {
          {Pod(kContainers), PodAnd(ephemeral), {}},
          {PodAnd(ephemeral),
           Pod(kContainers),
           {R"(spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be removed)"
            "\n"}},
          {PodAnd(ephemeral),
           PodAnd(R"("ephemeralContainers":[{"name":"e","image":"j"}])"),
           {R"(spec.ephemeralContainers: Forbidden: existing ephemeral containers "e" may not be changed)"
            "\n- spec.ephemeralContainers.image: \"i\"\n+ spec.ephemeralContainers.image: \"j\"\n"}},
          {Pod(kContainers),
           PodAnd(R"("ephemeralContainers":[{"name":"c","image":"i"}])"),
           {R"(spec.ephemeralContainers[0].name: Duplicate value: "c")"}},
          {Pod(kContainers),
           PodAnd(R"("ephemeralContainers":[{"name":"e","image":"i","targetContainerName":"x"}])"),
           {R"(spec.ephemeralContainers[0].targetContainerName: Not found: "x")"}},
          {Pod(kContainers),
           PodAnd(R"("ephemeralContainers":[{"name":"e","image":"i","ports":[{"containerPort":1}]}])"),
           {"spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container"}},
      },
      /*self=*/false);
}

TEST(ValidatePodStatus, Rules) {
  auto pod = [](const std::string& status) { return Pod(kContainers, "", status); };
  ExpectUpdateErrors(
      "v1", "Pod", "status",
      {
          {pod(""), pod(R"("podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}])"), {}},
          {pod(""),
           pod(R"("podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}])"),
           {R"(status.podIPs: Invalid value: [{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]: may specify no more than )"
            "one IP for each IP family"}},
          {pod(""),
           pod(R"("conditions":[{"type":"a b","status":"True"}])"),
           {R"(status.conditions[0].Type: Invalid value: "a b": name part must consist of alphanumeric )"
            R"(characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. )"
            R"('MyName',  or 'my.name',  or '123-abc', regex used for validation is )"
            R"('([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'))"}},
          {pod(""),
           pod(R"("containerStatuses":[{"name":"c","user":{"linux":{"uid":-1,"gid":0}}}])"),
           {"status.containerStatuses[0].user.linux.uid: Invalid value: -1: must be between 0 and "
            "2147483647, "
            "inclusive"}},
          {pod(""),
           pod(R"("containerStatuses":[{"name":"other","allocatedResourcesStatus":[{"name":"a","resources":[)"
               R"({"resourceID":"1","health":"Healthy","message":""},)"
               R"({"resourceID":"2","health":"Odd"},{"resourceID":"2","health":"Unknown","message":")" +
               std::string(1025, 'm') + R"("}]}]}])"),
           {"status.containerStatuses[0].allocatedResourcesStatus[0].resources[0].message: Required value: "
            "must be non-empty if specified",
            "status.containerStatuses[0].allocatedResourcesStatus[0].resources[1].health: Unsupported value: "
            "\"Odd\": supported values: \"Healthy\", \"Unhealthy\", \"Unknown\"",
            "status.containerStatuses[0].allocatedResourcesStatus[0].resources[2].message: Too long: may not "
            "be more than 1024 bytes",
            "status.containerStatuses[0].allocatedResourcesStatus[0].resources[2].resourceID: Duplicate "
            "value: \"2\""}},
          {pod(R"("nominatedNodeName":"n")"),
           pod(R"("nominatedNodeName":"N_")"),
           {R"(status.nominatedNodeName: Invalid value: "N_": a lowercase RFC 1123 subdomain must consist of )"
            R"(lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric )"
            R"(character (e.g. 'example.com', regex used for validation is )"
            R"('[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'))"}},
      });
}

}  // namespace
}  // namespace keelson::k8s
