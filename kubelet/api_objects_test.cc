#include "kubelet/api_objects.h"

#include <gtest/gtest.h>

#include <atomic>

#include "lib/client/fake_api.h"

namespace keelson::kubelet {
namespace {

class ApiObjectsTest : public ::testing::Test {
 protected:
  ApiObjectsTest() {
    for (const char* name : {"changes", "stays"}) {
      corev1::ConfigMap map;
      corev1::Secret secret;
      for (metav1::ObjectMeta* meta : {map.mutable_metadata(), secret.mutable_metadata()}) {
        meta->set_name(name);
        meta->set_namespace_("default");
      }
      (*map.mutable_data())["word"] = (*secret.mutable_data())["word"] = "old";
      const bool immutable = std::string(name) == "stays";
      map.set_immutable(immutable);
      secret.set_immutable(immutable);
      EXPECT_TRUE(api_.Create(map) && api_.Create(secret));
    }
    fake_->SetInterceptor(
        [this](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
          if (request.method == "GET") ++reads_;
          if (away_) return Result<client::ApiResponse>(Error(Code::kUnavailable, "connection refused"));
          return std::nullopt;
        });
  }
  std::string Word(const std::string& kind, const std::string& name) {
    if (kind == "ConfigMap") {
      auto map = objects_.GetConfigMap("default", name);
      return map ? (*map)->data().at("word") : map.error().message();
    }
    auto secret = objects_.GetSecret("default", name);
    return secret ? (*secret)->data().at("word") : secret.error().message();
  }

  FakeClock clock_;
  std::shared_ptr<client::FakeApi> fake_ = std::make_shared<client::FakeApi>();
  client::RestClient api_{fake_};
  client::Informer<corev1::Service> services_{api_, api::ResourceOf<corev1::Service>(), {}, ""};
  ApiObjects objects_{api_, services_, clock_};
  std::atomic<int> reads_ = 0;
  std::atomic<bool> away_ = false;
};

TEST_F(ApiObjectsTest, WhatNeverChangesIsReadOnce) {
  for (const char* kind : {"ConfigMap", "Secret"}) {
    for (const auto& [name, reads] : {std::pair("changes", 3), std::pair("stays", 1)}) {
      SCOPED_TRACE(std::string(kind) + " " + name);
      reads_ = 0;
      EXPECT_EQ(Word(kind, name), "old");
      EXPECT_EQ(Word(kind, name), "old") << "a burst of pods reads it once";
      EXPECT_EQ(reads_, 1);
      for (int i = 0; i < 2; ++i) {
        clock_.Advance(std::chrono::minutes(1));
        EXPECT_EQ(Word(kind, name), "old");
      }
      EXPECT_EQ(reads_, reads);
    }
  }
}

TEST_F(ApiObjectsTest, AServerThatIsAwayIsNotAskedForEachPod) {
  EXPECT_EQ(Word("ConfigMap", "changes"), "old");
  away_ = true;
  reads_ = 0;
  clock_.Advance(std::chrono::seconds(2));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Word("ConfigMap", "changes"), "old");
  EXPECT_EQ(reads_, 1);
  EXPECT_NE(Word("Secret", "stays"), "old") << "never read";
  clock_.Advance(std::chrono::seconds(11));
  away_ = false;
  EXPECT_EQ(Word("Secret", "stays"), "old");
}

}  // namespace
}  // namespace keelson::kubelet
