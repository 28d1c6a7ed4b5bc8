#include "controlplane/controllers/volumeexpand/controller.h"

#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"
#include "lib/api/quantity.h"

namespace keelson::controllers {
namespace {

using Claim = corev1::PersistentVolumeClaim;

Claim Sized(Claim claim, const char* asked) {
  (*claim.mutable_spec()->mutable_resources()->mutable_requests())["storage"].set_string(asked);
  return claim;
}

TEST(VolumeExpandTest, TellsWhoseBusinessItIs) {
  TestCluster cluster;
  auto& controller = cluster.Make<VolumeExpandController>();
  Claim claim;
  claim.mutable_metadata()->set_name("data");
  claim.mutable_metadata()->set_namespace_("default");
  claim.mutable_spec()->set_volume_name("v");
  claim.mutable_status()->set_phase("Bound");
  (*claim.mutable_status()->mutable_capacity())["storage"].set_string("1Gi");
  claim = cluster.fake->Put(Sized(claim, "1Gi"));
  corev1::PersistentVolume volume;
  volume.mutable_metadata()->set_name("v");
  volume.mutable_spec()->mutable_claim_ref()->set_uid(claim.metadata().uid());
  cluster.fake->Put(volume);
  cluster.Start();
  cluster.Drain({&controller});
  cluster.fake->ForgetRequests();

  claim = cluster.fake->Put(Sized(claim, "2Gi"));
  cluster.Drain({&controller});
  claim = cluster.fake->Put(Sized(claim, "2048Mi"));  // the same: not told again
  cluster.Drain({&controller});
  for (const std::string& request : cluster.fake->Requests()) {
    EXPECT_EQ(request.find("PUT"), std::string::npos);
  }
  EXPECT_EQ(
      cluster.Events(),
      std::vector<std::string>{"ExternalExpanding: waiting for an external controller to expand this PVC"});
  EXPECT_EQ(cluster.List<corev1::Event>().at(0).count(), 1);
}

// Its volume is one that was made for a driver within Kubernetes, which a CSI driver has taken over.
TEST(VolumeExpandTest, NamesTheResizerOfDriversThatHaveMovedOut) {
  TestCluster cluster;
  auto& controller = cluster.Make<VolumeExpandController>();
  Claim claim;
  claim.mutable_metadata()->set_name("data");
  claim.mutable_metadata()->set_namespace_("default");
  claim.mutable_spec()->set_volume_name("v");
  claim.mutable_status()->set_phase("Bound");
  (*claim.mutable_status()->mutable_capacity())["storage"].set_string("1Gi");
  claim = cluster.fake->Put(Sized(claim, "2Gi"));
  corev1::PersistentVolume volume;
  volume.mutable_metadata()->set_name("v");
  volume.mutable_spec()->mutable_claim_ref()->set_uid(claim.metadata().uid());
  volume.mutable_spec()->mutable_persistent_volume_source()->mutable_aws_elastic_block_store()->set_volume_id(
      "vol-1");
  cluster.fake->Put(volume);
  cluster.Start();
  cluster.Drain({&controller});
  EXPECT_EQ(cluster.Get<Claim>("default", "data")
                .metadata()
                .annotations()
                .at("volume.kubernetes.io/storage-resizer"),
            "ebs.csi.aws.com");
  EXPECT_EQ(cluster.Events(),
            std::vector<std::string>{"ExternalExpanding: CSI migration enabled for "
                                     "kubernetes.io/aws-ebs; waiting for external resizer to "
                                     "expand the pvc"});
  EXPECT_EQ(cluster.errors, std::vector<std::string>{});
}

}  // namespace
}  // namespace keelson::controllers
