// Compares the API server's metrics with those of kube-apiserver 1.36. Missing ones are listed with the
// reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "controlplane/apiserver/authn/oidc.h"
#include "controlplane/apiserver/authn/webhook_tokens.h"
#include "controlplane/apiserver/authz/authorizer.h"
#include "controlplane/apiserver/authz/counting.h"
#include "controlplane/apiserver/authz/webhook.h"
#include "controlplane/apiserver/endpoints/request_metrics.h"
#include "controlplane/apiserver/flowcontrol/meters.h"
#include "controlplane/apiserver/server.h"
#include "controlplane/apiserver/testing/absent_metrics.h"
#include "lib/base/build_info.h"
#include "lib/base/file.h"
#include "lib/client/transport.h"
#include "lib/client/workqueue.h"
#include "lib/http/server/file_reloader.h"
#include "lib/k8s/feature_gates.h"
#include "lib/k8s/schema/rule_metrics.h"
#include "lib/metrics/conformance.h"

namespace keelson::apiserver {
namespace {

TEST(Metrics, AreThoseOfKubernetes) {
  // Linked, and with it all that the server is made of, whose families are there from the start.
  [[maybe_unused]] auto volatile server = &ApiServer::Run;
  [[maybe_unused]] auto volatile handle = &ApiServer::Handle;
  [[maybe_unused]] auto volatile oidc = &NewOidcVerifier;
  [[maybe_unused]] auto volatile tokens = &NewWebhookTokenVerifier;
  [[maybe_unused]] auto volatile webhook = &NewWebhookAuthorizer;
  [[maybe_unused]] auto volatile transport = &client::NewHttpTransport;
  const RequestMetrics requests;
  const flowcontrol::FlowMeters flow("level", "schema");
  const flowcontrol::LevelMeters level("level");
  flowcontrol::ObserveReadsAndWrites(0, 0, 0, 0);
  const client::WorkQueue queue("autoregister");
  const CountingAuthorizer authorizer("RBAC", "rbac", nullptr);
  TellBuild();
  k8s::TellFeatureGates({}, k8s::Program::kApiServer);
  k8s::RegisterRuleMetrics();
  char dir[] = "/tmp/apiserver-metrics-XXXXXX";
  ASSERT_NE(::mkdtemp(dir), nullptr);
  const std::string file = std::string(dir) + "/config";
  http::FileReloader files;
  ASSERT_TRUE(WriteFile(file, "one"));
  for (const char* name : {"authentication_config_controller", "authorization_config_controller"}) {
    files.Add({name, {file}, [] { return Result<>(); }, name});
  }
  ASSERT_TRUE(WriteFile(file, "two"));
  files.Check();
  (void)metrics::Print();

  EXPECT_THAT(metrics::Differences({metrics::Component::kApiserver, "", kAbsentMetrics}, metrics::Describe()),
              testing::IsEmpty());
}

}  // namespace
}  // namespace keelson::apiserver
