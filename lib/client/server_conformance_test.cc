// The conformance suite against a running API server: KEELSON_CONFORMANCE_KUBECONFIG=FILE. The
// end-to-end tests run it on their cluster.
#include <cstdlib>

#include "lib/client/testing/api_conformance.h"
#include "lib/client/transport.h"

namespace keelson::client {
namespace {

RestClient Connect() {
  const char* kubeconfig = std::getenv("KEELSON_CONFORMANCE_KUBECONFIG");
  if (!kubeconfig) throw std::runtime_error("KEELSON_CONFORMANCE_KUBECONFIG names no kubeconfig");
  Result<RestConfig> config = LoadKubeconfig(kubeconfig);
  if (!config) throw std::runtime_error(config.error().message());
  Result<std::shared_ptr<Transport>> transport = NewHttpTransport(*config);
  if (!transport) throw std::runtime_error(transport.error().message());
  return RestClient(*transport);
}

INSTANTIATE_TEST_SUITE_P(Server, ApiConformance, ::testing::Values(std::function<RestClient()>(Connect)));

}  // namespace
}  // namespace keelson::client
