#include "lib/client/informer.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::client {
namespace {

using namespace std::chrono_literals;

corev1::Pod NewPod(const std::string& name, const std::string& node = "") {
  corev1::Pod pod;
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->set_namespace_("default");
  if (!node.empty()) pod.mutable_spec()->set_node_name(node);
  return pod;
}

class InformerTest : public ::testing::Test {
 protected:
  ~InformerTest() override { Stop(); }

  void Start() {
    pods_.AddHandler([this](const Change<corev1::Pod>& change) {
      std::string what = !change.new_object ? "-" : !change.old_object ? "+" : "~";
      MutexLock lock(mutex_);
      changes_.push_back(what + change.key);
    });
    runner_ = std::jthread([this](std::stop_token stop) {
      (void)informers_.Run(stop, [this] {
        MutexLock lock(mutex_);
        ready_ = true;
        ready_changed_.notify_all();
      });
    });
    MutexLock lock(mutex_);
    while (!ready_) ready_changed_.wait(mutex_);
  }
  void Stop() { runner_ = std::jthread(); }

  // What the handlers have received since the last call.
  std::vector<std::string> Changes() {
    fake_->AwaitIdle(1);
    MutexLock lock(mutex_);
    return std::exchange(changes_, {});
  }
  // The informer waits before it reconnects: advances the clock, as often as needed, until `done`.
  void PassTimeUntil(const std::function<bool()>& done) {
    while (!done()) {
      clock_.Advance(31s);
      std::this_thread::yield();
    }
  }
  size_t ChangesSoFar() {
    MutexLock lock(mutex_);
    return changes_.size();
  }

  // The pods "changes", "goes" and "comes" do so while the connection is down, and the server forgets the
  // events.
  void ChangeUnseen() {
    auto away = std::make_shared<std::atomic<bool>>(true);
    fake_->SetInterceptor([away](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
      if (*away && request.method == "GET") return Result<ApiResponse>(Error(Code::kUnavailable, "away"));
      return std::nullopt;
    });
    fake_->EndWatches();
    corev1::Pod changed = NewPod("changes");
    changed.mutable_status()->set_phase("Running");
    fake_->Put(changed);
    ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "goes"));
    ASSERT_TRUE(api_.Create(NewPod("comes")));
    fake_->Compact();
    clock_.AwaitWaiters(1);
    *away = false;
    PassTimeUntil([this] { return ChangesSoFar() == 3; });
    fake_->SetInterceptor(nullptr);
  }

  using Names = std::vector<std::string>;
  FakeClock clock_;
  std::shared_ptr<FakeApi> fake_ = std::make_shared<FakeApi>(clock_);
  RestClient api_{fake_};
  InformerFactory informers_{api_, clock_};
  Informer<corev1::Pod>& pods_ = informers_.Get<corev1::Pod>();
  Mutex mutex_;
  CondVar ready_changed_;
  bool ready_ = false;
  std::vector<std::string> changes_;
  std::jthread runner_;
};

TEST_F(InformerTest, ListsThenFollows) {
  ASSERT_TRUE(api_.Create(NewPod("a")));
  Start();
  EXPECT_TRUE(pods_.synced());
  EXPECT_EQ(Changes(), Names{"+default/a"});
  auto b = api_.Create(NewPod("b"));
  ASSERT_TRUE(b);
  (*b->mutable_metadata()->mutable_labels())["x"] = "y";
  ASSERT_TRUE(api_.Update(*b));
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "a"));
  EXPECT_EQ(Changes(), (Names{"+default/b", "~default/b", "-default/a"}));
  EXPECT_EQ(pods_.Keys(), Names{"default/b"});
  ASSERT_TRUE(pods_.Get("default", "b"));
  EXPECT_EQ(pods_.Get("default/b")->metadata().labels().at("x"), "y");
  EXPECT_EQ(pods_.Get("default", "a"), nullptr);
  EXPECT_EQ(pods_.List().size(), 1u);
}

TEST_F(InformerTest, DecodedObjectsAreShared) {
  ASSERT_TRUE(api_.Create(NewPod("a")));
  Start();
  Changes();
  auto one = pods_.Get("default", "a"), two = pods_.Get("default", "a");
  EXPECT_EQ(one.get(), two.get());
}

TEST_F(InformerTest, IndexesFollowTheObjects) {
  pods_.AddIndex("node", [](const corev1::Pod& pod) { return std::vector{pod.spec().node_name()}; });
  ASSERT_TRUE(api_.Create(NewPod("a", "n1")));
  ASSERT_TRUE(api_.Create(NewPod("b")));
  Start();
  Changes();
  EXPECT_EQ(pods_.ByIndex("node", "n1").size(), 1u);
  EXPECT_EQ(pods_.ByIndex("node", "").size(), 1u);
  corev1::Binding binding;
  binding.mutable_metadata()->set_name("b");
  binding.mutable_target()->set_name("n1");
  ASSERT_TRUE(api_.CreateSub(api::ResourceOf<corev1::Pod>(), "default", "b", "binding", binding, nullptr));
  Changes();
  EXPECT_EQ(pods_.ByIndex("node", "n1").size(), 2u);
  EXPECT_TRUE(pods_.ByIndex("node", "").empty());
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "a", {.grace_period_seconds = 0}));
  Changes();
  EXPECT_EQ(pods_.ByIndex("node", "n1").size(), 1u);
  EXPECT_TRUE(pods_.ByIndex("none", "n1").empty());
}

TEST_F(InformerTest, ResumesWhereTheStreamEnded) {
  ASSERT_TRUE(api_.Create(NewPod("a")));
  Start();
  Changes();
  ASSERT_TRUE(api_.Create(NewPod("b")));
  Changes();
  fake_->ForgetRequests();
  fake_->EndWatches();
  ASSERT_TRUE(api_.Create(NewPod("c")));
  PassTimeUntil([this] { return ChangesSoFar() == 1; });
  EXPECT_EQ(Changes(), Names{"+default/c"});
  for (const std::string& request : fake_->Requests()) {
    if (request.rfind("GET", 0) == 0) {
      EXPECT_NE(request.find("watch=true"), std::string::npos) << request;
    }
  }
}

TEST_F(InformerTest, ListsAgainWhenTooOldAndReportsTheDifference) {
  for (const char* name : {"stays", "changes", "goes"}) ASSERT_TRUE(api_.Create(NewPod(name)));
  Start();
  Changes();
  ChangeUnseen();
  EXPECT_EQ(Changes(), (Names{"~default/changes", "+default/comes", "-default/goes"}));
}

TEST_F(InformerTest, TellsAllThoughItKeepsNoObjects) {
  pods_.KeepNoObjects();
  for (const char* name : {"stays", "changes", "goes"}) ASSERT_TRUE(api_.Create(NewPod(name)));
  Start();
  EXPECT_EQ(Changes(), (Names{"+default/changes", "+default/goes", "+default/stays"}));
  EXPECT_EQ(pods_.Get("default", "stays"), nullptr);
  EXPECT_EQ(pods_.size(), 0u);
  ChangeUnseen();
  EXPECT_EQ(Changes(), (Names{"+default/changes", "+default/comes", "-default/goes"}));
  ASSERT_TRUE(api_.Delete<corev1::Pod>("default", "stays"));
  EXPECT_EQ(Changes(), Names{"-default/stays"});
}

TEST_F(InformerTest, BookmarksMoveTheResumePoint) {
  ASSERT_TRUE(api_.Create(NewPod("a")));
  Start();
  Changes();
  corev1::Node node;
  node.mutable_metadata()->set_name("unrelated");
  ASSERT_TRUE(api_.Create(node));
  Changes();
  fake_->SendBookmarks();
  Changes();
  fake_->Compact();
  fake_->ForgetRequests();
  fake_->EndWatches();
  ASSERT_TRUE(api_.Create(NewPod("b")));
  PassTimeUntil([this] { return ChangesSoFar() == 1; });
  EXPECT_EQ(Changes(), Names{"+default/b"});
  for (const std::string& request : fake_->Requests()) {
    if (request.rfind("GET", 0) == 0) {
      EXPECT_NE(request.find("watch=true"), std::string::npos) << request;
    }
  }
}

TEST_F(InformerTest, StartsWhenTheServerComes) {
  // The informer uses it until the fixture is gone, so longer than this function runs.
  auto refusals = std::make_shared<std::atomic<int>>(2);
  fake_->SetInterceptor([refusals](const ApiRequest&) -> std::optional<Result<ApiResponse>> {
    if ((*refusals)-- > 0) return Result<ApiResponse>(Error(Code::kUnavailable, "not yet"));
    return std::nullopt;
  });
  std::jthread time([this] { PassTimeUntil([this] { return pods_.synced(); }); });
  Start();
  EXPECT_TRUE(pods_.synced());
}

TEST(MetadataInformerTest, KeepsMetadataAlone) {
  auto fake = std::make_shared<FakeApi>();
  RestClient api(fake);
  corev1::Pod pod = NewPod("a", "n1");
  (*pod.mutable_metadata()->mutable_labels())["app"] = "web";
  ASSERT_TRUE(api.Create(pod));
  InformerFactory informers(api);
  auto& metadata = informers.GetMetadata(api::ResourceOf<corev1::Pod>());
  EXPECT_EQ(&metadata, &informers.GetMetadata(api::ResourceOf<corev1::Pod>()));
  std::jthread runner([&](std::stop_token stop) { (void)informers.Run(stop, {}); });
  fake->AwaitIdle(1);
  ASSERT_TRUE(metadata.Get("default/a"));
  EXPECT_EQ(metadata.Get("default/a")->metadata().labels().at("app"), "web");
  ASSERT_TRUE(api.Delete<corev1::Pod>("default", "a", {.grace_period_seconds = 0}));
  fake->AwaitIdle(1);
  EXPECT_EQ(metadata.size(), 0u);
}

TEST(InformerFactoryTest, SharesByTypeAndSelection) {
  InformerFactory informers(RestClient(std::make_shared<FakeApi>()));
  EXPECT_EQ(&informers.Get<corev1::Pod>(), &informers.Get<corev1::Pod>());
  EXPECT_NE(&informers.Get<corev1::Pod>(),
            &informers.Get<corev1::Pod>({.field_selector = "spec.nodeName=a"}));
  EXPECT_NE(&informers.Get<corev1::Pod>(), &informers.Get<corev1::Pod>({}, "kube-system"));
  EXPECT_EQ(informers.size(), 3u);
}

// A server need not serve beta resources; others that wait for informers continue.
TEST(InformerFactoryTest, KindsOfBetaNeedNotBeServed) {
  using Request = api::certificates::v1beta1::PodCertificateRequest;
  FakeClock clock;
  auto fake = std::make_shared<FakeApi>(clock);
  auto served = std::make_shared<std::atomic<bool>>(false);
  fake->SetInterceptor([served](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
    if (*served || request.target.find("podcertificaterequests") == std::string::npos) return std::nullopt;
    return FakeApi::Refuse(Error(Code::kNotFound, "404 page not found"));
  });
  RestClient api(fake);
  InformerFactory informers(api, clock);
  auto& requests = informers.Get<Request>();
  Mutex mutex;
  CondVar changed;
  bool ready = false;
  std::jthread runner([&](std::stop_token stop) {
    (void)informers.Run(stop, [&] {
      MutexLock lock(mutex);
      ready = true;
      changed.notify_all();
    });
  });
  {
    MutexLock lock(mutex);
    while (!ready) changed.wait(mutex);
  }
  EXPECT_TRUE(requests.synced());
  Request request;
  request.mutable_metadata()->set_name("r");
  request.mutable_metadata()->set_namespace_("default");
  ASSERT_TRUE(api.Create(request).error().Is(Code::kNotFound));
  *served = true;
  ASSERT_TRUE(api.Create(request));
  while (requests.size() == 0) {
    clock.Advance(31s);
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace keelson::client
