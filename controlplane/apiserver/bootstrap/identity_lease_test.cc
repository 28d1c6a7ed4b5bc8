// The Leases of API servers, on a real etcd.
#include "controlplane/apiserver/bootstrap/identity_lease.h"

#include <gmock/gmock.h>

#include "controlplane/registry/testing/fixture.h"
#include "lib/api/meta.h"
#include "lib/api/types.h"

namespace keelson::apiserver {
namespace {

using coordinationv1::Lease;
using std::chrono::seconds;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

class IdentityLeaseTest : public registry::RegistryTest {
 protected:
  void SetUp() override {
    RegistryTest::SetUp();
    if (IsSkipped()) return;
    corev1::Namespace ns;
    ns.mutable_metadata()->set_name("kube-system");
    ASSERT_TRUE(Create(ns, ""));
  }
  // Consistent: the cache has them afterwards.
  std::vector<Lease> Leases() {
    std::vector<Lease> out;
    const Result<registry::ObjectList> list = (*plane_)->List(api::ResourceOf<Lease>(), "kube-system", {});
    EXPECT_TRUE(list);
    if (!list) return out;
    for (const registry::ObjectPtr& item : list->items) {
      out.push_back(static_cast<const Lease&>(*item->Decode()));
    }
    return out;
  }
  void Ensure(const std::string& holder, WallTime now) {
    const Result<> done = EnsureIdentityLease(**plane_, holder, now, {});
    ASSERT_TRUE(done) << done.error().message();
  }
  void Sweep(WallTime now) {
    const Result<> done = RemoveExpiredIdentityLeases(**plane_, now, {});
    ASSERT_TRUE(done) << done.error().message();
  }
};

TEST(IdentityLeaseName, IsTheHashOfTheHostName) {
  // printf host-1 | sha256sum | cut -c1-32 | xxd -r -p | base32
  EXPECT_EQ(IdentityLeaseName("host-1"), "apiserver-jilznlcjgus76roe45ho6goxum");
  EXPECT_NE(IdentityHolder(), IdentityHolder());
}

TEST_F(IdentityLeaseTest, IsRenewedByOneServerAndRemovedWhenItIsGone) {
  const WallTime begin = Clock::Real().Now();
  Ensure("apiserver-x_1", begin);
  Ensure("apiserver-x_2", begin + seconds(10));  // the process has been started again
  const std::vector<Lease> found = Leases();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].metadata().name(), StartsWith("apiserver-"));
  EXPECT_EQ(found[0].metadata().labels().at("apiserver.kubernetes.io/identity"), "kube-apiserver");
  EXPECT_FALSE(found[0].metadata().labels().at("kubernetes.io/hostname").empty());
  EXPECT_EQ(found[0].spec().holder_identity(), "apiserver-x_2");
  EXPECT_EQ(found[0].spec().lease_duration_seconds(), 3600);
  EXPECT_GE(api::FromMicroTime(found[0].spec().renew_time()) + seconds(1), begin + seconds(10));
  Sweep(begin + seconds(3600));
  EXPECT_THAT(Leases(), SizeIs(1));
  Sweep(begin + seconds(3620));
  EXPECT_THAT(Leases(), IsEmpty());
}

TEST_F(IdentityLeaseTest, OtherLeasesStay) {
  Lease other;
  other.mutable_metadata()->set_name("kube-scheduler");
  other.mutable_metadata()->set_namespace_("kube-system");
  other.mutable_spec()->set_lease_duration_seconds(15);
  ASSERT_TRUE(Create(other, "kube-system"));
  ASSERT_THAT(Leases(), SizeIs(1));
  Sweep(Clock::Real().Now() + seconds(1000000));
  EXPECT_THAT(Leases(), SizeIs(1));
}

}  // namespace
}  // namespace keelson::apiserver
