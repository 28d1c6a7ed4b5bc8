#include "kubelet/staticpod/pod_uid.h"

#include <gtest/gtest.h>

#include "lib/api/codec/codec.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/text/yaml.h"

namespace keelson::kubelet {
namespace {

// What kubeadm 1.35 and 1.36 write, but for the command and the version.
constexpr char kScheduler[] = R"(
apiVersion: v1
kind: Pod
metadata:
  labels:
    component: kube-scheduler
    tier: control-plane
  name: kube-scheduler
  namespace: kube-system
spec:
  containers:
  - command:
    - COMMAND
    - --authentication-kubeconfig=/etc/kubernetes/scheduler.conf
    - --authorization-kubeconfig=/etc/kubernetes/scheduler.conf
    - --bind-address=127.0.0.1
    - --kubeconfig=/etc/kubernetes/scheduler.conf
    - --leader-elect=true
    image: registry.k8s.io/kube-scheduler:VERSION
    imagePullPolicy: IfNotPresent
    livenessProbe:
      failureThreshold: 8
      httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTPS}
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
    name: kube-scheduler
    ports:
    - {containerPort: 10259, name: probe-port, protocol: TCP}
    readinessProbe:
      failureThreshold: 3
      httpGet: {host: 127.0.0.1, path: /readyz, port: probe-port, scheme: HTTPS}
      periodSeconds: 1
      timeoutSeconds: 15
    resources:
      requests:
        cpu: 100m
    startupProbe:
      failureThreshold: 24
      httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTPS}
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
    volumeMounts:
    - {mountPath: /etc/kubernetes/scheduler.conf, name: kubeconfig, readOnly: true}
  hostNetwork: true
  priority: 2000001000
  priorityClassName: system-node-critical
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  volumes:
  - hostPath: {path: /etc/kubernetes/scheduler.conf, type: FileOrCreate}
    name: kubeconfig
status: {}
)";
constexpr char kSmall[] =
    "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {b: c, d: e}}, spec: {containers: [{name: f, "
    "image: g}]}}";

std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

std::string Scheduler(const char* command, const char* version) {
  return Replaced(Replaced(kScheduler, "COMMAND", command), "VERSION", version);
}

std::optional<std::string> UidOf(const std::string& manifest, const PodPlace& place, const GoTypes& types) {
  corev1::Pod pod;
  EXPECT_TRUE(api::DecodeJson(*k8s::YamlToJson(manifest), pod));
  k8s::SetPodDefaults(pod);
  return UpstreamPodUid(pod, place, types);
}

// The kubelets of these versions have told these of pods of kubeadm's.
TEST(PodUid, IsWhatUpstreamHasGivenIn135) {
  const std::string of_136(PodTypes());
  const GoTypes types(Replaced(
      Replaced(of_136, "SchedulingGroup *core.PodSchedulingGroup", "WorkloadRef *core.WorkloadReference"),
      ", NodeAllocatableResourceClaimStatuses []core.NodeAllocatableResourceClaimStatus", ""));
  const PodPlace place{"master01", "/etc/kubernetes/manifests/kube-scheduler.yaml"},
      other{"controlplane", "/etc/kubernetes/manifests/kube-scheduler.yaml"};
  EXPECT_EQ(UidOf(Scheduler("kube-scheduler", "v1.35.7"), place, types), "dcefdf84232060db703cb0098efa5bf6");
  EXPECT_EQ(UidOf(Scheduler("kube-schedulerrrr", "v1.35.0"), other, types),
            "186c52b5584d78a99894b5f06124bf5d");
}

// By the types of 1.36.
TEST(PodUid, OutlivesTheKubelet) {
  const GoTypes types(PodTypes());
  const struct {
    std::string manifest;
    PodPlace place;
    const char* uid;
  } cases[] = {
      {Scheduler("kube-scheduler", "v1.36.2"),
       {"node-1", "/etc/kubernetes/manifests/kube-scheduler.yaml"},
       "178f608b4f8960bf131bdebcd1eac753"},
      {kSmall, {"n", "/m/a.yaml"}, "0cb466356b529cb7327678b51ed5f1f5"},
      {kSmall, {"n", "/m//./a.yaml"}, "0cb466356b529cb7327678b51ed5f1f5"},
      {kSmall, {"n", "http://x/a", false}, "10219445354d21af2a9007e00972c27f"},
  };
  for (const auto& c : cases) EXPECT_EQ(UidOf(c.manifest, c.place, types), c.uid) << c.place.place;
}

TEST(PodUid, IsNotGivenWhereTypesAreMissing) {
  const GoTypes types(PodTypes());
  EXPECT_EQ(UidOf(Replaced(kSmall, "spec: {", "spec: {imagePullSecrets: [{name: s}], "), {"n", "/m"}, types),
            std::nullopt);
  EXPECT_EQ(UidOf(Replaced(kSmall, "name: a,", "name: a, creationTimestamp: '2026-01-01T00:00:00Z',"),
                  {"n", "/m"}, types),
            std::nullopt);
  // Null is nothing.
  EXPECT_EQ(
      UidOf(Replaced(kSmall, "name: a,", "name: a, creationTimestamp: null,"), {"n", "/m/a.yaml"}, types),
      "0cb466356b529cb7327678b51ed5f1f5");
}

}  // namespace
}  // namespace keelson::kubelet
