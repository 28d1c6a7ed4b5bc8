#include "csi/controller/provisioner/provisioner.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "csi/controller/model/names.h"
#include "csi/controller/provisioner/clone_protection.h"
#include "csi/controller/testing/controller_test.h"
#include "lib/api/quantity.h"
#include "lib/metrics/metrics.h"

namespace keelson::csi::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kGi = int64_t{1} << 30;

class ProvisionerTest : public ControllerTest {
 protected:
  void SetUp() override {
    ControllerTest::SetUp();
    Put<storagev1::StorageClass>(
        R"({"metadata":{"name":"fast","uid":"class-uid"},"provisioner":"disk.example.com",
        "parameters":{"pool":"p1","csi.storage.k8s.io/fstype":"xfs"},"mountOptions":["noatime"],
        "volumeBindingMode":"Immediate","reclaimPolicy":"Delete"})");
    Put<storagev1::StorageClass>(R"({"metadata":{"name":"late"},"provisioner":"disk.example.com",
        "volumeBindingMode":"WaitForFirstConsumer"})");
  }
  void Start(const std::string& node = "", ProvisionerOptions options = {}) {
    options.identity = "me";
    StartControllers(
        [&](const Environment& environment) {
          controllers_.push_back(std::make_unique<Provisioner>(environment, options));
          controllers_.push_back(std::make_unique<CloneProtection>(environment));
        },
        node);
  }
  static std::string ClaimJson(const std::string& name, const std::string& storage_class,
                               const std::string& more = "", const std::string& annotations = "") {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"default","uid":"uid-)" + name +
           R"(","annotations":{"volume.kubernetes.io/storage-provisioner":"disk.example.com")" + annotations +
           R"(}},"spec":{"accessModes":["ReadWriteOnce"],"volumeMode":"Filesystem","storageClassName":")" +
           storage_class + R"(","resources":{"requests":{"storage":"1Gi"}})" + more +
           R"(},"status":{"phase":"Pending"}})";
  }
  std::optional<Volume> AwaitVolume(const std::string& claim) {
    EXPECT_TRUE(Eventually([&] { return Get<Volume>("", "pvc-uid-" + claim).has_value(); }));
    return Get<Volume>("", "pvc-uid-" + claim);
  }
  void PutNode(const std::string& name, const std::string& zone) {
    Put<corev1::Node>(R"({"metadata":{"name":")" + name + R"(","labels":{"zone":")" + zone + R"("}}})");
    Put<storagev1::CSINode>(R"({"metadata":{"name":")" + name +
                            R"("},"spec":{"drivers":[{"name":"disk.example.com","nodeID":")" + name +
                            R"(","topologyKeys":["zone"]}]}})");
  }
};

TEST_F(ProvisionerTest, MakesTheVolumeOfAClaim) {
  Start("", {.extra_create_metadata = true});
  Put<Claim>(ClaimJson("data", "fast"));
  const auto volume = AwaitVolume("data");
  ASSERT_TRUE(volume);
  const auto& spec = volume->spec();
  EXPECT_EQ(spec.claim_ref().uid(), "uid-data");
  EXPECT_EQ(spec.claim_ref().kind(), "PersistentVolumeClaim");
  EXPECT_EQ(spec.storage_class_name(), "fast");
  EXPECT_EQ(spec.persistent_volume_reclaim_policy(), "Delete");
  EXPECT_THAT(spec.mount_options(), ElementsAre("noatime"));
  EXPECT_EQ(api::Amount::Of(spec.capacity().at("storage")).ToString(), "1Gi");
  const auto& source = spec.persistent_volume_source().csi();
  EXPECT_EQ(source.driver(), "disk.example.com");
  EXPECT_EQ(source.volume_handle(), "id-pvc-uid-data");
  EXPECT_EQ(source.fs_type(), "xfs");
  EXPECT_EQ(source.volume_attributes().at("pool"), "p1");
  EXPECT_EQ(source.volume_attributes().at(kProvisionerIdentity), "me");
  EXPECT_EQ(volume->metadata().annotations().at(kProvisionedBy), "disk.example.com");
  EXPECT_THAT(volume->metadata().finalizers(), ElementsAre(kProvisionerFinalizer));
  const v1::CreateVolumeRequest request = driver_->LastCreate();
  EXPECT_EQ(request.parameters().at("csi.storage.k8s.io/pvc/name"), "data");
  EXPECT_EQ(request.parameters().at("csi.storage.k8s.io/pvc/namespace"), "default");
  EXPECT_EQ(request.parameters().at("csi.storage.k8s.io/pv/name"), "pvc-uid-data");
  EXPECT_EQ(request.parameters().count("csi.storage.k8s.io/fstype"), 0U);
  EXPECT_TRUE(Eventually([&] { return HasEvent("ProvisioningSucceeded", "pvc-uid-data"); }));
  EXPECT_NE(
      metrics::Print().find(
          "controller_persistentvolumeclaim_provision_duration_seconds_count{class=\"fast\",source=\"\"}"),
      std::string::npos);
  EXPECT_TRUE(
      HasEvent("Provisioning", R"(External provisioner is provisioning volume for claim "default/data")"));
}

TEST_F(ProvisionerTest, LeavesOtherClaimsAlone) {
  Put<storagev1::StorageClass>(
      R"({"metadata":{"name":"other"},"provisioner":"else.example.com","volumeBindingMode":"Immediate"})");
  Start();
  Put<Claim>(ClaimJson("unselected", "late"));
  Put<Claim>(ClaimJson("other-class", "other"));
  Put<Claim>(ClaimJson("bound", "fast", R"(,"volumeName":"v")"));
  Claim foreign;
  ASSERT_TRUE(api::DecodeJson(ClaimJson("foreign", "fast"), foreign));
  (*foreign.mutable_metadata()->mutable_annotations())[kStorageProvisioner] = "else.example.com";
  fake_->Put(foreign);
  // A claim that comes last has the queue's other claims behind it.
  Put<Claim>(ClaimJson("data", "fast"));
  ASSERT_TRUE(AwaitVolume("data"));
  EXPECT_THAT(driver_->Calls(), ElementsAre("CreateVolume pvc-uid-data"));
}

TEST_F(ProvisionerTest, SendsSecrets) {
  Put<storagev1::StorageClass>(
      R"({"metadata":{"name":"secret"},"provisioner":"disk.example.com","parameters":{
      "csi.storage.k8s.io/provisioner-secret-name":"create","csi.storage.k8s.io/provisioner-secret-namespace":"storage",
      "csi.storage.k8s.io/node-stage-secret-name":"${pvc.annotations['team']}",
      "csi.storage.k8s.io/node-stage-secret-namespace":"${pvc.namespace}"}})");
  Start();
  Put<Claim>(ClaimJson("data", "secret", "", R"(,"team":"blue")"));
  // The secret comes late.
  ASSERT_TRUE(
      Eventually([&] { return HasEvent("ProvisioningFailed", "error getting secret create in namespace"); }));
  Put<corev1::Secret>(R"({"metadata":{"name":"create","namespace":"storage"},"data":{"key":"c2VjcmV0"}})");
  const auto volume = AwaitVolume("data");
  ASSERT_TRUE(volume);
  EXPECT_EQ(driver_->LastCreate().secrets().at("key"), "secret");
  EXPECT_EQ(volume->metadata().annotations().at(kDeletionSecretName), "create");
  EXPECT_EQ(volume->metadata().annotations().at(kDeletionSecretNamespace), "storage");
  const auto& stage = volume->spec().persistent_volume_source().csi().node_stage_secret_ref();
  EXPECT_EQ(stage.namespace_() + "/" + stage.name(), "default/blue");
}

TEST_F(ProvisionerTest, FollowsTheSelectedNode) {
  driver_->SetCapabilities({"CREATE_DELETE_VOLUME"}, true);
  PutNode("n1", "a");
  PutNode("n2", "b");
  Start();
  Claim claim = Put<Claim>(ClaimJson("data", "late"));
  (*claim.mutable_metadata()->mutable_annotations())[kSelectedNode] = "n2";
  fake_->Put(claim);
  const auto volume = AwaitVolume("data");
  ASSERT_TRUE(volume);
  const v1::TopologyRequirement topology = driver_->LastCreate().accessibility_requirements();
  EXPECT_EQ(topology.requisite_size(), 2);
  EXPECT_EQ(topology.preferred(0).segments().at("zone"), "b");
  const auto& term = volume->spec().node_affinity().required().node_selector_terms(0);
  EXPECT_EQ(term.match_expressions(0).key(), "zone");
  EXPECT_THAT(term.match_expressions(0).values(), ElementsAre("b"));
}

TEST_F(ProvisionerTest, LetsTheSchedulerChooseAgainWhenTheNodeIsFull) {
  driver_->SetCapabilities({"CREATE_DELETE_VOLUME"}, true);
  PutNode("n1", "a");
  Start();
  driver_->Fail("CreateVolume", grpc::StatusCode::RESOURCE_EXHAUSTED, "full");
  Put<Claim>(ClaimJson("data", "late", "", R"(,"volume.kubernetes.io/selected-node":"n1")"));
  ASSERT_TRUE(Eventually(
      [&] { return Get<Claim>("default", "data")->metadata().annotations().count(kSelectedNode) == 0; }));
  EXPECT_TRUE(Eventually([&] {
    return HasEvent(
        "ProvisioningFailed",
        R"(failed to provision volume with StorageClass "late": rpc error: code = ResourceExhausted desc = full)");
  }));
  // A node that is gone, too.
  Put<Claim>(ClaimJson("other", "late", "", R"(,"volume.kubernetes.io/selected-node":"gone")"));
  EXPECT_TRUE(Eventually(
      [&] { return Get<Claim>("default", "other")->metadata().annotations().count(kSelectedNode) == 0; }));
}

TEST_F(ProvisionerTest, TriesAgainUntilTheDriverIsDone) {
  Start();
  for (const int code : {grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::ABORTED, grpc::StatusCode::INTERNAL,
                         grpc::StatusCode::RESOURCE_EXHAUSTED}) {
    const std::string name = "data-" + std::to_string(code);
    driver_->Fail("CreateVolume", code, "not now", 3, code == grpc::StatusCode::UNAVAILABLE);
    Put<Claim>(ClaimJson(name, "fast"));
    ASSERT_TRUE(AwaitVolume(name)) << code;
  }
  EXPECT_EQ(driver_->Volumes().size(), 4U);
}

TEST_F(ProvisionerTest, WaitsLongerWhenTheRequestIsWrong) {
  Start();
  driver_->Fail("CreateVolume", grpc::StatusCode::INVALID_ARGUMENT, "no such pool");
  Put<Claim>(ClaimJson("data", "fast"));
  EXPECT_TRUE(Eventually([&] {
    return HasEvent(
        "ProvisioningFailed",
        "Volume provisioning failed with infeasible error. Retries will be delayed. rpc error: code = "
        "InvalidArgument desc = no such pool");
  }));
  EXPECT_TRUE(AwaitVolume("data"));
}

// The driver may have made it: the volume must not stay behind without an object.
TEST_F(ProvisionerTest, FinishesClaimsThatAreDeletedMeanwhile) {
  Start();
  driver_->Fail("CreateVolume", grpc::StatusCode::DEADLINE_EXCEEDED, "late", 5, true);
  std::atomic<bool> deleted = false;
  driver_->OnDone([&](const std::string&) {
    if (!deleted.exchange(true)) {
      EXPECT_TRUE(api_.Delete<Claim>("default", "data"));
    }
  });
  Put<Claim>(ClaimJson("data", "fast"));
  const auto volume = AwaitVolume("data");
  ASSERT_TRUE(volume);
  EXPECT_EQ(volume->spec().claim_ref().uid(), "uid-data");
  EXPECT_FALSE(Get<Claim>("default", "data"));
  StopControllers();  // hooks use locals
}

TEST_F(ProvisionerTest, DoesNotBeginWhenTheClaimIsGone) {
  Start();
  driver_->Fail("CreateVolume", grpc::StatusCode::INTERNAL, "no", 1000000);
  Put<Claim>(ClaimJson("data", "fast"));
  ASSERT_TRUE(Eventually([&] { return driver_->Count("CreateVolume") > 2; }));
  ASSERT_TRUE(api_.Delete<Claim>("default", "data"));
  // The next claim's failures are all that come: it is known once the first one's end is.
  Put<Claim>(ClaimJson("next", "fast"));
  driver_->Calls();
  std::vector<std::string> calls;
  ASSERT_TRUE(Eventually([&] {
    for (const std::string& call : driver_->Calls()) calls.push_back(call);
    return calls.size() >= 8 && std::all_of(calls.end() - 8, calls.end(), [](const std::string& call) {
             return call == "CreateVolume pvc-uid-next";
           });
  }));
  driver_->Fail("CreateVolume", 0, "", 0);
  ASSERT_TRUE(AwaitVolume("next"));
  EXPECT_FALSE(Get<Volume>("", "pvc-uid-data"));
}

TEST_F(ProvisionerTest, RemovesVolumesThatAreTooSmall) {
  Start();
  std::atomic<int> answers = 0;
  driver_->OnAnswer([&](google::protobuf::Message& reply) {
    auto* created = google::protobuf::DynamicCastToGenerated<v1::CreateVolumeResponse>(&reply);
    if (created && answers++ == 0) created->mutable_volume()->set_capacity_bytes(kGi - 1);
  });
  Put<Claim>(ClaimJson("data", "fast"));
  ASSERT_TRUE(AwaitVolume("data"));
  EXPECT_THAT(driver_->Calls(), ElementsAre("CreateVolume pvc-uid-data", "DeleteVolume id-pvc-uid-data",
                                            "CreateVolume pvc-uid-data"));
  EXPECT_TRUE(Eventually([&] {
    return HasEvent("ProvisioningFailed", "created volume capacity 1073741823 less than requested");
  }));
  StopControllers();  // hooks use locals
}

TEST_F(ProvisionerTest, SurvivesLostAnswersOfTheApi) {
  std::atomic<int> failures = 0;
  fake_->SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    if (request.method == "POST" && request.target.find("/persistentvolumes") != std::string::npos &&
        failures++ < 3) {
      return client::FakeApi::Refuse(Error(Code::kUnavailable, "etcd is away"));
    }
    return std::nullopt;
  });
  Start();
  Put<Claim>(ClaimJson("data", "fast"));
  ASSERT_TRUE(AwaitVolume("data"));
  EXPECT_EQ(driver_->Volumes().size(), 1U);
  EXPECT_TRUE(Eventually([&] { return HasEvent("ProvisioningFailed", "error saving volume"); }));
  StopControllers();  // hooks use locals
}

// As after a kill between CreateVolume and the object.
TEST_F(ProvisionerTest, GoesOnAfterARestart) {
  fake_->SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    if (request.method != "POST" || request.target.find("/persistentvolumes") == std::string::npos) return {};
    return client::FakeApi::Refuse(Error(Code::kUnavailable, "away"));
  });
  Start();
  Put<Claim>(ClaimJson("data", "fast"));
  ASSERT_TRUE(Eventually([&] { return driver_->Volumes().size() == 1; }));
  StopControllers();
  fake_->SetInterceptor(nullptr);
  Start();
  ASSERT_TRUE(AwaitVolume("data"));
  EXPECT_EQ(driver_->Volumes().size(), 1U);
}

TEST_F(ProvisionerTest, OnANodeTakesItsOwnClaims) {
  driver_->SetCapabilities({"CREATE_DELETE_VOLUME"}, true);
  driver_->SetNodeTopology({{"zone", "a"}});
  PutNode("n1", "a");
  PutNode("n2", "b");
  Start("n1", {.topology = {.strict = true, .immediate = false}});
  Put<Claim>(ClaimJson("theirs", "late", "", R"(,"volume.kubernetes.io/selected-node":"n2")"));
  Put<Claim>(ClaimJson("immediate", "fast"));
  Put<Claim>(ClaimJson("ours", "late", "", R"(,"volume.kubernetes.io/selected-node":"n1")"));
  ASSERT_TRUE(AwaitVolume("ours"));
  EXPECT_THAT(driver_->Calls(), ElementsAre("CreateVolume pvc-uid-ours"));
  const v1::TopologyRequirement topology = driver_->LastCreate().accessibility_requirements();
  ASSERT_EQ(topology.requisite_size(), 1);
  EXPECT_EQ(topology.requisite(0).segments().at("zone"), "a");
}

TEST_F(ProvisionerTest, ClonesAClaimAndKeepsItMeanwhile) {
  driver_->SetCapabilities({"CREATE_DELETE_VOLUME", "CLONE_VOLUME"});
  Start();
  Put<Claim>(ClaimJson("copy", "fast", R"(,"dataSource":{"kind":"PersistentVolumeClaim","name":"origin"})"));
  ASSERT_TRUE(Eventually([&] { return HasEvent("ProvisioningFailed", "error getting PVC origin"); }));
  Put<Volume>(
      R"({"metadata":{"name":"v"},"spec":{"claimRef":{"uid":"uid-origin","name":"origin","namespace":"default"},
      "csi":{"driver":"disk.example.com","volumeHandle":"id-v"}},"status":{"phase":"Bound"}})");
  bool kept = false;
  driver_->OnDone([&](const std::string&) {
    kept = HasFinalizer(Get<Claim>("default", "origin")->metadata(), kCloningProtection);
  });
  Claim origin;
  ASSERT_TRUE(api::DecodeJson(ClaimJson("origin", "fast", R"(,"volumeName":"v")"), origin));
  origin.mutable_status()->set_phase("Bound");
  fake_->Put(origin);
  ASSERT_TRUE(AwaitVolume("copy"));
  EXPECT_TRUE(kept);
  EXPECT_EQ(driver_->LastCreate().volume_content_source().volume().volume_id(), "id-v");
  Claim copy = *Get<Claim>("default", "copy");
  copy.mutable_spec()->set_volume_name("pvc-uid-copy");
  copy.mutable_status()->set_phase("Bound");
  fake_->Put(copy);
  EXPECT_TRUE(Eventually(
      [&] { return !HasFinalizer(Get<Claim>("default", "origin")->metadata(), kCloningProtection); }));
  StopControllers();  // hooks use locals
}

// A driver whose volumes belong to nodes does not find what another node has.
TEST_F(ProvisionerTest, ACopyGoesToTheNodeOfItsSource) {
  driver_->SetCapabilities({"CREATE_DELETE_VOLUME", "CLONE_VOLUME"}, true);
  PutNode("n1", "a");
  PutNode("n2", "b");
  Put<Volume>(
      R"({"metadata":{"name":"v"},"spec":{"claimRef":{"uid":"uid-origin","name":"origin","namespace":"default"},
      "csi":{"driver":"disk.example.com","volumeHandle":"id-v"},"nodeAffinity":{"required":{"nodeSelectorTerms":[
      {"matchExpressions":[{"key":"zone","operator":"In","values":["b"]}]}]}}},"status":{"phase":"Bound"}})");
  Claim origin;
  ASSERT_TRUE(api::DecodeJson(ClaimJson("origin", "late", R"(,"volumeName":"v")"), origin));
  origin.mutable_status()->set_phase("Bound");
  fake_->Put(origin);
  driver_->Fail("CreateVolume", grpc::StatusCode::NOT_FOUND, "no such source");
  Start();
  Put<Claim>(ClaimJson("copy", "late", R"(,"dataSource":{"kind":"PersistentVolumeClaim","name":"origin"})",
                       R"(,"volume.kubernetes.io/selected-node":"n1")"));
  ASSERT_TRUE(AwaitVolume("copy"));
  EXPECT_EQ(Get<Claim>("default", "copy")->metadata().annotations().at(kSelectedNode), "n2");
  EXPECT_TRUE(Eventually([&] { return HasEvent("ProvisioningFailed", "no such source"); }));

  // From a node that the source can be reached from, nothing moves.
  driver_->Fail("CreateVolume", grpc::StatusCode::NOT_FOUND, "gone", 2);
  Put<Claim>(ClaimJson("other", "late", R"(,"dataSource":{"kind":"PersistentVolumeClaim","name":"origin"})",
                       R"(,"volume.kubernetes.io/selected-node":"n2")"));
  ASSERT_TRUE(AwaitVolume("other"));
  EXPECT_EQ(Get<Claim>("default", "other")->metadata().annotations().at(kSelectedNode), "n2");
}

TEST_F(ProvisionerTest, RestoresASnapshot) {
  driver_->SetCapabilities({"CREATE_DELETE_VOLUME", "CREATE_DELETE_SNAPSHOT"});
  std::atomic<bool> ready = false;
  fake_->SetInterceptor([&](const client::ApiRequest& request) -> std::optional<Result<client::ApiResponse>> {
    if (request.target.find("snapshot.storage.k8s.io") == std::string::npos) return std::nullopt;
    const bool content = request.target == "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents/c1";
    EXPECT_TRUE(content ||
                request.target == "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots/s1");
    return client::ApiResponse{
        200, "application/json",
        content
            ? std::string(
                  R"({"spec":{"driver":"disk.example.com","sourceVolumeMode":"Filesystem","volumeSnapshotRef":
                {"uid":"su","name":"s1","namespace":"default"}},"status":{"snapshotHandle":"h1"}})")
            : std::string(R"({"metadata":{"uid":"su"},"status":{"boundVolumeSnapshotContentName":"c1",
                "restoreSize":"1Gi","readyToUse":)") +
                  (ready ? "true}}" : "false}}")};
  });
  Start();
  Put<Claim>(ClaimJson(
      "data", "fast",
      R"(,"dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"s1"})"));
  ASSERT_TRUE(Eventually([&] { return HasEvent("ProvisioningFailed", "snapshot s1 is not Ready"); }));
  ready = true;
  ASSERT_TRUE(AwaitVolume("data"));
  EXPECT_EQ(driver_->LastCreate().volume_content_source().snapshot().snapshot_id(), "h1");
  StopControllers();  // hooks use locals
}

TEST_F(ProvisionerTest, LeavesOtherSourcesToPopulators) {
  Start();
  Put<Claim>(
      ClaimJson("data", "fast", R"(,"dataSourceRef":{"apiGroup":"example.com","kind":"Image","name":"i"})"));
  EXPECT_TRUE(Eventually(
      [&] { return HasEvent("Provisioning", "Assuming an external populator will provision the volume"); }));
  EXPECT_EQ(driver_->Count("CreateVolume"), 0);
}

TEST_F(ProvisionerTest, AsksADriverThatWasAwayWhatItIs) {
  Start();
  driver_->Stop();
  Put<Claim>(ClaimJson("data", "fast"));
  ASSERT_TRUE(Eventually([&] { return HasEvent("ProvisioningFailed", "code = Unavailable"); }));
  driver_->SetName("else.example.com");
  driver_->Start();
  ASSERT_TRUE(Eventually([&] { return HasEvent("ProvisioningFailed", "is now else.example.com"); }));
  EXPECT_EQ(driver_->Count("CreateVolume"), 0);
  driver_->SetName(FakeDriver::kName);
  EXPECT_TRUE(AwaitVolume("data"));
}

}  // namespace
}  // namespace keelson::csi::controller
