#include "lib/client/testing/fake_api.h"

#include "lib/client/testing/api_conformance.h"

namespace keelson::client {
namespace {

INSTANTIATE_TEST_SUITE_P(Fake, ApiConformance,
                         ::testing::Values([] { return RestClient(std::make_shared<FakeApi>()); }));

TEST(FakeApiTest, PutKeepsTheStatus) {
  FakeApi fake;
  corev1::Node node;
  node.mutable_metadata()->set_name("n1");
  node.mutable_status()->set_phase("Running");
  corev1::Node stored = fake.Put(node);
  EXPECT_EQ(stored.status().phase(), "Running");
  EXPECT_FALSE(stored.metadata().uid().empty());
}

TEST(FakeApiTest, InterceptorAnswersInstead) {
  auto fake = std::make_shared<FakeApi>();
  RestClient api(fake);
  fake->SetInterceptor([](const ApiRequest& request) -> std::optional<Result<ApiResponse>> {
    if (request.method == "DELETE") return FakeApi::Refuse(Error(Code::kForbidden, "not you"));
    return std::nullopt;
  });
  Result<> deleted = api.Delete<corev1::Node>("", "n1");
  ASSERT_FALSE(deleted);
  EXPECT_EQ(deleted.error().code(), Code::kForbidden);
  EXPECT_EQ(deleted.error().message(), "not you");
  EXPECT_EQ(api.Get<corev1::Node>("", "n1").error().code(), Code::kNotFound);
  EXPECT_EQ(fake->Requests(), (std::vector<std::string>{"DELETE /api/v1/nodes/n1", "GET /api/v1/nodes/n1"}));
}

TEST(FakeApiTest, NamespacesAreFinalized) {
  RestClient api(std::make_shared<FakeApi>());
  corev1::Namespace ns;
  ns.mutable_metadata()->set_name("team");
  ASSERT_TRUE(api.Create(ns));
  ASSERT_TRUE(api.Delete<corev1::Namespace>("", "team"));
  auto going = api.Get<corev1::Namespace>("", "team");
  ASSERT_TRUE(going);
  EXPECT_EQ(going->status().phase(), "Terminating");
  going->mutable_spec()->clear_finalizers();
  ASSERT_TRUE(api.Update(*going, "finalize"));
  EXPECT_EQ(api.Get<corev1::Namespace>("", "team").error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace keelson::client
