// Runs every fixture as a separate test, on one API server with its own etcd.
#include <gtest/gtest.h>

#include "tests/api/lifecycle.h"

namespace keelson::apitest {
namespace {

class Fixtures : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    missing_ = apiserver::TestCluster::Missing();
    if (!missing_.empty()) return;
    // Without controllers only the test changes objects.
    cluster_ = std::make_unique<apiserver::TestCluster>(std::vector<std::string>{
        "--roles", "apiserver",
        "--runtime-config=certificates.k8s.io/v1beta1=true,storagemigration.k8s.io/v1beta1=true"});
    client_ = std::make_unique<ApiClient>(*cluster_);
  }
  static void TearDownTestSuite() {
    client_.reset();
    cluster_.reset();
  }

  static inline std::string missing_;
  static inline std::unique_ptr<apiserver::TestCluster> cluster_;
  static inline std::unique_ptr<ApiClient> client_;
};

TEST_P(Fixtures, Lifecycle) {
  if (!missing_.empty()) GTEST_SKIP() << missing_;
  Fixture fixture = LoadFixture(GetParam());
  Lifecycle(*client_, fixture).Run();
}

INSTANTIATE_TEST_SUITE_P(Api, Fixtures, testing::ValuesIn(FixtureFiles(KEELSON_FIXTURES)),
                         [](const testing::TestParamInfo<std::string>& file) {
                           return FixtureName(file.param);
                         });

// Every resource needs a fixture.
TEST(FixtureFiles, EachStoredResourceHasOne) {
  std::set<std::string> have;
  for (const std::string& file : FixtureFiles(KEELSON_FIXTURES)) {
    Fixture fixture = LoadFixture(file);
    have.insert(fixture.info->GroupResource());
  }
  std::string missing;
  for (const api::ResourceInfo& info : api::Resources()) {
    bool stored = !info.IsSubresource() && info.HasVerb("create") && info.HasVerb("list");
    if (stored && info.version == "v1" && !have.count(info.GroupResource())) {
      missing += " " + info.GroupResource();
    }
  }
  EXPECT_EQ(missing, "");
}

}  // namespace
}  // namespace keelson::apitest
