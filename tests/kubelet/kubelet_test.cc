#include "kubelet/testing/kubelet_test.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/codec/codec.h"
#include "lib/api/proto/node_v1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/base/testing/eventually.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {
namespace {

TEST_F(KubeletTest, RegistersTheNode) {
  harness_->Start();
  // It may be registered before the runtime has said that it is ready.
  auto changes = harness_->api().Watch(api::ResourceOf<corev1::Node>(), "", {});
  ASSERT_TRUE(changes) << changes.error().message();
  corev1::Node node;
  while (!k8s::IsReady(node)) {
    Result<client::WatchEvent> event = (*changes)->Next(std::stop_token());
    ASSERT_TRUE(event) << event.error().message();
    ASSERT_TRUE(client::RestClient::DecodeInto(event->raw, node));
  }
  EXPECT_EQ(node.metadata().name(), "node-under-test");
  EXPECT_EQ(node.metadata().labels().at("kubernetes.io/os"), "linux");
  EXPECT_EQ(node.status().addresses(0).address(), "10.7.0.1");
  EXPECT_GT(api::Amount::Of(node.status().capacity().at("memory")).Value(), 0);
}

TEST_F(KubeletTest, RunsAPodToItsEnd) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  corev1::Pod running = harness_->Get("web");
  EXPECT_EQ(running.status().phase(), "Running");
  EXPECT_EQ(running.status().host_ip(), "10.7.0.1");
  EXPECT_FALSE(running.status().pod_ip().empty());
  EXPECT_EQ(runtime_.LastSandboxConfig(pod.metadata().uid()).cgroup_parent,
            "/kubepods/pod" + pod.metadata().uid());
  harness_->Delete("web", 5);
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* gone) { return gone == nullptr; }));
  EXPECT_EQ(runtime_.LastGrace(), std::chrono::seconds(5));
  EXPECT_FALSE(PathExists(dir_ + "/kubelet/pods/" + pod.metadata().uid()));
  EXPECT_TRUE(cgroups_.Uids().empty());
  runtime_.Await([&] { return runtime_.Count("RemovePodSandbox web") > 0; });
}

TEST_F(KubeletTest, RestartOfTheKubeletDisturbsNothing) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  std::string id = harness_->Get("web").status().container_statuses(0).container_id();
  size_t made = runtime_.Count("CreateContainer main");
  harness_->Stop();
  harness_->Start();
  corev1::Pod second =
      harness_->Create(R"({"metadata":{"name":"two"},"spec":{"containers":[{"name":"x","image":"img:1"}]}})");
  ASSERT_TRUE(harness_->Await("two", IsPodReady));
  EXPECT_EQ(harness_->Get("web").status().container_statuses(0).container_id(), id);
  EXPECT_EQ(harness_->Get("web").status().container_statuses(0).restart_count(), 0);
  EXPECT_EQ(runtime_.Count("CreateContainer main"), made);
  EXPECT_EQ(runtime_.Count("StopContainer main"), 0u);
}

TEST_F(KubeletTest, APodWithACertificateWaitsForItsSigner) {
  harness_->settings().config.feature_gates = {{"PodCertificateRequest", true}};
  corev1::ServiceAccount account;
  account.mutable_metadata()->set_namespace_("default");
  account.mutable_metadata()->set_name("robot");
  harness_->fake_api().Put(account);
  std::atomic<int> looks = 0;  // the signer takes its time
  harness_->fake_api().SetInterceptor(
      [&looks](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
        const std::string target =
            "/apis/certificates.k8s.io/v1beta1/namespaces/default/podcertificaterequests";
        if (request.target.rfind(target, 0) != 0) return std::nullopt;
        const std::string status =
            ++looks < 3 ? "{}" : R"({"conditions":[{"type":"Issued","status":"True"}],"certificateChain":
               "-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----\n",
               "beginRefreshAt":"2096-01-01T00:00:00Z","notAfter":"2097-01-01T00:00:00Z"})";
        return Result<client::ApiResponse>(client::ApiResponse{
            200, "application/json",
            R"({"metadata":{"name":"req-1","creationTimestamp":"2096-01-01T00:00:00Z"},"status":)" + status +
                "}"});
      });
  harness_->Start();
  corev1::Pod pod = harness_->Create(R"({"metadata":{"name":"web"},"spec":{"serviceAccountName":"robot",
      "containers":[{"name":"main","image":"img:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "volumes":[{"name":"v","projected":{"sources":[{"podCertificate":{"signerName":"a.b/c",
        "keyType":"ED25519","credentialBundlePath":"bundle"}}]}}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  EXPECT_GE(looks, 3);
  const std::string bundle =
      ReadFile(dir_ + "/kubelet/pods/" + pod.metadata().uid() + "/volumes/kubernetes.io~projected/v/bundle")
          .value_or("");
  EXPECT_EQ(bundle.rfind("-----BEGIN PRIVATE KEY-----\n", 0), 0u);
  EXPECT_NE(bundle.find("-----BEGIN CERTIFICATE-----\nb25l\n"), std::string::npos);
}

// No driver of devices can register: the pod never gets as far as a sandbox.
TEST_F(KubeletTest, APodWithClaimsNeverStartsWithoutItsDevices) {
  api::resource::v1::ResourceClaim claim;
  ASSERT_TRUE(api::DecodeJson(R"({"metadata":{"name":"c","namespace":"default"},"status":{
      "allocation":{"devices":{"results":[{"request":"r","driver":"a.b","pool":"p","device":"d"}]}}}})",
                              claim));
  harness_->fake_api().Put(claim);
  harness_->Start();
  corev1::Pod pod = harness_->Create(R"({"metadata":{"name":"web"},"spec":{
      "resourceClaims":[{"name":"gpu","resourceClaimName":"c"}],
      "containers":[{"name":"main","image":"img:1"}]}})");
  const auto told = [&](const std::string& message) {
    return Eventually([&] {
      const auto events = harness_->api().List<corev1::Event>();
      return events && std::any_of(events->begin(), events->end(), [&](const corev1::Event& event) {
               return event.reason() == "FailedPrepareDynamicResources" &&
                      event.message() == "Failed to prepare dynamic resources: " + message;
             });
    });
  };
  EXPECT_TRUE(told("pod web (" + pod.metadata().uid() + ") is not allowed to use ResourceClaim c (" +
                   harness_->api().Get<api::resource::v1::ResourceClaim>("default", "c")->metadata().uid() +
                   ")"));
  Result<api::resource::v1::ResourceClaim> stored =
      harness_->api().Get<api::resource::v1::ResourceClaim>("default", "c");
  ASSERT_TRUE(stored) << stored.error().message();
  auto& user = *stored->mutable_status()->add_reserved_for();
  user.set_resource("pods");
  user.set_name("web");
  user.set_uid(pod.metadata().uid());
  harness_->fake_api().Put(*stored);
  EXPECT_TRUE(told("DRA driver a.b is not registered"));
  EXPECT_EQ(runtime_.Count("RunPodSandbox web"), 0u);
  EXPECT_EQ(runtime_.Count("CreateContainer main"), 0u);
  EXPECT_EQ(harness_->Get("web").status().phase(), "Pending");
}

// As the control plane does with the pods of a node that has fallen silent.
TEST_F(KubeletTest, StatusThatOthersChangedIsPutRight) {
  harness_->settings().config.sync_frequency = std::chrono::hours(1);
  harness_->Start();
  harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  corev1::Pod pod = harness_->Get("web");
  for (auto& condition : *pod.mutable_status()->mutable_conditions()) {
    if (condition.type() == "Ready") condition.set_status("False");
  }
  auto stored = harness_->api().UpdateStatus(pod);
  ASSERT_TRUE(stored) << stored.error().message();
  EXPECT_TRUE(harness_->Await("web", IsPodReady));
}

TEST_F(KubeletTest, ReadinessGatesFollowTheirWriterBothWays) {
  harness_->settings().config.sync_frequency = std::chrono::hours(1);
  harness_->Start();
  harness_->Create(R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"img:1"}],
      "readinessGates":[{"conditionType":"x/gate"}]}})");
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) {
    const auto* ready = pod ? k8s::FindCondition(pod->status(), k8s::kContainersReady) : nullptr;
    return ready && ready->status() == "True";
  }));
  for (const char* value : {"True", "False", "True"}) {
    auto patched = harness_->api().Patch<corev1::Pod>(
        "default", "web", client::PatchType::kStrategicMerge,
        fmt::format(R"({{"status":{{"conditions":[{{"type":"x/gate","status":"{}"}}]}}}})", value), "status");
    ASSERT_TRUE(patched) << patched.error().message();
    EXPECT_TRUE(harness_->Await("web", [&](const corev1::Pod* pod) {
      return k8s::FindCondition(pod->status(), k8s::kPodReady)->status() == value &&
             k8s::FindCondition(pod->status(), "x/gate")->status() == value;
    })) << value;
  }
}

class ChangeDetectionTest : public KubeletTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(ChangeDetectionTest, VolumesOfAPodThatRestsFollowTheirSources) {
  harness_->settings().config.config_map_and_secret_change_detection_strategy = GetParam();
  harness_->settings().config.sync_frequency = std::chrono::milliseconds(100);
  harness_->Start();
  corev1::ConfigMap map;
  map.mutable_metadata()->set_name("settings");
  map.mutable_metadata()->set_namespace_("default");
  (*map.mutable_data())["key"] = "before";
  auto stored = harness_->api().Create(map);
  ASSERT_TRUE(stored) << stored.error().message();
  corev1::Pod pod = harness_->Create(R"({"metadata":{"name":"web"},"spec":{
      "containers":[{"name":"main","image":"img:1","volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "volumes":[{"name":"v","configMap":{"name":"settings"}}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  // As the controller of TTLs has it in small clusters.
  auto annotated = harness_->api().Patch<corev1::Node>(
      "", "node-under-test", client::PatchType::kMerge,
      R"({"metadata":{"annotations":{"node.alpha.kubernetes.io/ttl":"0"}}})");
  ASSERT_TRUE(annotated) << annotated.error().message();
  const std::string file =
      dir_ + "/kubelet/pods/" + pod.metadata().uid() + "/volumes/kubernetes.io~configmap/v/key";
  auto holds = [&](const std::string& text) {
    return [&file, text] { return ReadFile(file).value_or("") == text; };
  };
  auto change = [&](const std::string& text) {
    (*stored->mutable_data())["key"] = text;
    stored = harness_->api().Update(*stored);
    runtime_.Await(holds(text));
  };
  for (const char* text : {"once", "twice"}) {  // by then nothing else has happened for a while
    change(text);
    EXPECT_TRUE(holds(text)()) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Kubelet, ChangeDetectionTest, ::testing::Values("Get", "Cache", "Watch"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_F(KubeletTest, PodsDeletedMeanwhileAreRemoved) {
  harness_->Start();
  harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  harness_->Stop();
  harness_->Delete("web", 0);
  harness_->Start();
  runtime_.Await([&] { return runtime_.Count("RemovePodSandbox web") > 0; });
  EXPECT_EQ(runtime_.ListContainers({}, {})->size(), 0u);
}

// As a kubelet leaves it that was killed, and whose pod was then deleted.
TEST_F(KubeletTest, WhatIsLeftOfUnknownPodsIsRemoved) {
  std::string ghost = dir_ + "/kubelet/pods/ghost";
  std::string volume = ghost + "/volumes/kubernetes.io~empty-dir/fast";
  ASSERT_TRUE(MakeDirs(volume));
  ASSERT_TRUE(mounter_.MountTmpfs(volume, ""));
  ASSERT_TRUE(mounter_.Bind(volume, ghost + "/volume-subpaths/fast/main/0", false));
  corev1::Pod unknown;
  unknown.mutable_metadata()->set_uid("ghost");
  ASSERT_TRUE(cgroups_.Ensure(unknown, {}));
  harness_->Start();
  runtime_.Await([&] { return !PathExists(ghost) && cgroups_.Uids().empty(); });
  EXPECT_TRUE(mounter_.MountPointsUnder(ghost)->empty());
}

TEST_F(KubeletTest, ExitedContainerIsRestartedThenHeldBack) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  runtime_.ExitOnStart("main", 3);
  runtime_.ExitContainer(pod.metadata().uid(), "main", 3);
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* p) { return Waiting(p) == "CrashLoopBackOff"; }));
  corev1::Pod held = harness_->Get("web");
  const auto& status = held.status().container_statuses(0);
  EXPECT_EQ(status.restart_count(), 1);
  EXPECT_EQ(status.last_state().terminated().exit_code(), 3);
  EXPECT_NE(status.state().waiting().message().find("back-off 10s restarting failed container=main"),
            std::string::npos);
  // Another image has failed at nothing yet.
  runtime_.AddImage("img:2");
  runtime_.ExitOnStart("main", std::nullopt);
  held.mutable_spec()->mutable_containers(0)->set_image("img:2");
  const auto begin = std::chrono::steady_clock::now();
  auto updated = harness_->api().Update(held);
  ASSERT_TRUE(updated) << updated.error().message();
  EXPECT_TRUE(harness_->Await("web", IsPodReady));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

TEST_F(KubeletTest, APodThatBeginsAnewHasNotEnded) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(R"({"metadata":{"name":"web"},"spec":{"restartPolicy":"Never",
      "initContainers":[{"name":"side","image":"img:1","restartPolicy":"Always","restartPolicyRules":[
          {"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[42]}}]}],
      "containers":[{"name":"main","image":"img:1"}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  runtime_.ExitContainer(pod.metadata().uid(), "side", 42);
  EXPECT_TRUE(harness_->Await("web", [](const corev1::Pod* p) {
    return IsPodReady(p) && p->status().init_container_statuses(0).restart_count() == 1 &&
           p->status().container_statuses(0).restart_count() == 1;
  }));
}

TEST_F(KubeletTest, JobLikePodsSucceedAndFail) {
  harness_->Start();
  runtime_.ExitOnStart("good", 0);
  runtime_.ExitOnStart("bad", 7);
  harness_->Create(
      R"({"metadata":{"name":"a"},"spec":{"restartPolicy":"Never","initContainers":[{"name":"good","image":"img:1"}],
      "containers":[{"name":"bad","image":"img:1"}]}})");
  ASSERT_TRUE(
      harness_->Await("a", [](const corev1::Pod* p) { return p && p->status().phase() == "Failed"; }));
  EXPECT_EQ(harness_->Get("a").status().container_statuses(0).state().terminated().exit_code(), 7);
  harness_->Create(
      R"({"metadata":{"name":"b"},"spec":{"restartPolicy":"OnFailure","containers":[{"name":"good","image":"img:1"}]}})");
  ASSERT_TRUE(
      harness_->Await("b", [](const corev1::Pod* p) { return p && p->status().phase() == "Succeeded"; }));
}

TEST_F(KubeletTest, SaysWhyAPodDoesNotRun) {
  harness_->Start();
  harness_->Create(
      R"({"metadata":{"name":"noimage"},"spec":{"containers":[{"name":"c","image":"absent:1"}]}})");
  ASSERT_TRUE(harness_->Await("noimage", [](const corev1::Pod* p) { return Waiting(p) == "ErrImagePull"; }));
  harness_->Create(R"({"metadata":{"name":"noconfig"},"spec":{"containers":[{"name":"c","image":"img:1",
      "envFrom":[{"configMapRef":{"name":"absent"}}]}]}})");
  ASSERT_TRUE(harness_->Await(
      "noconfig", [](const corev1::Pod* p) { return Waiting(p) == "CreateContainerConfigError"; }));
  harness_->Create(R"({"metadata":{"name":"toobig"},"spec":{"containers":[{"name":"c","image":"img:1",
      "resources":{"requests":{"cpu":"100k"}}}]}})");
  ASSERT_TRUE(harness_->Await("toobig",
                              [](const corev1::Pod* p) { return p && p->status().reason() == "OutOfcpu"; }));
  EXPECT_EQ(harness_->Get("toobig").status().phase(), "Failed");
}

TEST_F(KubeletTest, TakesAsManyPodsAsItHasRoomForAndRefusesTheOthersForGood) {
  harness_->settings().config.max_pods = 5;
  harness_->Start();
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) {
    names.push_back("crowd-" + std::to_string(i));
    harness_->Create(R"({"metadata":{"name":")" + names.back() +
                     R"("},"spec":{"containers":[{"name":"main","image":"img:1"}]}})");
  }
  auto refused = [](const corev1::Pod* p) {
    return p && p->status().phase() == "Failed" && p->status().reason() == "OutOfpods";
  };
  for (const std::string& name : names) {
    ASSERT_TRUE(harness_->Await(name, [&](const corev1::Pod* p) { return refused(p) || IsPodReady(p); }))
        << name << ": " << harness_->Get(name).ShortDebugString();
  }
  harness_->Stop();  // all pending status updates are sent
  int ready = 0;
  for (const std::string& name : names) {
    const corev1::Pod pod = harness_->Get(name);
    ready += IsPodReady(&pod);
    EXPECT_TRUE(refused(&pod) || IsPodReady(&pod)) << pod.ShortDebugString();
  }
  EXPECT_EQ(ready, 5);
}

TEST_F(KubeletTest, LogsAreFound) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  server::ContainerRef ref{"default", "web", "", "main"};
  auto log = harness_->backend().ContainerLog(ref, false);
  ASSERT_TRUE(log) << log.error().message();
  EXPECT_EQ(log->path, dir_ + "/logs/default_web_" + pod.metadata().uid() + "/main/0.log");
  EXPECT_TRUE(log->running);
  EXPECT_FALSE(harness_->backend().ContainerLog(ref, true));
  ref.container = "absent";
  EXPECT_EQ(harness_->backend().ContainerLog(ref, false).error().code(), Code::kNotFound);
}

// As kubectl's users know them from other kubelets.
TEST_F(KubeletTest, SaysWhyThereIsNothingToShow) {
  harness_->Start();
  harness_->Create(kPod);
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  server::KubeletBackend& backend = harness_->backend();
  const server::ContainerRef absent{"default", "web", "", "absent"}, nobodys{"default", "none", "", "main"},
      former{"default", "web", "uid-of-old", "main"}, main{"default", "web", "", "main"};
  auto text = [](const auto& result) {
    return result ? "ok" : std::to_string(HttpStatus(result.error().code())) + " " + result.error().message();
  };
  struct Case {
    std::string got, expected;
  } cases[] = {
      {text(backend.ContainerLog(absent, false)), "404 container \"absent\" not found in pod \"web\""},
      {text(backend.ContainerLog(nobodys, false)), "404 pod \"none\" does not exist"},
      {text(backend.ContainerLog(main, true)),
       "400 previous terminated container \"main\" in pod \"web\" not found"},
      {text(backend.ExecUrl(absent, {}, {})), "500 container not found (\"absent\")"},
      {text(backend.AttachUrl(absent, {}, {})), "500 container not found (\"absent\")"},
      {text(backend.ExecUrl(nobodys, {}, {})), "404 pod does not exist"},
      {text(backend.Run(absent, {"true"}, std::chrono::seconds(1), {})),
       "500 container not found (\"absent\")"},
      {text(backend.PortForwardUrl(nobodys, {80}, {})), "404 pod does not exist"},
      {text(backend.PortForwardUrl(former, {80}, {})), "404 pod not found"},
      {text(backend.Checkpoint(absent, {})), "404 container absent does not exist"},
  };
  for (const Case& c : cases) EXPECT_EQ(c.got, c.expected);
}

TEST_F(KubeletTest, ACriticalPodPushesOthersOut) {
  harness_->Start();
  corev1::Node node = *harness_->api().Get<corev1::Node>("", "node-under-test");
  const std::string cpus = node.status().allocatable().at("cpu").string();
  const std::string request = R"("resources":{"requests":{"cpu":")" + cpus + R"("}})";
  harness_->Create(R"({"metadata":{"name":"low"},"spec":{"containers":[{"name":"c","image":"img:1",)" +
                   request + "}]}}");
  ASSERT_TRUE(harness_->Await("low", IsPodReady));
  harness_->Create(
      R"({"metadata":{"name":"critical"},"spec":{"priority":2000000000,"containers":[{"name":"k","image":"img:1",)" +
      request + "}]}}");
  ASSERT_TRUE(harness_->Await("critical", IsPodReady));
  ASSERT_TRUE(harness_->Await(
      "low", [](const corev1::Pod* pod) { return pod && pod->status().phase() == "Failed"; }));
  corev1::Pod low = harness_->Get("low");
  EXPECT_EQ(low.status().reason(), "Preempting");
  EXPECT_EQ(low.status().message(), "Preempted in order to admit critical pod");
  const corev1::PodCondition* target = k8s::FindCondition(low.status(), k8s::kDisruptionTarget);
  ASSERT_TRUE(target);
  EXPECT_EQ(target->reason(), "TerminationByKubelet");
}

// Containers restart with the known content of their ConfigMaps.
TEST_F(KubeletTest, GoesOnWhileTheApiServerIsAway) {
  corev1::ConfigMap map;
  map.mutable_metadata()->set_name("settings");
  map.mutable_metadata()->set_namespace_("default");
  (*map.mutable_data())["COLOR"] = "blue";
  ASSERT_TRUE(harness_->api().Create(map));
  harness_->Start();
  corev1::Pod pod = harness_->Create(R"({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main",
      "image":"img:1","envFrom":[{"configMapRef":{"name":"settings"}}],
      "volumeMounts":[{"name":"v","mountPath":"/v"}]}],
      "volumes":[{"name":"v","configMap":{"name":"settings"}}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  harness_->fake_api().SetInterceptor([](const client::ApiRequest&) {
    return Result<client::ApiResponse>(Error(Code::kUnavailable, "connection refused"));
  });
  harness_->fake_api().EndWatches();
  std::string first = runtime_.RunningContainer(pod.metadata().uid(), "main");
  runtime_.ExitContainer(pod.metadata().uid(), "main", 1);
  runtime_.Await([&] {
    std::string now = runtime_.RunningContainer(pod.metadata().uid(), "main");
    return !now.empty() && now != first;
  });
  EXPECT_EQ(runtime_.LastConfig("main").envs.front().second, "blue");
  harness_->fake_api().SetInterceptor({});
  EXPECT_TRUE(harness_->Await("web", [](const corev1::Pod* p) {
    return IsPodReady(p) && p->status().container_statuses(0).restart_count() == 1;
  }));
}

TEST_F(KubeletTest, RuntimeClassesAreFollowed) {
  runtime_.SetFeatures({{"", false, false}, {"runsc", false, false}}, false);
  api::node::v1::RuntimeClass sandboxed;
  sandboxed.mutable_metadata()->set_name("sandboxed");
  sandboxed.set_handler("runsc");
  ASSERT_TRUE(harness_->api().Create(sandboxed));
  harness_->Start();
  corev1::Pod pod = harness_->Create(
      R"({"metadata":{"name":"web"},"spec":{"runtimeClassName":"sandboxed","containers":[{"name":"main",
      "image":"img:1"}]}})");
  ASSERT_TRUE(harness_->Await("web", IsPodReady));
  EXPECT_EQ(runtime_.HandlerOf(pod.metadata().uid()), "runsc");
  corev1::Pod other = harness_->Create(
      R"({"metadata":{"name":"none"},"spec":{"runtimeClassName":"absent","containers":[{"name":"main",
      "image":"img:1"}]}})");
  corev1::Pod own = harness_->Create(
      R"({"metadata":{"name":"userns"},"spec":{"hostUsers":false,"containers":[{"name":"main",
      "image":"img:1"}]}})");
  std::map<std::string, std::string> told;
  auto events = harness_->api().Watch(api::ResourceOf<corev1::Event>(), "default", {});
  ASSERT_TRUE(events);
  auto listed = harness_->api().List<corev1::Event>("default");
  for (const auto& event : *listed) {
    if (event.reason() == "FailedCreatePodSandBox") told[event.involved_object().name()] = event.message();
  }
  while (told.size() < 2) {
    auto next = (*events)->Next(std::stop_token());
    ASSERT_TRUE(next);
    corev1::Event event;
    ASSERT_TRUE(client::RestClient::DecodeInto(next->raw, event));
    if (event.reason() == "FailedCreatePodSandBox") told[event.involved_object().name()] = event.message();
  }
  EXPECT_EQ(
      told["none"],
      "Failed to create pod sandbox: failed to get sandbox runtime: runtimeclass.node.k8s.io \"absent\" "
      "not found");
  EXPECT_EQ(told["userns"],
            "Failed to create pod sandbox: default runtime handler does not support user namespaces");
}

TEST_F(KubeletTest, UnsafeSysctlsAreNotAdmitted) {
  harness_->Start();
  harness_->Create(R"({"metadata":{"name":"web"},"spec":{"securityContext":{"sysctls":[
      {"name":"kernel.msgmax","value":"1"}]},"containers":[{"name":"main","image":"img:1"}]}})");
  ASSERT_TRUE(harness_->Await(
      "web", [](const corev1::Pod* p) { return p && p->status().reason() == "SysctlForbidden"; }));
  EXPECT_EQ(harness_->Get("web").status().message(),
            "Pod was rejected: forbidden sysctl: \"kernel.msgmax\" not allowlisted");
}

TEST_F(KubeletTest, DeadlineOfAPod) {
  harness_->Start();
  corev1::Pod pod = harness_->Create(R"({"metadata":{"name":"web"},"spec":{"activeDeadlineSeconds":1,
      "containers":[{"name":"main","image":"img:1"}]}})");
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* p) {
    return p && p->status().phase() == "Failed" && p->status().reason() == "DeadlineExceeded";
  }));
  EXPECT_EQ(harness_->Get("web").status().message(),
            "Pod was active on the node longer than the specified deadline");
  corev1::Pod late = harness_->Get("web");
  EXPECT_EQ(k8s::FindCondition(late.status(), k8s::kPodReady)->reason(), "PodFailed");
  runtime_.Await([&] { return runtime_.RunningContainer(pod.metadata().uid(), "main").empty(); });
}

}  // namespace
}  // namespace keelson::kubelet
