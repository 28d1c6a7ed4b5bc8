// Pods as a whole: names, numbers, network, scheduling.
#include <gtest/gtest.h>

#include "lib/k8s/testing/rules.h"

namespace keelson::k8s {
namespace {

TEST(ValidatePod, NamesAndNumbers) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodAnd(R"("hostname":"h","subdomain":"s","activeDeadlineSeconds":5,"priorityClassName":"p")"), {}},
          {PodAnd(R"("activeDeadlineSeconds":0)"),
           {"spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"}},
          {PodAnd(R"("terminationGracePeriodSeconds":-1)"), {}},  // treated as 1
          {PodAnd(R"("preemptionPolicy":"Maybe")"),
           {R"(spec.preemptionPolicy: Unsupported value: "Maybe": supported values: )"
            R"("PreemptLowerPriority", "Never")"}},
          {PodAnd(R"("hostAliases":[{"ip":"999.9.9.9","hostnames":["a"]}])"),
           {R"(spec.hostAliases[0].ip: Invalid value: "999.9.9.9": must be a valid IP address, )"
            R"((e.g. 10.9.8.7 or 2001:db8::ffff))"}},
          {PodAnd(R"("ephemeralContainers":[{"name":"e","image":"i"}])"),
           {"spec.ephemeralContainers: Forbidden: cannot be set on create"}},
          {PodAnd(R"("nodeName":"n","schedulingGates":[{"name":"example.com/g"}])"),
           {"spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"}},
          {PodAnd(R"("schedulingGates":[{"name":"g"},{"name":"g"}])"),
           {R"(spec.schedulingGates[1]: Duplicate value: "g")"}},
          {PodAnd(R"("hostnameOverride":"a.b","setHostnameAsFQDN":true)"),
           {"spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true"}},
      });
}

TEST(ValidatePod, Network) {
  const char* kPort = R"("hostNetwork":true,"containers":[{"name":"c","image":"i","ports":[)";
  ExpectErrors(
      "v1", "Pod",
      {
          // hostPort defaults to the container's port.
          {Pod(std::string(kPort) + R"({"containerPort":80}]}])"), {}},
          {Pod(std::string(kPort) + R"({"containerPort":80,"hostPort":81}]}])"),
           {"spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when "
            "`hostNetwork` is true"}},
          {PodAnd(R"("hostUsers":false,"hostNetwork":true,"hostPID":true)"),
           {"spec.hostNetwork: Forbidden: when `hostUsers` is false",
            "spec.HostPID: Forbidden: when `hostUsers` is false"}},
          {PodAnd(R"("dnsPolicy":"None")"),
           {"spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"}},
          {PodAnd(R"("dnsPolicy":"None","dnsConfig":{"searches":["a"]})"),
           {"spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when "
            "`dnsPolicy` is None"}},
          {PodAnd(R"("dnsConfig":{"searches":[".","_a.b."],"options":[{"value":"x"}]})"),
           {"spec.dnsConfig.options[0]: Required value: must not be empty"}},
      });
}

TEST(ValidatePod, Scheduling) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodAnd(R"("tolerations":[{"key":"k","operator":"Exists"},{"operator":"Exists"}])"), {}},
          {PodAnd(R"("tolerations":[{"operator":"Equal","value":"v"}])"),
           {R"(spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is )"
            R"(empty, which means "match all values and all keys")"}},
          {PodAnd(R"("tolerations":[{"key":"k","operator":"Exists","value":"v"}])"),
           {R"(spec.tolerations[0].operator: Invalid value: "v": value must be empty when `operator` is )"
            R"('Exists')"}},
          {PodAnd(R"("tolerations":[{"key":"k","operator":"Exists","effect":"NoSchedule",)"
                  R"("tolerationSeconds":3}])"),
           {R"(spec.tolerations[0].effect: Invalid value: "NoSchedule": effect must be 'NoExecute' when )"
            R"(`tolerationSeconds` is set)"}},
          {PodAnd(R"("affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}})"),
           {"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: "
            "Required value: must have at least one node selector term"}},
          {PodAnd(R"("topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"t",)"
                  R"("whenUnsatisfiable":"DoNotSchedule"}])"),
           {"spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"}},
          {PodAnd(R"("topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"t","minDomains":2,)"
                  R"("whenUnsatisfiable":"ScheduleAnyway"}])"),
           {"spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use minDomains if "
            "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"}},
      });
}

TEST(ValidatePod, Annotations) {
  const char* kSeccomp = R"("annotations":{"seccomp.security.alpha.kubernetes.io/pod":"bad"})";
  ExpectErrors(
      "v1", "Pod",
      {
          {PodAnd(R"("nodeName":"n")",
                  R"(,"annotations":{"container.apparmor.security.beta.kubernetes.io/c":"runtime/default"})"),
           {}},
          {PodAnd(R"("nodeName":"n")",
                  R"(,"annotations":{"container.apparmor.security.beta.kubernetes.io/x":"runtime/default"})"),
           {R"(metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: "x": )"
            "container not found"}},
          {PodAnd(R"("nodeName":"n")", std::string(",") + kSeccomp),
           {R"(metadata.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "bad": must be )"
            "a valid seccomp profile"}},
      });
}

TEST(ValidatePod, TemplatesAreJudgedAsPods) {
  ExpectErrors(
      "v1", "PodTemplate",
      {
          {R"({"metadata":{"name":"t","namespace":"d"},"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}})",
           {}},
          {R"({"metadata":{"name":"t","namespace":"d"},"template":{"metadata":{"labels":{"a":"-"}},"spec":{}}})",
           {R"(template.labels: Invalid value: "-": a valid label must be an empty string or consist of )"
            R"(alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric )"
            R"(character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is )"
            R"('(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'))",
            "template.spec.containers: Required value"}},
      });
}

}  // namespace
}  // namespace keelson::k8s
