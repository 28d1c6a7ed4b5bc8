#include "tests/fake_kubelet/fake_kubelets.h"

#include <thread>

#include <gtest/gtest.h>

#include "lib/api/meta.h"
#include "lib/client/testing/fake_api.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::fake_kubelet {
namespace {

using namespace std::chrono_literals;

class FakeKubeletsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Mutex mutex;
    CondVar changed;
    bool ready = false;
    runner_ = std::jthread([&, this](std::stop_token stop) {
      EXPECT_TRUE(kubelets_.Run(stop, [&] {
        MutexLock lock(mutex);
        ready = true;
        changed.notify_all();
      }));
    });
    MutexLock lock(mutex);
    while (!ready) changed.wait(mutex);
  }
  static Options Two() {
    Options options;
    options.nodes = 2;
    options.job_time = 5s;
    options.taint = "fake:NoSchedule";
    options.workers = 2;
    return options;
  }
  corev1::Pod Put(const std::string& name, const std::string& node, const char* restart = "Always") {
    corev1::Pod pod;
    pod.mutable_metadata()->set_namespace_("default");
    pod.mutable_metadata()->set_name(name);
    pod.mutable_metadata()->set_uid("uid-" + name);
    pod.mutable_metadata()->add_finalizers("test/kept");
    pod.mutable_spec()->set_node_name(node);
    pod.mutable_spec()->set_restart_policy(restart);
    pod.mutable_spec()->add_containers()->set_name("main");
    pod.mutable_spec()->add_init_containers()->set_name("first");
    return fake_->Put(pod);
  }
  corev1::Pod Get(const std::string& name) {
    auto pod = api_.Get<corev1::Pod>("default", name);
    return pod ? *pod : corev1::Pod();
  }
  // Polls until the condition holds: other threads do the work.
  template <typename Condition>
  void Await(const Condition& condition) {
    while (!condition()) std::this_thread::yield();
  }

  FakeClock clock_;
  std::shared_ptr<client::FakeApi> fake_ = std::make_shared<client::FakeApi>(clock_);
  client::RestClient api_{fake_};
  FakeKubelets kubelets_{api_, Two(), clock_};
  std::jthread runner_;
};

TEST_F(FakeKubeletsTest, NodesAreReadyAndKeepTheirLeases) {
  for (const std::string name : {"fake-0", "fake-1"}) {
    auto node = api_.Get<corev1::Node>("", name);
    ASSERT_TRUE(node);
    EXPECT_TRUE(k8s::IsReady(*node));
    EXPECT_EQ(node->metadata().labels().at("type"), "fake");
    EXPECT_EQ(node->status().allocatable().at("pods").string(), "100k");
    ASSERT_EQ(node->spec().taints_size(), 1);
    EXPECT_EQ(node->spec().taints(0).key(), "fake");
  }
  auto renewed = [&](const char* name) {
    auto lease = api_.Get<coordinationv1::Lease>("kube-node-lease", name);
    return lease ? lease->spec().renew_time().seconds() : 0;
  };
  const int64_t first = renewed("fake-1");
  ASSERT_NE(first, 0);
  kubelets_.Silence("fake-0", true);
  Await([&] {
    clock_.Advance(1s);  // other threads may also wait for the clock
    return renewed("fake-1") >= first + 10;
  });
  EXPECT_EQ(renewed("fake-0"), first);
}

TEST_F(FakeKubeletsTest, PodsRunAndGo) {
  Put("ours", "fake-1");
  Put("others", "real");
  Await([&] { return k8s::IsReady(Get("ours")); });
  const corev1::Pod ours = Get("ours");
  EXPECT_EQ(ours.status().phase(), "Running");
  EXPECT_EQ(ours.status().pod_ip(), "10.0.0.1");
  ASSERT_EQ(ours.status().container_statuses_size(), 1);
  EXPECT_TRUE(ours.status().container_statuses(0).ready());
  EXPECT_EQ(ours.status().init_container_statuses(0).state().terminated().reason(), "Completed");
  EXPECT_EQ(Get("others").status().phase(), "");
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "ours"));
  // Nothing is ever at work on a pod that is another's.
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "others"));
  auto removed = [&](const char* name) {
    const std::vector<std::string> requests = fake_->Requests();
    return std::count(requests.begin(), requests.end(),
                      std::string("DELETE /api/v1/namespaces/default/pods/") + name);
  };
  Await([&] { return removed("ours") >= 2; });
  EXPECT_EQ(removed("others"), 1);
}

TEST_F(FakeKubeletsTest, JobsEnd) {
  Put("once", "fake-0", "Never");
  Await([&] { return Get("once").status().phase() == "Running"; });
  const SteadyTime running = clock_.SteadyNow();
  Await([&] {
    clock_.Advance(1s);
    return Get("once").status().phase() == "Succeeded";
  });
  EXPECT_GE(clock_.SteadyNow() - running, 5s);
  const corev1::Pod once = Get("once");
  EXPECT_EQ(once.status().container_statuses(0).state().terminated().exit_code(), 0);
  EXPECT_FALSE(k8s::IsReady(once));
}

TEST_F(FakeKubeletsTest, ASilentNodeDoesNothingUntilItIsBack) {
  kubelets_.Silence("fake-0", true);
  Put("quiet", "fake-0");
  Put("loud", "fake-1");
  Await([&] { return k8s::IsReady(Get("loud")); });
  EXPECT_EQ(Get("quiet").status().phase(), "");
  kubelets_.Silence("fake-0", false);
  Await([&] { return k8s::IsReady(Get("quiet")); });
}

}  // namespace
}  // namespace keelson::fake_kubelet
