#include "kubelet/objects/api_object_source.h"

#include <gtest/gtest.h>

#include <atomic>

#include "lib/client/testing/fake_api.h"

namespace keelson::kubelet {
namespace {

class ApiObjectSourceTest : public ::testing::Test {
 protected:
  ApiObjectSourceTest() {
    corev1::ConfigMap map;
    corev1::Secret secret;
    corev1::ServiceAccount account;
    for (metav1::ObjectMeta* meta :
         {map.mutable_metadata(), secret.mutable_metadata(), account.mutable_metadata()}) {
      meta->set_name("some");
      meta->set_namespace_("default");
    }
    (*map.mutable_data())["word"] = (*secret.mutable_data())["word"] = "old";
    EXPECT_TRUE(api_.Create(map) && api_.Create(secret) && api_.Create(account));
    fake_->SetInterceptor([this](const client::ApiRequest&) -> std::optional<Result<client::ApiResponse>> {
      ++requests_;
      if (away_) return Result<client::ApiResponse>(Error(Code::kUnavailable, "connection refused"));
      return std::nullopt;
    });
  }
  void Use(const std::string& strategy) {
    objects_ = std::make_unique<ApiObjectSource>(api_, services_, ChangeDetection{strategy}, clock_);
  }
  std::string Word(const std::string& kind) {
    if (kind == "ConfigMap") {
      auto map = objects_->GetConfigMap("default", "some");
      return map ? (*map)->data().at("word") : map.error().message();
    }
    auto secret = objects_->GetSecret("default", "some");
    return secret ? (*secret)->data().at("word") : secret.error().message();
  }
  template <typename T>
  void Write(const std::string& word) {
    auto object = *api_.Get<T>("default", "some");
    (*object.mutable_data())["word"] = word;
    fake_->Put(object);
  }

  FakeClock clock_;
  std::shared_ptr<client::FakeApi> fake_ = std::make_shared<client::FakeApi>();
  client::RestClient api_{fake_};
  client::Informer<corev1::Service> services_{api_, api::ResourceOf<corev1::Service>(), {}, ""};
  std::unique_ptr<ApiObjectSource> objects_;
  std::atomic<int> requests_ = 0;
  std::atomic<bool> away_ = false;
};

TEST_F(ApiObjectSourceTest, ConfigMapsAndSecretsFollowTheStrategy) {
  struct Case {
    const char* strategy;
    int first, again;  // requests
    const char* after_a_change;
    const char* for_a_new_pod;
  } const cases[] = {
      {"Get", 1, 1, "new", "new"}, {"Cache", 1, 0, "old", "new"}, {"Watch", 2, 0, "new", "new"}};
  for (const Case& c : cases) {
    for (const char* kind : {"ConfigMap", "Secret"}) {
      SCOPED_TRACE(std::string(c.strategy) + " " + kind);
      Use(c.strategy);
      Write<corev1::ConfigMap>("old");
      Write<corev1::Secret>("old");
      requests_ = 0;
      EXPECT_EQ(Word(kind), "old");
      EXPECT_EQ(requests_, c.first);
      EXPECT_EQ(Word(kind), "old");
      EXPECT_EQ(requests_, c.first + c.again);
      Write<corev1::ConfigMap>("new");
      Write<corev1::Secret>("new");
      EXPECT_EQ(Word(kind), c.after_a_change);
      corev1::Pod pod;
      pod.mutable_metadata()->set_namespace_("default");
      pod.mutable_metadata()->set_uid("u");
      pod.mutable_spec()->add_image_pull_secrets()->set_name("some");
      pod.mutable_spec()
          ->add_volumes()
          ->mutable_volume_source()
          ->mutable_config_map()
          ->mutable_local_object_reference()
          ->set_name("some");
      objects_->SetPod(pod);
      EXPECT_EQ(Word(kind), c.for_a_new_pod);
    }
  }
}

TEST_F(ApiObjectSourceTest, AServerThatIsAwayIsNotAskedForEachPod) {
  Use("Watch");
  auto account = [this] { return objects_->GetServiceAccount("default", "some").has_value(); };
  EXPECT_TRUE(account());
  EXPECT_EQ(Word("ConfigMap"), "old");
  away_ = true;
  fake_->EndWatches();
  requests_ = 0;
  clock_.Advance(std::chrono::seconds(2));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(account() && Word("ConfigMap") == "old");
  EXPECT_EQ(requests_, 1) << "nor for each kind";
  EXPECT_NE(Word("Secret"), "old") << "never read";
  clock_.Advance(std::chrono::seconds(11));
  away_ = false;
  EXPECT_EQ(Word("Secret"), "old");
}

}  // namespace
}  // namespace keelson::kubelet
