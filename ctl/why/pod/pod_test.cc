#include <gmock/gmock.h>

#include "ctl/why/pod/pod_judge.h"
#include "ctl/why/testing/objects.h"
#include "lib/api/meta.h"

namespace keelson::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

corev1::Node NodeThatIs(const std::string& ready) {
  return Parse<corev1::Node>(
      R"({"metadata":{"name":"n1"},"status":{"conditions":[{"type":"Ready","status":")" + ready +
      R"(","reason":"KubeletReady","message":"m"}]}})");
}

// `spec` and `status` are members; the pod is on node n1, which is Ready.
PodView PodOf(const std::string& status, const std::string& spec = "", const std::string& metadata = "") {
  PodView view;
  view.pod = Parse<corev1::Pod>(
      R"({"metadata":{"namespace":"default","name":"p","uid":"u1")" + metadata +
      R"(},"spec":{"nodeName":"n1","restartPolicy":"Always","containers":[{"name":"main","image":"r.example.com/a:1",
          "resources":{"limits":{"memory":"128Mi"}}}])" +
      spec + R"(},"status":{)" + status + "}}");
  view.node = NodeThatIs("True");
  view.now =
      api::FromTime(Parse<corev1::Event>(R"({"lastTimestamp":"2026-01-01T00:10:00Z"})").last_timestamp());
  return view;
}
PodView Unscheduled(const std::string& status = "", const std::string& spec = "") {
  PodView view = PodOf(R"("phase":"Pending")" + status, spec);
  view.pod.mutable_spec()->clear_node_name();
  view.node.reset();
  return view;
}
PodView Waiting(const std::string& reason, const std::string& message, const std::string& more = "") {
  return PodOf(
      R"("phase":"Pending","startTime":"2026-01-01T00:00:00Z","containerStatuses":[{"name":"main","state":
      {"waiting":{"reason":")" +
      reason + R"(","message":")" + message + R"("}})" + more + "}]");
}
PodView Crashed(const std::string& ended, const std::string& reason = "CrashLoopBackOff") {
  return PodOf(
      R"("phase":"Running","containerStatuses":[{"name":"main","restartCount":3,"containerID":"containerd://x",
      "state":{"waiting":{"reason":")" +
      reason + R"(","message":"back-off 40s"}},"lastState":{"terminated":)" + ended + "}}]");
}
PodView Running(const std::string& status, const std::string& pod_status = "") {
  return PodOf(R"("phase":"Running","containerStatuses":[{"name":"main","containerID":"containerd://x",
      "state":{"running":{}})" +
               status + "}]" + pod_status);
}

std::vector<std::string> Reasons(const PodView& view) { return ReasonsOf(JudgePod(view)); }

TEST(WhyPod, APodInOrderHasNoProblem) {
  const PodView view = Running(R"(,"ready":true,"started":true)");
  EXPECT_THAT(Reasons(view), IsEmpty());
  EXPECT_EQ(WhyText(JudgePod(view)), "Pod default/p is Running, on node n1, 1/1 ready\n");
  EXPECT_THAT(Reasons(PodOf(R"("phase":"Succeeded")")), IsEmpty());
}

TEST(WhyPod, SchedulingIsHeldUp) {
  EXPECT_THAT(Reasons(Unscheduled()), ElementsAre("NotScheduledYet"));
  EXPECT_THAT(Reasons(Unscheduled("", R"(,"schedulingGates":[{"name":"a"},{"name":"b"}])")),
              ElementsAre("SchedulingGated"));
  PodView view = Unscheduled(
      R"(,"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":
      "0/2 nodes are available: 2 Insufficient cpu. preemption: none."}])");
  view.scheduler_silence = "the scheduler's debug endpoint http://a: refused";
  WhyReport report = JudgePod(view);
  EXPECT_THAT(ReasonsOf(report), ElementsAre("Unschedulable"));
  EXPECT_EQ(report.problems[0].message, "none of the 2 nodes takes the pod");
  EXPECT_THAT(report.problems[0].evidence, ElementsAre("2 Insufficient cpu", "preemption: none."));
  EXPECT_TRUE(Advises(report, "Allocated resources"));
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("http://a: refused"));
  EXPECT_THAT(
      Reasons(Unscheduled(R"(,"conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulerError",
      "message":"oops"}])")),
      ElementsAre("SchedulerError"));
  EXPECT_THAT(
      Reasons(Unscheduled(R"(,"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",
      "message":"no nodes available to schedule pods"}])")),
      ElementsAre("NoNodes"));
}

TEST(WhyPod, ClaimsAreHandedOn) {
  const std::string unbound =
      R"(,"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":
      "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."}])";
  PodView view = Unscheduled(unbound);
  view.claims.push_back(Parse<corev1::PersistentVolumeClaim>(
      R"({"metadata":{"namespace":"default","name":"data"},"status":{"phase":"Pending"}})"));
  EXPECT_THAT(Reasons(view), ElementsAre("Unschedulable", "ClaimNotBound"));
  EXPECT_TRUE(Advises(JudgePod(view), "nodectl why pvc default/data"));
  view = Unscheduled(
      R"(,"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":
      "0/1 nodes are available: 1 Insufficient cpu."}])");
  view.claims.push_back(
      Parse<corev1::PersistentVolumeClaim>(R"({"metadata":{"name":"data"},"status":{"phase":"Pending"}})"));
  EXPECT_THAT(Reasons(view), ElementsAre("Unschedulable"));
  view = Unscheduled(unbound);
  view.missing.insert("PersistentVolumeClaim data");
  EXPECT_THAT(Reasons(view), ElementsAre("Unschedulable", "ClaimMissing"));
}

TEST(WhyPod, ImagesAreNotPulled) {
  const struct {
    const char *reason, *message, *verdict;
  } cases[] = {
      {"ErrImagePull", "rpc error: code = NotFound desc = failed to pull: r.example.com/a:1: not found",
       "ImageNotFound"},
      {"ImagePullBackOff", "Back-off pulling image: manifest unknown", "ImageNotFound"},
      {"ErrImagePull", "pull access denied, repository does not exist or may require authorization",
       "ImageUnauthorized"},
      {"ErrImagePull", "unexpected status: 401 Unauthorized", "ImageUnauthorized"},
      {"ErrImagePull", "429 Too Many Requests - toomanyrequests", "ImageRateLimited"},
      {"ErrImagePull", "dial tcp: lookup r.example.com: no such host", "RegistryUnreachable"},
      {"ErrImagePull", "dial tcp 192.0.2.1:443: i/o timeout", "RegistryUnreachable"},
      {"ErrImagePull", "tls: failed to verify certificate: x509: unknown authority", "RegistryUntrusted"},
      {"ErrImagePull", "no match for platform in manifest", "ImagePlatform"},
      {"ErrImagePull", "write /var: no space left on device", "DiskFull"},
      {"ErrImagePull", "something new", "ImagePullFailed"},
      {"InvalidImageName", "invalid reference format", "InvalidImageName"},
      {"ErrImageNeverPull", "Container image is not present with pull policy of Never", "ErrImageNeverPull"},
      {"SignatureValidationFailed", "no signature", "SignatureValidationFailed"},
      {"ImageInspectError", "broken", "ImageInspectError"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(Reasons(Waiting(one.reason, one.message)), ElementsAre(one.verdict)) << one.message;
  }
  PodView view = Waiting("ImagePullBackOff", "Back-off pulling image");
  view.events.push_back(
      ParseEvent("Failed", "Failed to pull image r.example.com/a:1: not found", "spec.containers{main}"));
  view.events.push_back(ParseEvent("FailedToRetrieveImagePullSecret", "Unable to retrieve secret key"));
  const WhyReport report = JudgePod(view);
  EXPECT_THAT(ReasonsOf(report), ElementsAre("ImageNotFound"));
  EXPECT_TRUE(Shows(report, "event Failed: Failed to pull image"));
  EXPECT_TRUE(Shows(report, "Unable to retrieve secret key"));
  EXPECT_TRUE(Advises(report, "nodectl pull r.example.com/a:1"));
}

TEST(WhyPod, ContainersEnd) {
  const struct {
    const char *ended, *verdict, *sentence;
  } cases[] = {
      {R"({"exitCode":3,"reason":"Error"})", "CrashLoopBackOff", "with code 3"},
      {R"({"exitCode":137,"reason":"Error"})", "CrashLoopBackOff", "by signal SIGKILL (code 137)"},
      {R"({"exitCode":137,"reason":"OOMKilled"})", "OOMKilled", "limit of 128Mi"},
      {R"({"exitCode":0,"reason":"Completed"})", "Completed", "restartPolicy Always"},
      {R"({"exitCode":128,"reason":"StartError","message":"exec: x: not found in $PATH"})",
       "ContainerNotStarted", "exec: x"},
  };
  for (const auto& one : cases) {
    const WhyReport report = JudgePod(Crashed(one.ended));
    EXPECT_THAT(ReasonsOf(report), ElementsAre(one.verdict));
    EXPECT_THAT(report.problems[0].message, HasSubstr(one.sentence));
  }
  PodView view = Crashed(
      R"({"exitCode":1,"reason":"Error","startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:00:09Z"})");
  view.logs["main"] = {"starting", "panic: no config"};
  const WhyReport report = JudgePod(view);
  EXPECT_THAT(report.problems[0].evidence,
              ElementsAre("CrashLoopBackOff: back-off 40s",
                          "last end: Error with code 1 after 9s, at 2026-01-01T00:00:09Z; 3 restart(s)",
                          "log: starting", "log: panic: no config"));
  EXPECT_TRUE(Advises(report, "kubectl -n default logs p -c main --previous"));
}

TEST(WhyPod, ProbesEndContainers) {
  for (const auto& [probe, verdict] :
       {std::pair{"Liveness", "LivenessProbeFailed"}, std::pair{"Startup", "StartupProbeFailed"}}) {
    PodView view = Crashed(R"({"exitCode":137,"reason":"Error"})");
    std::string lower = probe;
    lower[0] = static_cast<char>(lower[0] - 'A' + 'a');
    view.events.push_back(
        ParseEvent("Unhealthy", std::string(probe) + " probe failed: refused", "spec.containers{main}"));
    view.events.push_back(ParseEvent(
        "Killing", "Container main failed " + lower + " probe, will be restarted", "spec.containers{main}"));
    EXPECT_THAT(Reasons(view), ElementsAre(verdict));
    EXPECT_TRUE(Shows(JudgePod(view), "probe failed: refused"));
  }
}

TEST(WhyPod, ContainersAreNotReady) {
  PodView view = Running(R"(,"started":true,"ready":false)");
  EXPECT_THAT(Reasons(view), ElementsAre("ReadinessProbeFailed"));
  EXPECT_THAT(JudgePod(view).problems[0].message, HasSubstr("has not succeeded yet"));
  view.events.push_back(ParseEvent("Unhealthy", "Readiness probe failed: 503", "spec.containers{main}"));
  EXPECT_TRUE(Shows(JudgePod(view), "503"));
  EXPECT_THAT(Reasons(Running(R"(,"started":false,"ready":false)")), ElementsAre("StartupProbeFailed"));
  EXPECT_THAT(
      Reasons(Running(R"(,"started":true,"ready":true)", R"(,"conditions":[{"type":"Ready","status":"False",
      "reason":"ReadinessGatesNotReady","message":"corresponding condition of pod readiness gate \"a\" does not exist."}])")),
      ElementsAre("ReadinessGate"));
}

TEST(WhyPod, InitContainersComeFirst) {
  const std::string init =
      R"("phase":"Pending","startTime":"2026-01-01T00:00:00Z","containerStatuses":[{"name":"main",
      "state":{"waiting":{"reason":"PodInitializing"}}}],"initContainerStatuses":[{"name":"main","containerID":"x","state":)";
  EXPECT_THAT(Reasons(PodOf(init + R"({"running":{}}}])")), ElementsAre("InitContainerRunning"));
  EXPECT_THAT(Reasons(PodOf(init + R"({"terminated":{"exitCode":1}}}])")), ElementsAre("ContainerFailed"));
  EXPECT_THAT(Reasons(PodOf(init + R"({"terminated":{"exitCode":0}}}])")), IsEmpty());
  const WhyReport report = JudgePod(PodOf(
      init + R"({"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":2}}}])"));
  EXPECT_THAT(ReasonsOf(report), ElementsAre("CrashLoopBackOff"));
  EXPECT_THAT(report.problems[0].message, HasSubstr("init container main"));
}

TEST(WhyPod, ReferencesAreMissing) {
  EXPECT_THAT(Reasons(Waiting("CreateContainerConfigError", R"(configmap \"web\" not found)")),
              ElementsAre("ConfigMapMissing"));
  EXPECT_THAT(Reasons(Waiting("CreateContainerConfigError", R"(secret \"web\" not found)")),
              ElementsAre("SecretMissing"));
  EXPECT_THAT(Reasons(Waiting("CreateContainerConfigError", "couldn't find key a in ConfigMap default/web")),
              ElementsAre("KeyMissing"));
  EXPECT_THAT(
      Reasons(Waiting("CreateContainerConfigError", "container has runAsNonRoot and image will run as root")),
      ElementsAre("RunAsNonRoot"));
  EXPECT_THAT(Reasons(Waiting("CreateContainerError", "name is in use")), ElementsAre("ContainerNotStarted"));
  EXPECT_THAT(Reasons(Waiting("PostStartHookError", "exit 1")), ElementsAre("PostStartHookError"));
  PodView view = Waiting("ContainerCreating", "");
  view.events.push_back(
      ParseEvent("FailedMount", R"(MountVolume.SetUp failed for volume "v" : secret "s" not found)"));
  const WhyReport report = JudgePod(view);
  EXPECT_THAT(ReasonsOf(report), ElementsAre("SecretMissing"));
  EXPECT_TRUE(Advises(report, "kubectl -n default get secrets"));
}

TEST(WhyPod, VolumesAndSandboxesFail) {
  PodView view = Waiting("ContainerCreating", "");
  EXPECT_THAT(Reasons(view), IsEmpty());
  view.claims.push_back(Parse<corev1::PersistentVolumeClaim>(
      R"({"metadata":{"namespace":"default","name":"data"},"status":{"phase":"Bound"}})"));
  view.events.push_back(ParseEvent("FailedAttachVolume", "AttachVolume.Attach failed"));
  EXPECT_THAT(Reasons(view), ElementsAre("VolumeNotAttached"));
  view.events.push_back(ParseEvent("FailedMount", "MountVolume.MountDevice failed"));
  EXPECT_THAT(Reasons(view), ElementsAre("VolumeNotMounted"));
  EXPECT_TRUE(Advises(JudgePod(view), "nodectl why pvc default/data"));
  view = Waiting("ContainerCreating", "");
  view.events.push_back(
      ParseEvent("FailedCreatePodSandBox", "failed to setup network for sandbox: plugin type=\"x\" failed"));
  EXPECT_THAT(Reasons(view), ElementsAre("NetworkSetupFailed"));
  view.events.back().set_message("runc create failed");
  EXPECT_THAT(Reasons(view), ElementsAre("SandboxFailed"));
  view = PodOf(R"("phase":"Pending")");
  EXPECT_THAT(Reasons(view), ElementsAre("KubeletSilent"));
}

TEST(WhyPod, NodesGoAway) {
  PodView view = Running(R"(,"ready":true)");
  view.node = NodeThatIs("Unknown");
  EXPECT_THAT(Reasons(view), ElementsAre("NodeNotReady"));
  EXPECT_TRUE(Advises(JudgePod(view), "nodectl why node n1"));
  view.node.reset();
  EXPECT_THAT(Reasons(view), ElementsAre("NodeGone"));
}

TEST(WhyPod, DeletionHangs) {
  const std::string deleted = R"(,"deletionGracePeriodSeconds":30,"deletionTimestamp":)";
  EXPECT_THAT(Reasons(PodOf(R"("phase":"Running")", "", deleted + R"("2026-01-01T00:10:20Z")")),
              ElementsAre("TerminationGracePeriod"));
  const WhyReport stuck = JudgePod(PodOf(R"("phase":"Running")", "", deleted + R"("2026-01-01T00:05:00Z")"));
  EXPECT_THAT(ReasonsOf(stuck), ElementsAre("Terminating"));
  EXPECT_THAT(stuck.problems[0].message, HasSubstr("ended 5m ago"));
  EXPECT_THAT(Reasons(PodOf(R"("phase":"Succeeded")", "",
                            deleted + R"("2026-01-01T00:05:00Z","finalizers":["example.com/a"])")),
              ElementsAre("Finalizer"));
  PodView gone = PodOf(R"("phase":"Running")", "", deleted + R"("2026-01-01T00:05:00Z")");
  gone.node.reset();
  EXPECT_THAT(Reasons(gone), ElementsAre("NodeGone"));
}

TEST(WhyPod, PodsFail) {
  const struct {
    const char *status, *verdict;
  } cases[] = {
      {R"("reason":"Evicted","message":"low on memory")", "Evicted"},
      {R"("conditions":[{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}])",
       "Preempted"},
      {R"("conditions":[{"type":"DisruptionTarget","status":"True","reason":"DeletionByTaintManager"}])",
       "TaintEviction"},
      {R"("reason":"DeadlineExceeded","message":"too long")", "DeadlineExceeded"},
      {R"("reason":"NodeShutdown","message":"bye")", "NodeShutdown"},
      {R"("reason":"OutOfcpu","message":"Node didn't have enough resource: cpu")", "AdmissionRefused"},
  };
  for (const auto& one : cases) {
    EXPECT_THAT(Reasons(PodOf(std::string(R"("phase":"Failed",)") + one.status)), ElementsAre(one.verdict));
  }
  EXPECT_THAT(
      Reasons(PodOf(
          R"("phase":"Failed","containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":1}}}])")),
      ElementsAre("ContainerFailed"));
}

TEST(WhyPod, OwnersTellWhyAPodIsAbsent) {
  const struct {
    const char *refusal, *verdict;
  } cases[] = {
      {R"(pods "a" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2)",
       "QuotaExceeded"},
      {R"(pods "a" is forbidden: failed quota: q: must specify limits.cpu)", "QuotaExceeded"},
      {R"(pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged)", "PodSecurityDenied"},
      {R"(admission webhook "w.example.com" denied the request: no)", "WebhookDenied"},
      {R"(Internal error occurred: failed calling webhook "w.example.com": refused)", "WebhookUnavailable"},
      {R"(pods "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no)",
       "PolicyDenied"},
      {R"(pods "a" is forbidden: error looking up service account default/x: serviceaccount "x" not found)",
       "ServiceAccountMissing"},
      {R"(pods "a" is forbidden: no PriorityClass with name high was found)", "PriorityClassMissing"},
      {R"(pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi)",
       "LimitRangeDenied"},
      {R"(Pod "a" is invalid: spec: Required value)", "Invalid"},
      {R"(pods "a" is forbidden: not today)", "Forbidden"},
      {"oops", "FailedCreate"},
  };
  for (const auto& one : cases) {
    AbsentPodView view{
        "default", "web-1-abcde", {{"ReplicaSet", "web-1", "", {ParseEvent("FailedCreate", one.refusal)}}}};
    const WhyReport report = JudgeAbsentPod(view);
    EXPECT_THAT(ReasonsOf(report), ElementsAre(one.verdict)) << one.refusal;
    EXPECT_TRUE(Shows(report, one.refusal));
  }
  AbsentPodView view{
      "default",
      "web-1-abcde",
      {{"ReplicaSet", "web-1", "", {ParseEvent("FailedCreate", "x"), ParseEvent("SuccessfulCreate", "y")}}}};
  EXPECT_THAT(ReasonsOf(JudgeAbsentPod(view)), ElementsAre("NoSuchPod"));
  view.owners[0].condition = "exceeded quota: q";
  EXPECT_THAT(ReasonsOf(JudgeAbsentPod(view)), ElementsAre("QuotaExceeded"));
}

}  // namespace
}  // namespace keelson::ctl
