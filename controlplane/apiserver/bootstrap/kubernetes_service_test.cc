// The endpoints of the Service kubernetes, on a real etcd.
#include <gmock/gmock.h>

#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "controlplane/registry/testing/fixture.h"

namespace keelson::apiserver {
namespace {

using testing::ElementsAre;

class KubernetesServiceTest : public registry::RegistryTest {
 protected:
  static KubernetesServiceOptions At(const std::string& address) {
    return {"10.96.0.1", address, 6443, true};
  }
  void Ensure(const KubernetesServiceOptions& options) {
    const Result<> done = EnsureKubernetesService(**plane_, options, {});
    ASSERT_TRUE(done) << done.error().message();
  }
  void Withdraw(const KubernetesServiceOptions& options) {
    const Result<> done = WithdrawKubernetesEndpoint(**plane_, options);
    ASSERT_TRUE(done) << done.error().message();
  }
  std::vector<std::string> Addresses() {
    std::vector<std::string> out, in_slice;
    auto endpoints = Get<corev1::Endpoints>("kubernetes");
    EXPECT_TRUE(endpoints && endpoints->subsets_size() == 1);
    if (!endpoints || endpoints->subsets_size() == 0) return out;
    for (const auto& address : endpoints->subsets(0).addresses()) out.push_back(address.ip());
    auto slice = Get<discoveryv1::EndpointSlice>("kubernetes");
    EXPECT_TRUE(slice);
    if (!slice) return out;
    for (const auto& endpoint : slice->endpoints()) in_slice.push_back(endpoint.addresses(0));
    EXPECT_EQ(in_slice, out);
    return out;
  }
};

TEST_F(KubernetesServiceTest, NamesAllServersWithALease) {
  Ensure(At("192.0.2.11"));
  EXPECT_THAT(Addresses(), ElementsAre("192.0.2.11"));
  Ensure(At("192.0.2.10"));
  EXPECT_THAT(Addresses(), ElementsAre("192.0.2.10", "192.0.2.11"));
  Ensure(At("192.0.2.11"));  // once more
  EXPECT_THAT(Addresses(), ElementsAre("192.0.2.10", "192.0.2.11"));
  Withdraw(At("192.0.2.10"));
  EXPECT_THAT(Addresses(), ElementsAre("192.0.2.11"));
  Withdraw(At("192.0.2.11"));
  EXPECT_THAT(Addresses(), ElementsAre("192.0.2.11")) << "the last one stays";
}

TEST_F(KubernetesServiceTest, HasTheTypeAndPortsOfTheServerThatStartedLast) {
  KubernetesServiceOptions options = At("192.0.2.10");
  const auto look = [&](const char* type, int target, int node_port) {
    Ensure(options);
    const Result<> done = CorrectKubernetesService(**plane_, options, {});
    ASSERT_TRUE(done) << done.error().message();
    const auto service = Get<corev1::Service>("kubernetes");
    ASSERT_TRUE(service);
    EXPECT_EQ(service->spec().type(), type);
    EXPECT_EQ(service->spec().cluster_ip(), options.service_ip);
    ASSERT_EQ(service->spec().ports_size(), 1);
    EXPECT_EQ(service->spec().ports(0).target_port().int_val(), target);
    EXPECT_EQ(service->spec().ports(0).node_port(), node_port);
  };
  look("ClusterIP", 6443, 0);
  options.node_port = 30443;
  look("NodePort", 6443, 30443);
  look("NodePort", 6443, 30443);
  options.node_port = 30444;
  options.port = 8443;
  look("NodePort", 8443, 30444);
  options.node_port = 0;
  look("ClusterIP", 8443, 0);
}

TEST_F(KubernetesServiceTest, LeasesVanishWithTheirServer) {
  Ensure(At("192.0.2.10"));
  auto found = plane_->client().Range("/registry/masterleases/192.0.2.10", {}, {});
  ASSERT_TRUE(found);
  ASSERT_EQ(found->kvs.size(), 1u);
  EXPECT_NE(found->kvs[0].lease, 0);
}

TEST_F(KubernetesServiceTest, LeavesEndpointsToOthers) {
  KubernetesServiceOptions silent = At("192.0.2.10");
  silent.publish = false;
  Ensure(silent);
  EXPECT_TRUE(Get<corev1::Service>("kubernetes"));
  EXPECT_FALSE(Get<corev1::Endpoints>("kubernetes"));
  auto found = plane_->client().Range("/registry/masterleases/192.0.2.10", {}, {});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->kvs.empty());
}

}  // namespace
}  // namespace keelson::apiserver
