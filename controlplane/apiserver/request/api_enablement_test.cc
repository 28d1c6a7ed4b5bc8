#include "controlplane/apiserver/request/api_enablement.h"

#include <gtest/gtest.h>

namespace keelson::apiserver {
namespace {

bool Serves(const ApiEnablement& enablement, std::string_view group, std::string_view version,
            std::string_view resource) {
  const api::ResourceInfo* row = api::FindResource(group, version, resource);
  EXPECT_TRUE(row) << resource;
  return row && enablement.Serves(*row);
}

TEST(ApiEnablement, FollowsRuntimeConfig) {
  struct Want {
    bool pods, deployments, jobs, pod_certificates, usage;
  };
  const struct {
    std::vector<std::string> settings;
    Want want;
  } cases[] = {
      {{}, {true, true, true, false, true}},
      {{"api/beta=true"}, {true, true, true, true, true}},
      {{"api/all=true"}, {true, true, true, true, true}},
      {{"api/alpha=true"}, {true, true, true, false, true}},
      {{"certificates.k8s.io/v1beta1=true"}, {true, true, true, true, true}},
      {{"certificates.k8s.io/v1beta1/podcertificaterequests=true"}, {true, true, true, true, true}},
      {{"certificates.k8s.io/v1beta1/clustertrustbundles=true"}, {true, true, true, false, true}},
      {{"certificates.k8s.io/v1beta1", "certificates.k8s.io/v1beta1/podcertificaterequests=false"},
       {true, true, true, false, true}},
      {{"api/ga=false", "apps/v1/deployments"}, {false, true, false, false, true}},
      {{"api/beta=true", "certificates.k8s.io/v1beta1=false"}, {true, true, true, false, true}},
      {{"api/all=false", "v1=true"}, {true, false, false, false, true}},
      {{"api/ga=false", "apps/v1=true"}, {false, true, false, false, true}},
      {{"api/ga=false", "api/v1"}, {true, false, false, false, true}},
      {{"apps/v1/deployments=false"}, {true, false, true, false, true}},
      {{"batch/v1=false"}, {true, true, false, false, true}},
      {{"batch/v1=false", "batch/v1=true"}, {true, true, true, false, true}},
      {{"resource.k8s.io/v1beta2=true"}, {true, true, true, false, true}},
  };
  for (const auto& c : cases) {
    auto enablement = ApiEnablement::Parse(c.settings);
    ASSERT_TRUE(enablement) << enablement.error().message();
    const std::string what = c.settings.empty() ? "none" : c.settings[0];
    EXPECT_EQ(Serves(*enablement, "", "v1", "pods"), c.want.pods) << what;
    EXPECT_EQ(Serves(*enablement, "", "v1", "pods/status"), c.want.pods) << what;
    EXPECT_EQ(Serves(*enablement, "apps", "v1", "deployments"), c.want.deployments) << what;
    EXPECT_EQ(Serves(*enablement, "apps", "v1", "deployments/scale"), c.want.deployments) << what;
    EXPECT_EQ(Serves(*enablement, "batch", "v1", "jobs"), c.want.jobs) << what;
    EXPECT_EQ(Serves(*enablement, "certificates.k8s.io", "v1beta1", "podcertificaterequests"),
              c.want.pod_certificates)
        << what;
    EXPECT_EQ(Serves(*enablement, "metrics.k8s.io", "v1beta1", "nodes"), c.want.usage) << what;
  }
}

TEST(ApiEnablement, KnowsStorageVersionMigrations) {
  const auto serves = [](const std::vector<std::string>& settings) {
    return Serves(ApiEnablement::Parse(settings).value(), "storagemigration.k8s.io", "v1beta1",
                  "storageversionmigrations");
  };
  EXPECT_FALSE(serves({}));
  EXPECT_TRUE(serves({"storagemigration.k8s.io/v1beta1=true"}));
  EXPECT_TRUE(serves({"api/beta=true"}));
  EXPECT_FALSE(serves({"storagemigration.k8s.io/v1alpha1=true"}));
}

TEST(ApiEnablement, RefusesWhatMakesNoSense) {
  const struct {
    const char *setting, *error;
  } cases[] = {
      {"api/all=false", "invalid key with only api/all=false"},
      {"api/all", "invalid value api/all="},
      {"api/beta=perhaps", "invalid value api/beta=perhaps"},
      {"apps/v1=perhaps",
       "invalid value of apps/v1: perhaps, err: strconv.ParseBool: parsing \"perhaps\": invalid syntax"},
      {"apps/v1/Deployments=true",
       "invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not "
       "\"Deployments\""},
      {"apps=true", "runtime-config invalid key apps"},
      {"a/b/c/d=true", "runtime-config invalid key a/b/c/d"},
      {"example.com/v1=true", "unknown api groups example.com"},
      {"apps/v7=true", "group version apps/v7 that has not been registered"},
  };
  for (const auto& c : cases) {
    auto enablement = ApiEnablement::Parse({c.setting});
    ASSERT_FALSE(enablement) << c.setting;
    EXPECT_EQ(enablement.error().message(), c.error);
  }
}

}  // namespace
}  // namespace keelson::apiserver
