#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <thread>

#include "kubelet/staticpod/parse.h"
#include "kubelet/staticpod/sources.h"
#include "kubelet/staticpod/static_pods.h"
#include "lib/base/file.h"
#include "lib/client/testing/fake_api.h"
#include "lib/http/testing/fixture.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {
namespace {

constexpr char kWeb[] = R"(
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: kube-system}
spec:
  priorityClassName: system-node-critical
  containers: [{name: main, image: "img:1"}]
)";

TEST(Parse, MakesAPodOfTheNode) {
  auto pods = ParseStaticPods(kWeb, {"file", "/m/web.yaml", "node-1"});
  ASSERT_TRUE(pods) << pods.error().message();
  ASSERT_EQ(pods->size(), 1u);
  const corev1::Pod& pod = pods->front();
  EXPECT_EQ(pod.metadata().name(), "web-node-1");
  EXPECT_EQ(pod.metadata().namespace_(), "kube-system");
  EXPECT_EQ(pod.metadata().uid().size(), 32u);
  EXPECT_EQ(pod.metadata().annotations().at("kubernetes.io/config.hash"), pod.metadata().uid());
  EXPECT_EQ(pod.metadata().annotations().at("kubernetes.io/config.source"), "file");
  EXPECT_EQ(pod.spec().node_name(), "node-1");
  EXPECT_EQ(pod.spec().priority(), 2000001000);
  EXPECT_EQ(pod.spec().tolerations(0).effect(), "NoExecute");
  EXPECT_EQ(pod.spec().restart_policy(), "Always");  // defaulted
  EXPECT_EQ(pod.status().phase(), "Pending");
  // The identity is the manifest's, its place's and the node's.
  EXPECT_EQ(ParseStaticPods(kWeb, {"file", "/m/web.yaml", "node-1"})->front().metadata().uid(),
            pod.metadata().uid());
  EXPECT_NE(ParseStaticPods(kWeb, {"file", "/m/web2.yaml", "node-1"})->front().metadata().uid(),
            pod.metadata().uid());
  EXPECT_NE(ParseStaticPods(kWeb, {"file", "/m/web.yaml", "node-2"})->front().metadata().uid(),
            pod.metadata().uid());
  std::string edited = kWeb;
  edited.replace(edited.find("img:1"), 5, "img:2");
  EXPECT_NE(ParseStaticPods(edited, {"file", "/m/web.yaml", "node-1"})->front().metadata().uid(),
            pod.metadata().uid());
  EXPECT_EQ(ParseStaticPods(std::string("# a word\n") + kWeb, {"file", "/m/web.yaml", "node-1"})
                ->front()
                .metadata()
                .uid(),
            pod.metadata().uid())
      << "what is no part of the pod does not count";
}

// Another kubelet, also a later one, comes to the same: containers go by it.
TEST(Parse, TheIdentityOutlivesTheKubelet) {
  constexpr char kManifest[] =
      "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {b: c, d: e}}, spec: {containers: [{name: f, "
      "image: g}]}}";
  EXPECT_EQ(ParseStaticPods(kManifest, {"file", "/m/a.yaml", "n"})->front().metadata().uid(),
            "0cb466356b529cb7327678b51ed5f1f5");
}

TEST(Parse, RefusesWhatCannotRun) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{"{apiVersion: v1, kind: Service, metadata: {name: a}}", "couldn't parse as pod"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}", "invalid pod: spec.containers"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}], "
            "volumes: [{name: v, secret: {secretName: s}}]}}",
            "static pods may not reference secrets"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: default, "
            "containers: [{name: c, image: i}]}}",
            "static pods may not reference serviceaccounts"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}], "
            "volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: b, path: p}}]}}]}}",
            "static pods may not reference clustertrustbundles"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}], "
            "volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: p}}]}}]}}",
            "static pods may not reference serviceaccounts (via projected volumes)"},
           {"{apiVersion: v1, kind: Pod, spec: {containers: [{name: c, image: i}]}}", "Required value"},
           {"a: [", "error converting YAML to JSON"},
           {"{apiVersion: v1, kind: PodList, items: []}", "couldn't parse as pod"},
           {"", "couldn't get version/kind"},
           {"- a", "couldn't get version/kind"},
           {"{apiVersion: v1, kind: Pod, metadata: [], spec: {}}", "metadata"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a, uid: ../../etc}, spec: {containers: "
            "[{name: c, image: i}]}}",
            "metadata.uid: Invalid value: \"../../etc\""},
           {"{apiVersion: v1, kind: Pod, metadata: {name: ../a}, spec: {containers: [{name: c, image: i}]}}",
            "metadata.name: Invalid value"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ../b}, spec: {containers: "
            "[{name: c, image: i}]}}",
            "metadata.namespace: Invalid value"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: ../c, image: i}]}}",
            "spec.containers[0].name: Invalid value"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i, "
            "volumeMounts: [{name: v, mountPath: /m, subPath: ../x}]}], volumes: [{name: v, emptyDir: {}}]}}",
            "spec.containers[0].volumeMounts.subPath: Invalid value"},
           {"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}], "
            "volumes: [{name: ../v, emptyDir: {}}]}}",
            "spec.volumes[0].name: Invalid value"},
       }) {
    auto pods = ParseStaticPods(c.text, {"file", "/m/a", "n"});
    ASSERT_FALSE(pods) << c.text;
    EXPECT_NE(pods.error().message().find(c.message), std::string::npos) << pods.error().message();
  }
  EXPECT_TRUE(ParseStaticPods("{apiVersion: v1, kind: PodList, items: []}", {"http", "u", "n"}));
}

// What a source has told, waited for.
class Told {
 public:
  StaticPodsFunction Function() {
    return [this](std::vector<corev1::Pod> pods) {
      MutexLock lock(mutex_);
      names_.clear();
      for (const corev1::Pod& pod : pods) names_.insert(pod.metadata().name());
      ++count_;
      changed_.notify_all();
    };
  }
  void Await(const std::set<std::string>& names) {
    MutexLock lock(mutex_);
    while (count_ == 0 || names_ != names) changed_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::set<std::string> names_ KEELSON_GUARDED_BY(mutex_);
  int count_ KEELSON_GUARDED_BY(mutex_) = 0;
};

std::string Manifest(const std::string& name) {
  return "{apiVersion: v1, kind: Pod, metadata: {name: " + name +
         "}, spec: {containers: [{name: c, image: i}]}}";
}

TEST(FileSource, SeesFilesComeChangeAndGo) {
  char name[] = "/tmp/kubelet_static_test.XXXXXX";
  const std::string dir = ::mkdtemp(name);
  ASSERT_TRUE(WriteFile(dir + "/a.yaml", Manifest("a")));
  ASSERT_TRUE(WriteFile(dir + "/.hidden.yaml", Manifest("hidden")));
  ASSERT_TRUE(WriteFile(dir + "/bad.yaml", "a: ["));
  ASSERT_TRUE(MakeDirs(dir + "/sub.yaml"));
  Told told;
  {
    std::jthread thread([&](std::stop_token stop) {
      RunFileSource({dir, "n", std::chrono::hours(1)}, told.Function(), stop);
    });
    told.Await({"a-n"});
    ASSERT_TRUE(WriteFileAtomic(dir + "/b.yaml", Manifest("b")));
    told.Await({"a-n", "b-n"});
    ASSERT_TRUE(WriteFileAtomic(dir + "/b.yaml", Manifest("c")));
    told.Await({"a-n", "c-n"});
    ASSERT_TRUE(RemoveFile(dir + "/a.yaml"));
    ASSERT_TRUE(WriteFileAtomic(dir + "/bad.yaml", Manifest("good")));
    told.Await({"c-n", "good-n"});
  }
  (void)RemoveTree(dir);
}

TEST(UrlSource, KeepsThePodsWhileNothingComes) {
  Mutex mutex;
  std::string body = Manifest("a");
  int status = 200;
  std::string header;
  http::RunningServer server([&](auto request, auto writer) {
    MutexLock lock(mutex);
    header = std::string(request->headers.Get("X-Key"));
    writer->Reply(status, {}, body);
  });
  Told told;
  FakeClock clock;
  UrlSourceOptions options;
  options.url = server.Url() + "/pods";
  options.node_name = "n";
  options.headers = {{"X-Key", {"k"}}};
  std::jthread thread([&](std::stop_token stop) { RunUrlSource(options, told.Function(), clock, stop); });
  told.Await({"a-n"});
  auto next = [&](int new_status, const std::string& text) {
    clock.AwaitWaiters(1);
    {
      MutexLock lock(mutex);
      status = new_status;
      body = text;
    }
    clock.Advance(options.period);
  };
  next(500, "no");
  next(200, "nonsense");
  next(200, "{apiVersion: v1, kind: PodList, items: [" + Manifest("b") + ", " + Manifest("c") + "]}");
  told.Await({"b-n", "c-n"});
  MutexLock lock(mutex);
  EXPECT_EQ(header, "k");
}

class StaticPodsTest : public ::testing::Test {
 protected:
  StaticPodsTest()
      : fake_(std::make_shared<client::FakeApi>()),
        api_(fake_),
        pods_({api_, [this](StaticPods::PodPtr pod) { Note("run " + pod->metadata().uid()); },
               [this](const std::string& uid) { Note("end " + uid); },
               [] { return std::optional<std::string>("node-uid"); },
               [this](const std::string& uid, StaticPods::PodPtr mirror) {
                 Note("mirror " + uid + (mirror ? " " + mirror->metadata().name() : ""));
               },
               "n"},
              {"file", "http"}, Clock::Real()) {}
  void Note(const std::string& what) {
    MutexLock lock(mutex_);
    log_.push_back(what);
    changed_.notify_all();
  }
  void Await(const std::string& what) {
    MutexLock lock(mutex_);
    while (std::find(log_.begin(), log_.end(), what) == log_.end()) changed_.wait(mutex_);
  }
  std::vector<std::string> Log() {
    MutexLock lock(mutex_);
    return log_;
  }
  static corev1::Pod Pod(const std::string& uid, const std::string& name = "web") {
    corev1::Pod pod = ParseStaticPods(Manifest(name), {"file", "/m", "n"})->front();
    pod.mutable_metadata()->set_uid(uid);
    (*pod.mutable_metadata()->mutable_annotations())["kubernetes.io/config.hash"] = uid;
    return pod;
  }

  std::shared_ptr<client::FakeApi> fake_;
  client::RestClient api_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> log_ KEELSON_GUARDED_BY(mutex_);
  StaticPods pods_;
};

using Lines = std::vector<std::string>;

TEST_F(StaticPodsTest, AChangedPodWaitsForTheEndOfTheOld) {
  EXPECT_FALSE(pods_.ready());
  pods_.Set("http", {});
  pods_.Set("file", {Pod("1")});
  EXPECT_TRUE(pods_.ready());
  pods_.Set("file", {Pod("1")});
  EXPECT_EQ(Log(), (Lines{"run 1"}));
  pods_.Set("file", {Pod("2")});
  EXPECT_EQ(Log(), (Lines{"run 1", "end 1"}));
  pods_.Set("file", {Pod("3")});  // the second never runs
  pods_.Released("1");
  EXPECT_EQ(Log(), (Lines{"run 1", "end 1", "run 3"}));
  pods_.Set("file", {});
  pods_.Released("3");
  EXPECT_EQ(Log(), (Lines{"run 1", "end 1", "run 3", "end 3"}));
}

TEST_F(StaticPodsTest, TheMirrorFollows) {
  std::jthread mirrors([this](std::stop_token stop) { pods_.RunMirrors(stop); });
  pods_.Set("file", {Pod("1")});
  Await("mirror 1 web-n");
  auto mirror = api_.Get<corev1::Pod>("default", "web-n");
  ASSERT_TRUE(mirror);
  EXPECT_EQ(mirror->metadata().annotations().at("kubernetes.io/config.mirror"), "1");
  EXPECT_EQ(mirror->metadata().owner_references(0).kind(), "Node");
  EXPECT_EQ(mirror->metadata().owner_references(0).uid(), "node-uid");
  EXPECT_TRUE(mirror->metadata().owner_references(0).controller());
  EXPECT_NE(mirror->metadata().uid(), "1");
  pods_.MirrorChanged(std::make_shared<const corev1::Pod>(*mirror), false);
  // Somebody deletes it: it comes back.
  auto gone = std::make_shared<const corev1::Pod>(*mirror);
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "web-n", now));
  auto stream = api_.Watch(api::ResourceOf<corev1::Pod>(), "default", {});
  pods_.MirrorChanged(gone, true);
  auto event = (*stream)->Next({});
  ASSERT_TRUE(event);
  corev1::Pod again;
  ASSERT_TRUE(client::RestClient::DecodeInto(event->raw, again));
  EXPECT_EQ(again.metadata().name(), "web-n");
  // The manifest goes, and the mirror once nothing of the pod is left.
  pods_.MirrorChanged(std::make_shared<const corev1::Pod>(again), false);
  pods_.Set("file", {});
  pods_.Set("http", {Pod("2", "other")});
  event = (*stream)->Next({});
  ASSERT_TRUE(event);
  ASSERT_TRUE(client::RestClient::DecodeInto(event->raw, again));
  EXPECT_EQ(again.metadata().name(), "other-n");
  pods_.Released("1");
  do {
    event = (*stream)->Next({});
    ASSERT_TRUE(event);
  } while (event->type != client::WatchEvent::Type::kDeleted);
}

TEST_F(StaticPodsTest, AMirrorOutlivesTheKubelet) {
  corev1::Pod pod = Pod("1"), other = Pod("2", "other");
  for (corev1::Pod* one : {&pod, &other}) {
    (*one->mutable_metadata()->mutable_annotations())["kubernetes.io/config.mirror"] = one->metadata().uid();
    one->mutable_metadata()->clear_uid();
    auto made = api_.Create(*one);
    ASSERT_TRUE(made) << made.error().message();
    *one = *made;
    pods_.MirrorChanged(std::make_shared<const corev1::Pod>(*made), false);
  }
  auto stream = api_.Watch(api::ResourceOf<corev1::Pod>(), "default", {});
  std::jthread mirrors([this](std::stop_token stop) { pods_.RunMirrors(stop); });
  pods_.Set("file", {Pod("1")});
  Await("mirror 1 web-n");
  EXPECT_EQ(api_.Get<corev1::Pod>("default", "web-n")->metadata().uid(), pod.metadata().uid());
  EXPECT_TRUE(api_.Get<corev1::Pod>("default", "other-n")) << "the other source may have it";
  pods_.Set("http", {});
  auto event = (*stream)->Next({});
  while (event && event->type != client::WatchEvent::Type::kDeleted) event = (*stream)->Next({});
  ASSERT_TRUE(event);
  corev1::Pod gone;
  ASSERT_TRUE(client::RestClient::DecodeInto(event->raw, gone));
  EXPECT_EQ(gone.metadata().name(), "other-n");
}

}  // namespace
}  // namespace keelson::kubelet
