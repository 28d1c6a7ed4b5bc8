#include "lib/client/discovered_informers.h"

#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/base/mutex.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::client {
namespace {

using Names = std::set<std::string>;

// Time is real, because workers and discovery wait for events of each other; no test waits for time to pass.
class DiscoveredInformersTest : public ::testing::Test {
 protected:
  ~DiscoveredInformersTest() override {
    run_ = std::jthread();
    factory_ = std::jthread();
  }

  void Start() {
    informers_.AddHandler(
        [this](const api::ResourceInfo& info, const DiscoveredInformers::ObjectChange& change) {
          MutexLock lock(mutex_);
          const std::string name = std::string(info.resource) + ":" + change.key;
          if (change.new_object) {
            present_.insert(name);
          } else {
            present_.erase(name);
          }
          log_.push_back((change.new_object ? "+" : "-") + name + "@" + std::string(info.version));
          changed_.notify_all();
        });
    informers_.AddDiscoveryHandler([this] {
      MutexLock lock(mutex_);
      ++discoveries_;
      changed_.notify_all();
    });
    factory_ = std::jthread([this](std::stop_token stop) { (void)builtin_.Run(stop, [] {}); });
    run_ = std::jthread([this](std::stop_token stop) {
      (void)informers_.Run(stop, [this] {
        MutexLock lock(mutex_);
        ready_ = true;
        changed_.notify_all();
      });
    });
    MutexLock lock(mutex_);
    while (!ready_) changed_.wait(mutex_);
  }
  // Waits until these objects are known, and no others.
  void Await(const Names& names) {
    MutexLock lock(mutex_);
    while (present_ != names) changed_.wait(mutex_);
  }
  void AwaitDiscoveries(int count) {
    MutexLock lock(mutex_);
    while (discoveries_ < count) changed_.wait(mutex_);
  }
  std::vector<std::string> TakeLog() {
    MutexLock lock(mutex_);
    return std::exchange(log_, {});
  }

  // A definition as such does nothing in the fake: its change makes the informers look.
  void ChangeDefinition(const std::string& name) {
    api::apiextensions::v1::CustomResourceDefinition crd;
    crd.mutable_metadata()->set_name(name);
    (void)fake_->Put(crd);
  }
  void Put(const std::string& resource, const std::string& name, const std::string& ns = "default") {
    metav1::ObjectMeta meta;
    meta.set_name(name);
    meta.set_namespace_(ns);
    (void)fake_->PutCustom("example.com", resource, meta);
  }

  std::shared_ptr<FakeApi> fake_ = std::make_shared<FakeApi>();
  RestClient api_{fake_};
  InformerFactory builtin_{api_};
  DiscoveredInformers informers_{api_, builtin_};
  Mutex mutex_;
  CondVar changed_;
  bool ready_ KEELSON_GUARDED_BY(mutex_) = false;
  int discoveries_ KEELSON_GUARDED_BY(mutex_) = 0;
  Names present_ KEELSON_GUARDED_BY(mutex_);
  std::vector<std::string> log_ KEELSON_GUARDED_BY(mutex_);
  std::jthread factory_, run_;
};

TEST_F(DiscoveredInformersTest, FollowsWhatIsThereAtTheStart) {
  fake_->Serve({"example.com", "widgets", "Widget", true, {"v1"}});
  Put("widgets", "a");
  Start();
  EXPECT_TRUE(informers_.settled());
  Await({"widgets:default/a"});
  Put("widgets", "b", "other");
  Await({"widgets:default/a", "widgets:other/b"});
  EXPECT_EQ(**informers_.CountIn("widgets.example.com", "other"), 1u);
  EXPECT_EQ(**informers_.CountIn("widgets.example.com", "empty"), 0u);
  EXPECT_FALSE(informers_.CountIn("gadgets.example.com", "other")->has_value());
  ASSERT_TRUE(
      api_.DeleteObject(*informers_.discovered()->FindKind("example.com", "v1", "Widget"), "other", "b", {}));
  Await({"widgets:default/a"});
}

TEST_F(DiscoveredInformersTest, ResourcesComeAndGo) {
  Start();
  EXPECT_EQ(informers_.size(), 0u);
  fake_->Serve({"example.com", "widgets", "Widget", true, {"v1"}});
  Put("widgets", "a");
  ChangeDefinition("widgets.example.com");
  Await({"widgets:default/a"});
  // Its objects go with it, and the watch ends.
  fake_->Serve({"example.com", "widgets", "Widget", true, {}});
  ChangeDefinition("widgets.example.com");
  AwaitDiscoveries(3);
  Await({});
  // Back as another kind: cluster-scoped.
  fake_->Serve({"example.com", "widgets", "Widget", false, {"v1"}});
  Put("widgets", "c", "");
  ChangeDefinition("widgets.example.com");
  Await({"widgets:c"});
}

TEST_F(DiscoveredInformersTest, AResourceThatIsNotFoundIsDiscoveredAgain) {
  fake_->Serve({"example.com", "widgets", "Widget", true, {"v1"}});
  Put("widgets", "a");
  Start();
  Put("widgets", "b");
  Await({"widgets:default/a", "widgets:default/b"});
  // The server forgets it without a change of a definition.
  fake_->SetInterceptor([](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
    if (request.target.find("/widgets") != std::string::npos) {
      return Result<ApiResponse>(
          FakeApi::Refuse(Error(Code::kNotFound, "the server could not find the requested resource")));
    }
    if (request.target != "/apis") return std::nullopt;
    return Result<ApiResponse>(ApiResponse{
        200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        R"({"items":[{"metadata":{"name":"a.io"},"versions":[{"version":"v1","resources":[{"resource":"as"}]}]}]})"});
  });
  fake_->EndWatches();
  Await({});
  EXPECT_FALSE(informers_.CountIn("widgets.example.com", "default")->has_value());
}

TEST_F(DiscoveredInformersTest, AnotherPreferredVersionDeliversAllAgain) {
  fake_->Serve({"example.com", "widgets", "Widget", true, {"v1"}});
  Put("widgets", "a");
  Start();
  Await({"widgets:default/a"});
  TakeLog();
  fake_->Serve({"example.com", "widgets", "Widget", true, {"v2", "v1"}});
  ChangeDefinition("widgets.example.com");
  AwaitDiscoveries(2);
  Put("widgets", "b");
  Await({"widgets:default/a", "widgets:default/b"});
  EXPECT_THAT(TakeLog(), ::testing::UnorderedElementsAre("+widgets:default/a@v2", "+widgets:default/b@v2"));
}

TEST_F(DiscoveredInformersTest, AFailingListHoldsNobodyUp) {
  fake_->Serve({"example.com", "widgets", "Widget", true, {"v1"}});
  fake_->Serve({"example.com", "gadgets", "Gadget", true, {"v1"}});
  Put("gadgets", "g");
  fake_->SetInterceptor([](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
    if (request.target.find("/widgets") == std::string::npos) return std::nullopt;
    return Result<ApiResponse>(FakeApi::Refuse(Error(Code::kInternal, "conversion webhook failed")));
  });
  Start();
  EXPECT_TRUE(informers_.settled());
  Await({"gadgets:default/g"});
  EXPECT_TRUE(informers_.CountIn("widgets.example.com", "default").error().Is(Code::kUnavailable));
}

TEST_F(DiscoveredInformersTest, AGroupWhoseDiscoveryFailsKeepsItsObjects) {
  fake_->Serve({"example.com", "widgets", "Widget", true, {"v1"}});
  Put("widgets", "a");
  Start();
  Await({"widgets:default/a"});
  fake_->SetInterceptor([](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
    if (request.target != "/apis") return std::nullopt;
    return Result<ApiResponse>(ApiResponse{
        200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        R"({"items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","freshness":"Stale"}]},
            {"metadata":{"name":"a.io"},"versions":[{"version":"v1","resources":[{"resource":"as"}]}]}]})"});
  });
  ChangeDefinition("widgets.example.com");
  AwaitDiscoveries(2);
  Put("widgets", "b");
  Await({"widgets:default/a", "widgets:default/b"});
  EXPECT_EQ(informers_.size(), 1u);
}

TEST_F(DiscoveredInformersTest, ManyResourcesNeedFewThreads) {
  constexpr int kMany = 300;
  for (int i = 0; i < kMany; ++i) {
    const std::string name = "kind" + std::to_string(i) + "s";
    fake_->Serve({"example.com", name, "Kind" + std::to_string(i), true, {"v1"}});
    Put(name, "x");
  }
  Mutex mutex;
  std::set<std::thread::id> threads;
  informers_.AddHandler([&](const api::ResourceInfo&, const DiscoveredInformers::ObjectChange&) {
    MutexLock lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  Start();
  EXPECT_EQ(informers_.size(), static_cast<size_t>(kMany));
  Put("kind7s", "y");
  Put("kind299s", "y");
  {
    MutexLock lock(mutex_);
    while (present_.size() != kMany + 2u) changed_.wait(mutex_);
  }
  MutexLock lock(mutex);
  EXPECT_LE(threads.size(), 4u);
}

}  // namespace
}  // namespace keelson::client
