#include "controlplane/apiserver/authz/node.h"

#include <gtest/gtest.h>

#include "controlplane/apiserver/authz/testing/attributes.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/proto/storage_v1.pb.h"

namespace keelson::apiserver {
namespace {

constexpr const char* kUnrelated = "no relationship found between node 'n1' and this object";

corev1::Pod WebPod(const std::string& node) {
  corev1::Pod pod;
  pod.mutable_metadata()->set_namespace_("a");
  pod.mutable_metadata()->set_name("web");
  corev1::PodSpec& spec = *pod.mutable_spec();
  spec.set_node_name(node);
  spec.set_service_account_name("runner");
  spec.add_image_pull_secrets()->set_name("pull");
  auto volume = [&](const char* name) -> corev1::VolumeSource& {
    corev1::Volume& made = *spec.add_volumes();
    made.set_name(name);
    return *made.mutable_volume_source();
  };
  volume("config").mutable_config_map()->mutable_local_object_reference()->set_name("settings");
  volume("data").mutable_persistent_volume_claim()->set_claim_name("data");
  volume("scratch").mutable_ephemeral();
  volume("key").mutable_secret()->set_secret_name("key");
  spec.add_resource_claims()->set_resource_claim_name("gpu");
  return pod;
}

class NodeTest : public testing::Test {
 protected:
  std::string Ask(const RequestInfo& request) {
    Decision decision = nodes_.Authorize({n1_, request});
    return decision.allowed ? "yes" : decision.reason.empty() ? "no" : decision.reason;
  }

  std::shared_ptr<NodeGraph> graph_ = std::make_shared<NodeGraph>();
  NodeAuthorizer nodes_{graph_, [](std::string_view) { return true; }};
  const User n1_{"system:node:n1", "", {"system:nodes"}, {}};
};

TEST_F(NodeTest, ReadsWhatItsPodsReferTo) {
  const RequestInfo wanted[] = {
      Resource("get", "", "secrets", "a", "key"),
      Resource("watch", "", "secrets", "a", "pull"),
      Resource("list", "", "configmaps", "a", "settings"),
      Resource("get", "", "persistentvolumeclaims", "a", "data"),
      Resource("patch", "", "persistentvolumeclaims/status", "a", "data"),
      Resource("get", "", "persistentvolumeclaims", "a", "web-scratch"),
      Resource("create", "", "serviceaccounts/token", "a", "runner"),
      Resource("get", "", "serviceaccounts", "a", "runner"),
      Resource("get", "resource.k8s.io", "resourceclaims", "a", "gpu"),
      Resource("get", "", "pods", "a", "web"),
  };
  auto expect = [&](const std::string& answer) {
    for (const RequestInfo& request : wanted) {
      EXPECT_EQ(Ask(request), answer) << request.verb << " " << request.FullResource() << " " << request.name;
    }
  };
  expect(kUnrelated);
  graph_->Put(WebPod("n2"));
  expect(kUnrelated);
  graph_->Put(WebPod("n1"));
  expect("yes");
  graph_->Put(WebPod("n1"));  // the same once more counts once
  graph_->Remove("pods", "a/web");
  expect(kUnrelated);
}

TEST_F(NodeTest, AnObjectOfTwoPodsStaysWithTheOtherOne) {
  corev1::Pod other = WebPod("n1");
  other.mutable_metadata()->set_name("other");
  graph_->Put(WebPod("n1"));
  graph_->Put(other);
  graph_->Remove("pods", "a/web");
  EXPECT_EQ(Ask(Resource("get", "", "secrets", "a", "key")), "yes");
  graph_->Remove("pods", "a/other");
  EXPECT_EQ(Ask(Resource("get", "", "secrets", "a", "key")), kUnrelated);
}

TEST_F(NodeTest, VolumesAreReachedByTheirClaims) {
  corev1::PersistentVolume volume;
  volume.mutable_metadata()->set_name("pv1");
  volume.mutable_spec()->mutable_claim_ref()->set_namespace_("a");
  volume.mutable_spec()->mutable_claim_ref()->set_name("data");
  corev1::CSIPersistentVolumeSource& csi =
      *volume.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
  csi.mutable_node_stage_secret_ref()->set_namespace_("storage");
  csi.mutable_node_stage_secret_ref()->set_name("stage");
  csi.mutable_controller_publish_secret_ref()->set_namespace_("storage");
  csi.mutable_controller_publish_secret_ref()->set_name("controller");
  graph_->Put(volume);
  EXPECT_EQ(Ask(Resource("get", "", "persistentvolumes", "", "pv1")), kUnrelated);
  graph_->Put(WebPod("n1"));
  EXPECT_EQ(Ask(Resource("get", "", "persistentvolumes", "", "pv1")), "yes");
  EXPECT_EQ(Ask(Resource("get", "", "secrets", "storage", "stage")), "yes");
  EXPECT_EQ(Ask(Resource("get", "", "secrets", "storage", "controller")), kUnrelated);
  volume.mutable_spec()->clear_claim_ref();
  graph_->Put(volume);
  EXPECT_EQ(Ask(Resource("get", "", "persistentvolumes", "", "pv1")), kUnrelated);
  EXPECT_EQ(Ask(Resource("get", "", "secrets", "storage", "stage")), kUnrelated);
}

TEST_F(NodeTest, MirrorPodsGiveNothing) {
  corev1::Pod pod = WebPod("n1");
  (*pod.mutable_metadata()->mutable_annotations())["kubernetes.io/config.mirror"] = "x";
  graph_->Put(pod);
  EXPECT_EQ(Ask(Resource("get", "", "pods", "a", "web")), "yes");
  EXPECT_EQ(Ask(Resource("get", "", "secrets", "a", "key")), kUnrelated);
}

TEST_F(NodeTest, AttachmentsAndSlicesNameTheirNode) {
  api::storage::v1::VolumeAttachment attachment;
  attachment.mutable_metadata()->set_name("va");
  attachment.mutable_spec()->set_node_name("n1");
  graph_->Put(attachment);
  EXPECT_EQ(Ask(Resource("get", "storage.k8s.io", "volumeattachments", "", "va")), "yes");
  api::resource::v1::ResourceSlice slice;
  slice.mutable_metadata()->set_name("s");
  slice.mutable_spec()->set_node_name("n1");
  graph_->Put(slice);
  EXPECT_EQ(Ask(Resource("update", "resource.k8s.io", "resourceslices", "", "s")), "yes");
  EXPECT_EQ(Ask(Resource("update", "resource.k8s.io", "resourceslices", "", "t")), kUnrelated);
  api::certificates::v1beta1::PodCertificateRequest request;
  request.mutable_metadata()->set_namespace_("a");
  request.mutable_metadata()->set_name("r");
  request.mutable_spec()->set_node_name("n1");
  graph_->Put(request);
  EXPECT_EQ(Ask(Resource("get", "certificates.k8s.io", "podcertificaterequests", "a", "r")), "yes");
  EXPECT_EQ(Ask(Resource("get", "certificates.k8s.io", "podcertificaterequests", "b", "r")), kUnrelated);
}

TEST_F(NodeTest, Table) {
  struct {
    RequestInfo request;
    std::string selector, answer;
  } rows[] = {
      {Resource("list", "", "secrets", "a"), "", "No Object name found"},
      {Resource("get", "", "secrets", "", "key"), "", "can only read namespaced object of this type"},
      {Resource("delete", "", "secrets", "a", "key"), "", "can only read resources of this type"},
      {Resource("list", "", "persistentvolumeclaims", "a"), "",
       "can only get individual resources of this type"},
      {Resource("get", "", "persistentvolumeclaims/status", "a", "data"), "",
       "can only get/update/patch this type"},
      {Resource("create", "", "serviceaccounts", "a"), "",
       "can only create tokens for individual service accounts"},
      {Resource("update", "coordination.k8s.io", "leases", "kube-node-lease", "n1"), "", "yes"},
      {Resource("update", "coordination.k8s.io", "leases", "kube-node-lease", "n2"), "",
       "can only access node lease with the same name as the requesting node"},
      {Resource("update", "coordination.k8s.io", "leases", "kube-system", "n1"), "",
       "can only access leases in the \"kube-node-lease\" system namespace"},
      {Resource("list", "coordination.k8s.io", "leases", "kube-node-lease"), "",
       "can only get, create, update, patch, or delete a node lease"},
      {Resource("get", "storage.k8s.io", "csinodes", "", "n2"), "",
       "can only access CSINode with the same name as the requesting node"},
      {Resource("get", "", "nodes", "", "n1"), "", "yes"},
      {Resource("get", "", "nodes", "", "n2"), "", "node 'n1' cannot read 'n2', only its own Node object"},
      {Resource("list", "", "nodes"), "", "node 'n1' cannot read all nodes, only its own Node object"},
      {Resource("delete", "", "nodes", "", "n1"), "", "no"},
      {Resource("list", "", "pods"), "spec.nodeName=n1", "yes"},
      {Resource("list", "", "pods"), "spec.nodeName==n1,status.phase!=Failed", "yes"},
      {Resource("list", "", "pods"), "spec.nodeName!=n1",
       "can only list/watch pods with spec.nodeName field selector"},
      {Resource("watch", "", "pods"), "spec.nodeName=n2",
       "can only list/watch pods with spec.nodeName field selector"},
      {Resource("list", "", "pods"), "", "can only list/watch pods with spec.nodeName field selector"},
      {Resource("create", "", "pods/eviction", "a", "web"), "", "yes"},
      {Resource("create", "", "pods/exec", "a", "web"), "", "no"},
      {Resource("list", "resource.k8s.io", "resourceslices"), "spec.nodeName=n1", "yes"},
      {Resource("list", "resource.k8s.io", "resourceslices"), "",
       "can only list/watch/deletecollection resourceslices with nodeName field selector"},
      {Resource("list", "", "services"), "", "yes"},
      {Resource("create", "", "services", "a"), "", "no"},
      {Resource("create", "certificates.k8s.io", "certificatesigningrequests"), "", "yes"},
      {Resource("create", "certificates.k8s.io", "podcertificaterequests", "a"), "", "yes"},
      {Resource("list", "certificates.k8s.io", "podcertificaterequests"), "spec.nodeName=n1", "yes"},
      {Resource("watch", "certificates.k8s.io", "podcertificaterequests"), "",
       "can only list/watch podcertificaterequests with nodeName field selector"},
      {Resource("update", "certificates.k8s.io", "podcertificaterequests/status", "a", "r"), "",
       "nodes may not access the status subresource of PodCertificateRequests"},
      {Resource("delete", "certificates.k8s.io", "podcertificaterequests", "a", "r"), "",
       "only create, get, list, watch are allowed for a PodCertificateRequest"},
  };
  for (auto& row : rows) {
    row.request.field_selector = row.selector;
    EXPECT_EQ(Ask(row.request), row.answer) << row.request.verb << " " << row.request.FullResource();
  }
  RequestInfo create = Resource("create", "", "nodes");
  EXPECT_FALSE(nodes_.Authorize({{"system:node:n1", "", {}, {}}, create}).allowed);  // not in the group
  EXPECT_EQ(nodes_.RulesFor(n1_, "a").error, "node authorizer does not support user rule resolution");
}

}  // namespace
}  // namespace keelson::apiserver
