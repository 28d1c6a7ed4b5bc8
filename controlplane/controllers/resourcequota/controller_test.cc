#include "controlplane/controllers/resourcequota/controller.h"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/base/mutex.h"
#include "lib/client/transport.h"
#include "lib/k8s/pods/pod_resources.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

corev1::ResourceQuota QuotaNamed(const std::string& name, const std::map<std::string, std::string>& hard) {
  corev1::ResourceQuota quota;
  quota.mutable_metadata()->set_name(name);
  quota.mutable_metadata()->set_namespace_("default");
  for (const auto& [resource, amount] : hard) {
    (*quota.mutable_spec()->mutable_hard())[resource] = api::Amount::Parse(amount)->ToQuantity();
  }
  return quota;
}

class ResourceQuotaTest : public ::testing::Test {
 protected:
  void Start() {
    cluster_.Start();
    cluster_.Drain({&controller_});
  }
  std::string Used(const std::string& name) {
    const auto quota = cluster_.Get<corev1::ResourceQuota>("default", name);
    std::string text;
    for (const auto& [resource, amount] : k8s::ToResourceList(quota.status().used())) {
      text += (text.empty() ? "" : " ") + resource + "=" + amount.ToString();
    }
    return text;
  }
  void AddPod(const std::string& name, const std::string& cpu = "") {
    corev1::Pod pod = PodNamed(name);
    if (pod.spec().containers().empty()) pod.mutable_spec()->add_containers()->set_name("c");
    if (!cpu.empty()) {
      (*pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests())["cpu"] =
          api::Amount::Parse(cpu)->ToQuantity();
    }
    ASSERT_TRUE(cluster_.api.Create(pod));
  }

  TestCluster cluster_;
  ResourceQuotaController& controller_ = cluster_.Make<ResourceQuotaController>(cluster_.discovered());
};

TEST_F(ResourceQuotaTest, CountsCustomObjects) {
  const client::FakeApi::Custom widgets{"example.com", "widgets", "Widget", true, {"v1"}};
  const auto put = [&](const std::string& ns, const std::string& name) {
    metav1::ObjectMeta meta;
    meta.set_namespace_(ns);
    meta.set_name(name);
    cluster_.fake->PutCustom("example.com", "widgets", meta);
  };
  cluster_.ServeCustom(widgets);
  put("default", "a");
  put("default", "b");
  put("other", "c");
  ASSERT_TRUE(cluster_.api.Create(
      QuotaNamed("q", {{"count/widgets.example.com", "5"}, {"count/gadgets.example.com", "5"}})));
  Start();
  EXPECT_EQ(Used("q"), "count/widgets.example.com=2") << "there are no gadgets to count";
  const api::ResourceInfo& row = *cluster_.discovered().discovered()->FindKind("example.com", "v1", "Widget");
  ASSERT_TRUE(cluster_.api.DeleteObject(row, "default", "a", {}));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "count/widgets.example.com=1");
  cluster_.ServeCustom({"example.com", "gadgets", "Gadget", true, {"v1"}});
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "count/gadgets.example.com=0 count/widgets.example.com=1");
  EXPECT_TRUE(cluster_.errors.empty());
}

TEST_F(ResourceQuotaTest, CountsWhatIsThere) {
  AddPod("a", "100m");
  AddPod("b", "1");
  ASSERT_TRUE(cluster_.api.Create(QuotaNamed(
      "q", {{"pods", "5"}, {"requests.cpu", "2"}, {"count/deployments.apps", "3"}, {"secrets", "9"}})));
  ASSERT_TRUE(cluster_.api.Create(DeploymentNamed("d", 1)));
  Start();
  EXPECT_EQ(Used("q"), "count/deployments.apps=1 pods=2 requests.cpu=1100m secrets=0");
  EXPECT_EQ(cluster_.Get<corev1::ResourceQuota>("default", "q").status().hard().size(), 4U);
}

TEST_F(ResourceQuotaTest, GivesBackWhatGoes) {
  AddPod("a");
  AddPod("b");
  ASSERT_TRUE(cluster_.api.Create(QuotaNamed("q", {{"pods", "5"}, {"count/pods", "9"}})));
  Start();
  EXPECT_EQ(Used("q"), "count/pods=2 pods=2");
  corev1::Pod done = cluster_.Get<corev1::Pod>("default", "a");
  done.mutable_status()->set_phase("Succeeded");
  ASSERT_TRUE(cluster_.api.UpdateStatus(done));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "count/pods=2 pods=1");
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(cluster_.api.Delete<corev1::Pod>("default", "b", now));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "count/pods=1 pods=0");
}

TEST_F(ResourceQuotaTest, ScopesChoosePods) {
  AddPod("best");
  AddPod("burst", "1");
  corev1::ResourceQuota quota = QuotaNamed("q", {{"pods", "5"}});
  quota.mutable_spec()->add_scopes("BestEffort");
  ASSERT_TRUE(cluster_.api.Create(quota));
  Start();
  EXPECT_EQ(Used("q"), "pods=1");
}

TEST_F(ResourceQuotaTest, EveryScope) {
  AddPod("best");
  AddPod("burst", "1");
  corev1::Pod ending = PodNamed("ending");
  ending.mutable_spec()->set_active_deadline_seconds(60);
  ending.mutable_spec()->set_priority_class_name("high");
  ASSERT_TRUE(cluster_.api.Create(ending));
  corev1::Pod beside = PodNamed("beside");
  corev1::PodAffinityTerm& term = *beside.mutable_spec()
                                       ->mutable_affinity()
                                       ->mutable_pod_affinity()
                                       ->add_required_during_scheduling_ignored_during_execution();
  term.set_topology_key("zone");
  term.add_namespaces("other");
  ASSERT_TRUE(cluster_.api.Create(beside));
  for (const char* of_class : {"", "gold"}) {
    corev1::PersistentVolumeClaim claim;
    claim.mutable_metadata()->set_name(std::string("claim-") + of_class);
    claim.mutable_metadata()->set_namespace_("default");
    if (*of_class) claim.mutable_spec()->set_volume_attributes_class_name(of_class);
    ASSERT_TRUE(cluster_.api.Create(claim));
  }
  struct Case {
    const char *name, *resource, *scope, *op, *value, *used;
  };
  const Case cases[] = {
      {"terminating", "pods", "Terminating", "Exists", "", "pods=1"},
      {"not-terminating", "pods", "NotTerminating", "Exists", "", "pods=3"},
      {"best-effort", "pods", "BestEffort", "Exists", "", "pods=3"},
      {"not-best-effort", "pods", "NotBestEffort", "Exists", "", "pods=1"},
      {"priority", "pods", "PriorityClass", "In", "high", "pods=1"},
      {"other-priority", "pods", "PriorityClass", "NotIn", "high", "pods=3"},
      {"any-priority", "pods", "PriorityClass", "Exists", "", "pods=1"},
      {"no-priority", "pods", "PriorityClass", "DoesNotExist", "", "pods=3"},
      {"affinity", "pods", "CrossNamespacePodAffinity", "Exists", "", "pods=1"},
      {"class", "persistentvolumeclaims", "VolumeAttributesClass", "In", "gold", "persistentvolumeclaims=1"},
      {"no-class", "persistentvolumeclaims", "VolumeAttributesClass", "DoesNotExist", "",
       "persistentvolumeclaims=1"},
  };
  for (const Case& c : cases) {
    corev1::ResourceQuota quota = QuotaNamed(c.name, {{c.resource, "5"}});
    auto& scope = *quota.mutable_spec()->mutable_scope_selector()->add_match_expressions();
    scope.set_scope_name(c.scope);
    scope.set_operator_(c.op);
    if (*c.value) scope.add_values(c.value);
    ASSERT_TRUE(cluster_.api.Create(quota));
  }
  Start();
  for (const Case& c : cases) EXPECT_EQ(Used(c.name), c.used) << c.name;
}

TEST_F(ResourceQuotaTest, FollowsResizes) {
  AddPod("a", "1");
  ASSERT_TRUE(cluster_.api.Create(QuotaNamed("q", {{"requests.cpu", "5"}})));
  Start();
  EXPECT_EQ(Used("q"), "requests.cpu=1");
  corev1::Pod pod = cluster_.Get<corev1::Pod>("default", "a");
  auto& requests = *pod.mutable_spec()->mutable_containers(0)->mutable_resources()->mutable_requests();
  requests["cpu"] = api::Amount::Parse("250m")->ToQuantity();
  pod = cluster_.fake->Put(pod);
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "requests.cpu=250m");
}

TEST_F(ResourceQuotaTest, FollowsTheSpecAndLooksAgain) {
  ASSERT_TRUE(cluster_.api.Create(QuotaNamed("q", {{"pods", "5"}})));
  Start();
  corev1::ResourceQuota quota = cluster_.Get<corev1::ResourceQuota>("default", "q");
  *quota.mutable_spec() = QuotaNamed("q", {{"services", "2"}}).spec();
  ASSERT_TRUE(cluster_.api.Update(quota));
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "services=0");
  // Charged for a create that failed.
  quota = cluster_.Get<corev1::ResourceQuota>("default", "q");
  (*quota.mutable_status()->mutable_used())["services"] = api::Amount::FromInt(1).ToQuantity();
  ASSERT_TRUE(cluster_.api.UpdateStatus(quota));
  cluster_.Advance(6min, {&controller_});
  EXPECT_EQ(Used("q"), "services=0");
}

TEST_F(ResourceQuotaTest, ObjectsThatAreSeenLateOnlyRaise) {
  ASSERT_TRUE(cluster_.api.Create(QuotaNamed("q", {{"pods", "9"}, {"services", "9"}})));
  AddPod("first");
  Start();
  EXPECT_EQ(Used("q"), "pods=1 services=0");
  // Admission has charged two services that no informer knows yet.
  corev1::ResourceQuota quota = cluster_.Get<corev1::ResourceQuota>("default", "q");
  (*quota.mutable_status()->mutable_used())["services"] = api::Amount::FromInt(2).ToQuantity();
  ASSERT_TRUE(cluster_.api.UpdateStatus(quota));
  // Admission did not know the quota yet.
  AddPod("second");
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "pods=2 services=2");
  // By now it does: what comes has been charged.
  cluster_.clock.Advance(10s);
  AddPod("third");
  cluster_.Drain({&controller_});
  EXPECT_EQ(Used("q"), "pods=2 services=2");
  cluster_.Advance(6min, {&controller_});
  EXPECT_EQ(Used("q"), "pods=3 services=0");
}

TEST(ResourceQuotaSyncTest, ThePeriodIsASetting) {
  TestCluster cluster;
  auto& controller = cluster.Make<ResourceQuotaController>(cluster.discovered(), 1min);
  ASSERT_TRUE(cluster.api.Create(QuotaNamed("q", {{"services", "2"}})));
  cluster.Start();
  cluster.Drain({&controller});
  const auto used = [&] {
    return cluster.Get<corev1::ResourceQuota>("default", "q").status().used().at("services").string();
  };
  corev1::ResourceQuota quota = cluster.Get<corev1::ResourceQuota>("default", "q");
  (*quota.mutable_status()->mutable_used())["services"] = api::Amount::FromInt(1).ToQuantity();
  ASSERT_TRUE(cluster.api.UpdateStatus(quota));
  cluster.Advance(59s, {&controller});
  EXPECT_EQ(used(), "1");
  cluster.Advance(1s, {&controller});
  EXPECT_EQ(used(), "0");
}

// Holds back the events of watches of quotas' metadata until the test releases them.
class LateMetadata : public client::Transport {
 public:
  explicit LateMetadata(std::shared_ptr<Transport> inner) : inner_(std::move(inner)) {}
  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) override {
    return inner_->Do(request, timeout, stop);
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override {
    auto stream = inner_->Open(request, stop);
    const bool late = request.target.find("/resourcequotas") != std::string::npos &&
                      request.accept.find("as=PartialObjectMetadata") != std::string::npos;
    if (!stream || !late) return stream;
    return std::unique_ptr<client::ApiStream>(std::make_unique<Stream>(*this, std::move(*stream)));
  }
  void GoOn() {
    MutexLock lock(mutex_);
    go_ = true;
    changed_.notify_all();
  }

 private:
  struct Stream : client::ApiStream {
    Stream(LateMetadata& o, std::unique_ptr<ApiStream> i) : owner(o), inner(std::move(i)) {}
    Result<std::string> Read(std::stop_token stop, std::chrono::milliseconds idle) override {
      {
        MutexLock lock(owner.mutex_);
        const auto go = [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return owner.go_; };
        if (!owner.changed_.wait(owner.mutex_, stop, go)) return Error(Code::kCancelled, "stopped");
      }
      return inner->Read(stop, idle);
    }
    void OnReadable(std::function<void()> readable) override { inner->OnReadable(std::move(readable)); }
    LateMetadata& owner;
    std::unique_ptr<ApiStream> inner;
  };
  const std::shared_ptr<Transport> inner_;
  Mutex mutex_;
  CondVar changed_;
  bool go_ KEELSON_GUARDED_BY(mutex_) = false;
};

TEST(ResourceQuotaRaceTest, CountsWhatIsSeenAfterTheQuota) {
  FakeClock clock;
  const auto fake = std::make_shared<client::FakeApi>(clock);
  const auto late = std::make_shared<LateMetadata>(fake);
  client::RestClient api(late);
  client::InformerFactory informers(api, clock);
  client::EventRecorder events(api, "test", "", clock);
  client::DiscoveredInformers discovered(api, informers);
  ResourceQuotaController controller(api, informers, events, clock, discovered);
  std::latch ready(1), quota(1), metadata(1);
  informers.Get<corev1::ResourceQuota>().AddHandler([&](const auto& change) {
    if (!change.old_object) quota.count_down();
  });
  informers.GetMetadata(api::ResourceOf<corev1::ResourceQuota>()).AddHandler([&](const auto& change) {
    if (!change.old_object) metadata.count_down();
  });
  const std::jthread runner(
      [&](std::stop_token stop) { (void)informers.Run(stop, [&] { ready.count_down(); }); });
  ready.wait();
  const auto reconcile = [&] {
    const std::string key = *controller.queue().Get(std::stop_token());
    Result<Requeue> result = controller.Reconcile(key, std::stop_token());
    // The informer may not have seen the last write yet.
    for (; !result && result.error().Is(Code::kConflict); std::this_thread::yield()) {
      result = controller.Reconcile(key, std::stop_token());
    }
    EXPECT_TRUE(result);
    controller.queue().Done(key);
    auto stored = api.Get<corev1::ResourceQuota>("default", "q");
    return stored->status().used().at("resourcequotas").string();
  };
  ASSERT_TRUE(api.Create(QuotaNamed("q", {{"resourcequotas", "2"}})));
  quota.wait();
  EXPECT_EQ(reconcile(), "0") << "it is not known yet that it is there";
  late->GoOn();
  metadata.wait();
  ASSERT_EQ(controller.queue().size(), 1U);
  EXPECT_EQ(reconcile(), "1");
}

}  // namespace
}  // namespace keelson::controllers
