#include "controlplane/apiserver/webhook/service_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "controlplane/apiserver/admission/testing/object_store.h"

namespace keelson::apiserver {
namespace {

using testing::ElementsAre;

std::string Service(const std::string& name, const std::string& spec) {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"ns"},"spec":)" + spec + "}";
}

std::string Slice(const std::string& name, const std::string& service, const std::string& rest) {
  return R"({"metadata":{"name":")" + name +
         R"(","namespace":"ns","labels":{"kubernetes.io/service-name":")" + service + R"("}},)" + rest + "}";
}

class ServiceResolverTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    store_ = new ObjectStore;
    auto service = [](const std::string& name, const std::string& spec) {
      store_->Put<corev1::Service>(Service(name, spec));
    };
    auto slice = [](const std::string& name, const std::string& of, const std::string& rest) {
      store_->Put<discoveryv1::EndpointSlice>(Slice(name, of, rest));
    };
    service("web", R"({"clusterIP":"10.96.0.7","type":"ClusterIP",
        "ports":[{"name":"https","port":443},{"name":"metrics","port":80}]})");
    slice("web-a", "web",
          R"("addressType":"IPv4","ports":[{"name":"https","port":8443},{"name":"metrics","port":9090}],
        "endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}},
                     {"addresses":["10.0.0.2"],"conditions":{"ready":false,"serving":true}},
                     {"addresses":["10.0.0.3"]}])");
    slice("web-b", "web", R"("addressType":"IPv6","ports":[{"name":"https","port":8444}],
        "endpoints":[{"addresses":["fd00::1","fd00::2"],"conditions":{"ready":true}}])");
    slice("web-c", "web", R"("addressType":"FQDN","ports":[{"name":"https","port":8445}],
        "endpoints":[{"addresses":["pod.example.com"]}])");
    slice("other", "web2", R"("addressType":"IPv4","ports":[{"name":"https","port":1}],
        "endpoints":[{"addresses":["10.0.0.9"]}])");
    service("headless", R"({"clusterIP":"None","type":"ClusterIP","ports":[{"port":443}]})");
    slice("headless-a", "headless", R"("addressType":"IPv4","ports":[{"port":8443}],
        "endpoints":[{"addresses":["10.0.1.1"]}])");
    service("empty", R"({"clusterIP":"10.96.0.8","type":"NodePort","ports":[{"port":443}]})");
    service("away", R"({"type":"ExternalName","externalName":"hooks.example.com"})");
    service("odd", R"({"type":"Odd","clusterIP":"10.96.0.9","ports":[{"port":443}]})");
  }
  static void TearDownTestSuite() { delete store_; }

  static std::string Resolve(const ServiceResolver& resolver, const std::string& name, int32_t port) {
    Result<std::string> found = resolver.Resolve("ns", name, port);
    return found ? *found : found.error().message();
  }

  static ObjectStore* store_;
};
ObjectStore* ServiceResolverTest::store_ = nullptr;

TEST_F(ServiceResolverTest, EveryReadyEndpointIsChosen) {
  const ServiceResolver resolver(store_->get());
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) seen.insert(Resolve(resolver, "web", 443));
  EXPECT_THAT(seen, ElementsAre("10.0.0.1:8443", "10.0.0.3:8443", "[fd00::1]:8444"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(resolver.Resolve("ns", "web", 443, "10.0.0.3:8443").value(), "10.0.0.3:8443");
  }
  // Not ready, and of another port.
  for (const char* lost : {"10.0.0.2:8443", "10.0.0.1:9090"}) {
    EXPECT_EQ(seen.count(resolver.Resolve("ns", "web", 443, lost).value()), 1u);
  }
}

TEST_F(ServiceResolverTest, ServicesOfAllTypes) {
  struct {
    const char* name;
    int32_t port;
    const char* endpoints;   // the result of kEndpoints
    const char* cluster_ip;  // of kClusterIp
  } cases[] = {
      {"headless", 443, "10.0.1.1:8443", "10.0.1.1:8443"},
      {"empty", 443, "no endpoints available for service \"empty\"", "10.96.0.8:443"},
      {"away", 8443, "hooks.example.com:8443", "hooks.example.com:8443"},
      {"odd", 443, "unsupported service type \"Odd\"", "unsupported service type \"Odd\""},
      {"absent", 443, "service \"absent\" not found", "service \"absent\" not found"},
      {"web", 444, "no service port 444 found for service \"web\"",
       "no service port 444 found for service \"web\""},
  };
  const ServiceResolver endpoints(store_->get());
  const ServiceResolver cluster_ip(store_->get(), ServiceResolver::Routing::kClusterIp);
  for (const auto& c : cases) {
    EXPECT_EQ(Resolve(endpoints, c.name, c.port), c.endpoints);
    EXPECT_EQ(Resolve(cluster_ip, c.name, c.port), c.cluster_ip);
  }
  EXPECT_EQ(Resolve(cluster_ip, "web", 443), "10.96.0.7:443");
}

}  // namespace
}  // namespace keelson::apiserver
