#include "controlplane/controllers/servicecidrs/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/k8s/pods/conditions.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;
using Cidr = api::networking::v1::ServiceCIDR;
using Address = api::networking::v1::IPAddress;

Cidr CidrNamed(const std::string& name, const std::string& range) {
  Cidr cidr;
  cidr.mutable_metadata()->set_name(name);
  cidr.mutable_spec()->add_cidrs(range);
  return cidr;
}

Address AddressNamed(const std::string& ip, bool of_service = true) {
  Address address;
  address.mutable_metadata()->set_name(ip);
  if (of_service) {
    (*address.mutable_metadata()->mutable_labels())["ipaddress.kubernetes.io/managed-by"] =
        "ipallocator.k8s.io";
  }
  return address;
}

class ServiceCidrTest : public ::testing::Test {
 protected:
  void Start() {
    cluster_.Start();
    cluster_.Drain({&controller_});
  }
  void Delete(const std::string& name) {
    ASSERT_TRUE(cluster_.api.Delete<Cidr>("", name, {}));
    cluster_.Drain({&controller_});
  }
  bool Exists(const std::string& name) { return cluster_.api.Get<Cidr>("", name).has_value(); }
  metav1::Condition Ready(const std::string& name) {
    const Cidr cidr = cluster_.Get<Cidr>("", name);
    const metav1::Condition* condition = k8s::FindCondition(cidr.status().conditions(), "Ready");
    return condition ? *condition : metav1::Condition();
  }

  TestCluster cluster_;
  ServiceCidrController& controller_ = cluster_.Make<ServiceCidrController>();
};

TEST_F(ServiceCidrTest, BecomesReadyAndIsHeld) {
  ASSERT_TRUE(cluster_.api.Create(CidrNamed("a", "10.0.0.0/24")));
  Start();
  EXPECT_EQ(cluster_.Get<Cidr>("", "a").metadata().finalizers(0), "networking.k8s.io/service-cidr-finalizer");
  EXPECT_EQ(Ready("a").status(), "True");
  EXPECT_EQ(Ready("a").message(), "Kubernetes Service CIDR is ready");
}

TEST_F(ServiceCidrTest, GoesAfterAGrace) {
  ASSERT_TRUE(cluster_.api.Create(CidrNamed("a", "10.0.0.0/24")));
  ASSERT_TRUE(cluster_.api.Create(AddressNamed("10.0.0.9", false)));  // not from the allocator
  Start();
  Delete("a");
  EXPECT_TRUE(Exists("a"));
  cluster_.Advance(11s, {&controller_});
  EXPECT_FALSE(Exists("a"));
}

TEST_F(ServiceCidrTest, StaysWhileAServiceHasAnAddress) {
  ASSERT_TRUE(cluster_.api.Create(CidrNamed("a", "10.0.0.0/24")));
  ASSERT_TRUE(cluster_.api.Create(AddressNamed("10.0.0.9")));
  Start();
  Delete("a");
  cluster_.Advance(11s, {&controller_});
  ASSERT_TRUE(Exists("a"));
  EXPECT_EQ(Ready("a").status(), "False");
  EXPECT_EQ(Ready("a").reason(), "Terminating");
  EXPECT_EQ(Ready("a").message(),
            "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new "
            "ServiceCIDR");
  ASSERT_TRUE(cluster_.api.Delete<Address>("", "10.0.0.9", {}));
  cluster_.Drain({&controller_});
  EXPECT_FALSE(Exists("a"));
}

TEST_F(ServiceCidrTest, AnotherRangeMayTakeOver) {
  ASSERT_TRUE(cluster_.api.Create(CidrNamed("a", "10.0.0.0/24")));
  ASSERT_TRUE(cluster_.api.Create(AddressNamed("10.0.0.9")));
  Start();
  Delete("a");
  cluster_.Advance(11s, {&controller_});
  ASSERT_TRUE(Exists("a"));
  ASSERT_TRUE(cluster_.api.Create(CidrNamed("wider", "10.0.0.0/16")));
  cluster_.Drain({&controller_});
  EXPECT_FALSE(Exists("a"));
}

}  // namespace
}  // namespace keelson::controllers
