#include "kubelet/objects/trust_bundles.h"

#include <gtest/gtest.h>

#include "lib/client/testing/fake_api.h"

namespace keelson::kubelet {
namespace {

class TrustBundlesTest : public ::testing::Test {
 protected:
  TrustBundlesTest() {
    api_->SetInterceptor(
        [this](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
          asked_.push_back(request.target);
          auto it = answers_.find(request.target);
          if (it == answers_.end()) {
            return Result<client::ApiResponse>(client::ApiResponse{
                404, "application/json", R"({"kind":"Status","message":"gone","reason":"NotFound"})"});
          }
          return Result<client::ApiResponse>(client::ApiResponse{200, "application/json", it->second});
        });
  }
  std::shared_ptr<client::FakeApi> api_ = std::make_shared<client::FakeApi>();
  std::map<std::string, std::string> answers_;
  std::vector<std::string> asked_;
  TrustBundles bundles_{client::RestClient(api_)};
};

TEST_F(TrustBundlesTest, TheNewestServedVersionIsAsked) {
  answers_["/apis/certificates.k8s.io/v1"] = R"({"resources":[{"name":"certificatesigningrequests"}]})";
  answers_["/apis/certificates.k8s.io/v1beta1"] = R"({"resources":[{"name":"clustertrustbundles"}]})";
  const std::string list = "/apis/certificates.k8s.io/v1beta1/clustertrustbundles";
  answers_[list] =
      R"({"items":[{"metadata":{"name":"a","labels":{"k":"v"}},"spec":{"signerName":"s","trustBundle":"x"}},
                               {"metadata":{"name":"b"},"spec":{"trustBundle":"y"}}]})";
  answers_[list + "/b"] = R"({"metadata":{"name":"b"},"spec":{"trustBundle":"y"}})";
  auto all = bundles_.Get("");
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ(all->front().signer_name, "s");
  EXPECT_EQ(all->front().labels.at("k"), "v");
  asked_.clear();
  auto one = bundles_.Get("b");
  ASSERT_TRUE(one) << one.error().message();
  EXPECT_EQ(one->front().pem, "y");
  EXPECT_EQ(asked_, std::vector<std::string>{list + "/b"}) << "the version is known by now";
  EXPECT_TRUE(bundles_.Get("c").error().Is(Code::kNotFound));
}

TEST_F(TrustBundlesTest, WhereThereAreNone) {
  auto none = bundles_.Get("a");
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().Is(Code::kUnimplemented));
  EXPECT_EQ(none.error().message(), "ClusterTrustBundle projection is not supported in static kubelet mode");
}

}  // namespace
}  // namespace keelson::kubelet
