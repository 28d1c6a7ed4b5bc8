// Security contexts and operating systems.
#include <gtest/gtest.h>

#include "lib/k8s/testing/rules.h"
#include "lib/k8s/validation_settings.h"

namespace keelson::k8s {
namespace {

TEST(ValidateSecurity, OfPods) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodAnd(R"("securityContext":{"runAsUser":1,"fsGroup":2,"supplementalGroups":[3],)"
                  R"("sysctls":[{"name":"kernel.shm_rmid_forced","value":"1"}]})"),
           {}},
          {PodAnd(R"("securityContext":{"runAsUser":-1})"),
           {"spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, "
            "inclusive"}},
          {PodAnd(R"("securityContext":{"fsGroupChangePolicy":"Never"})"),
           {R"(spec.securityContext.fsGroupChangePolicy: Unsupported value: "Never": supported values: )"
            R"("Always", "OnRootMismatch")"}},
          {PodAnd(R"("securityContext":{"sysctls":[{"name":"a.b","value":"1"},{"name":"a.b","value":"1"}]})"),
           {R"(spec.securityContext.sysctls[1].name: Duplicate value: "a.b")"}},
          {PodAnd(R"("securityContext":{"seccompProfile":{"type":"Localhost"}})"),
           {"spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp "
            "type is Localhost"}},
          {PodAnd(
               R"("securityContext":{"appArmorProfile":{"type":"RuntimeDefault","localhostProfile":"x"}})"),
           {R"(spec.securityContext.appArmorProfile.localhostProfile: Invalid value: "x": can only be set )"
            "when AppArmor type is Localhost"}},
      });
}

TEST(ValidateSecurity, OfContainers) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodWith(R"("securityContext":{"runAsNonRoot":true,"capabilities":{"drop":["ALL"]}})"), {}},
          {PodWith(R"("securityContext":{"privileged":true,"allowPrivilegeEscalation":false})"),
           {"spec.containers[0].securityContext: Invalid value: {\"privileged\":true,"
            "\"allowPrivilegeEscalation\":false}: cannot set `allowPrivilegeEscalation` to false and "
            "`privileged` to true"}},
          {PodWith(R"("securityContext":{"procMount":"Unmasked"})"),
           {R"(spec.containers[0].securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be )"
            "false to use `Unmasked`"}},
      });
}

TEST(ValidateSecurity, PrivilegedMayBeForbidden) {
  const std::string privileged = PodWith(R"("securityContext":{"privileged":true})");
  const std::string host_process =
      PodAnd(R"("hostNetwork":true,"securityContext":{"windowsOptions":{"hostProcess":true}})");
  ExpectErrors("v1", "Pod", {{privileged, {}}, {host_process, {}}});
  const ScopedValidationSettings settings({.allow_privileged = false});
  ExpectErrors(
      "v1", "Pod",
      {
          {PodWith(R"("securityContext":{"privileged":false})"), {}},
          {privileged,
           {"spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy"}},
          {host_process, {"spec: Forbidden: hostProcess containers are disallowed by cluster policy"}},
      });
}

TEST(ValidateSecurity, OperatingSystems) {
  ExpectErrors(
      "v1", "Pod",
      {
          {PodAnd(R"("os":{"name":"linux"})"), {}},
          {PodAnd(R"("os":{"name":"plan9"})"),
           {R"(spec.os: Unsupported value: "plan9": supported values: "linux", "windows")"}},
          {PodAnd(R"("os":{"name":"windows"},"hostPID":true,"securityContext":{"fsGroup":1})"),
           {"spec.hostPID: Forbidden: cannot be set for a windows pod",
            "spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod"}},
          {PodAnd(R"("os":{"name":"linux"},"securityContext":{"windowsOptions":{"runAsUserName":"u"}})"),
           {"spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"}},
          {PodAnd(R"("securityContext":{"windowsOptions":{"hostProcess":true}})"),
           {"spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any "
            "hostProcess "
            "containers"}},
      });
}

}  // namespace
}  // namespace keelson::k8s
