// The conformance suite against a running API server: KEELSON_CONFORMANCE_KUBECONFIG=FILE.
#include <cstdlib>

#include "lib/client/api_conformance.h"
#include "lib/client/transport.h"

namespace keelson::client {
namespace {

const char* Kubeconfig() { return std::getenv("KEELSON_CONFORMANCE_KUBECONFIG"); }

RestClient Connect() {
  Result<RestConfig> config = LoadKubeconfig(Kubeconfig());
  if (!config) throw std::runtime_error(config.error().message());
  Result<std::shared_ptr<Transport>> transport = NewHttpTransport(*config);
  if (!transport) throw std::runtime_error(transport.error().message());
  return RestClient(*transport);
}

INSTANTIATE_TEST_SUITE_P(Server, ApiConformance,
                         ::testing::ValuesIn(Kubeconfig() ? std::vector<std::function<RestClient()>>{Connect}
                                                          : std::vector<std::function<RestClient()>>{}));
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ApiConformance);

TEST(ServerConformanceTest, NeedsAServer) {
  if (!Kubeconfig())
    GTEST_SKIP() << "KEELSON_CONFORMANCE_KUBECONFIG names no kubeconfig of a running API server";
  Result<std::vector<corev1::Namespace>> namespaces = Connect().List<corev1::Namespace>();
  ASSERT_TRUE(namespaces) << namespaces.error().message();
  EXPECT_FALSE(namespaces->empty());
}

}  // namespace
}  // namespace keelson::client
