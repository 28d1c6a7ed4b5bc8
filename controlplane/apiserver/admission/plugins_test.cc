#include "controlplane/apiserver/admission/plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controlplane/apiserver/admission/testing/attributes.h"
#include "controlplane/etcd/client.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/crypto/certificates.h"

namespace keelson::apiserver {
namespace {

using testing::HasSubstr;

// Allows the listed requests: "verb resource/subresource name".
class FakeAuthorizer : public Authorizer {
 public:
  explicit FakeAuthorizer(std::vector<std::string> allowed) : allowed_(std::move(allowed)) {}
  Decision Authorize(const Attributes& attributes) const override {
    const RequestInfo& request = attributes.request;
    const std::string wanted = request.verb + " " + request.FullResource() + " " + request.name;
    Decision decision;
    decision.allowed = std::find(allowed_.begin(), allowed_.end(), wanted) != allowed_.end();
    return decision;
  }
  UserRules RulesFor(const User&, std::string_view) const override { return {}; }

 private:
  std::vector<std::string> allowed_;
};

TEST(AlwaysPullImages, OfEveryContainer) {
  auto plugin = NewAlwaysPullImages();
  PodCase pod(R"({"spec":{"initContainers":[{"name":"i","imagePullPolicy":"Never"}],
                  "containers":[{"name":"c","imagePullPolicy":"IfNotPresent"}]}})");
  EXPECT_EQ(pod.Try(*plugin), "");
  EXPECT_EQ(pod.object.spec().init_containers(0).image_pull_policy(), "Always");
  EXPECT_EQ(pod.object.spec().containers(0).image_pull_policy(), "Always");
  // An update that brings no new image leaves all as it is.
  const char* same = R"({"spec":{"containers":[{"name":"c","image":"i","imagePullPolicy":"Never"}]}})";
  PodCase update(same);
  EXPECT_EQ(update.Was(same).Try(*plugin), "");
  EXPECT_EQ(update.object.spec().containers(0).image_pull_policy(), "Never");
}

TEST(DenyServiceExternalIPs, OnlyWhatThereWas) {
  auto plugin = NewDenyExternalIps();
  using ServiceCase = Case<corev1::Service>;
  const char *none = R"({"metadata":{"name":"s"},"spec":{}})",
             *one = R"({"metadata":{"name":"s"},"spec":{"externalIPs":["192.0.2.1"]}})",
             *two = R"({"metadata":{"name":"s"},"spec":{"externalIPs":["192.0.2.1","192.0.2.2"]}})";
  EXPECT_EQ(ServiceCase(none).Try(*plugin), "");
  EXPECT_EQ(ServiceCase(one).Try(*plugin),
            "services \"s\" is forbidden: Use of external IPs is denied by admission control");
  EXPECT_EQ(ServiceCase(one).Was(two).Try(*plugin), "");
  EXPECT_NE(ServiceCase(two).Was(one).Try(*plugin), "");
  EXPECT_NE(ServiceCase(one).Was(none).Try(*plugin), "");
}

TEST(ExtendedResourceToleration, OncePerResource) {
  auto plugin = NewExtendedResourceToleration();
  PodCase pod(R"({"spec":{"containers":[
      {"name":"a","resources":{"requests":{"example.com/gpu":"1","cpu":"1"}}},
      {"name":"b","resources":{"requests":{"example.com/gpu":"1"}}}]}})");
  EXPECT_EQ(pod.Try(*plugin), "");
  ASSERT_EQ(pod.object.spec().tolerations_size(), 1);
  EXPECT_EQ(pod.object.spec().tolerations(0).key(), "example.com/gpu");
}

TEST(StorageProtection, FinalizersOnce) {
  auto plugin = NewStorageProtection();
  Case<corev1::PersistentVolume> volume(R"({"metadata":{"finalizers":["kubernetes.io/pv-protection"]}})");
  EXPECT_EQ(volume.Try(*plugin), "");
  EXPECT_EQ(volume.object.metadata().finalizers_size(), 1);
  Case<corev1::PersistentVolumeClaim> claim("{}");
  EXPECT_EQ(claim.Try(*plugin), "");
  EXPECT_EQ(claim.object.metadata().finalizers(0), "kubernetes.io/pvc-protection");
  Case<api::storage::v1::VolumeAttributesClass> attributes("{}");
  EXPECT_EQ(attributes.Try(*plugin), "");
  ASSERT_EQ(attributes.object.metadata().finalizers_size(), 1);
  EXPECT_EQ(attributes.object.metadata().finalizers(0), "kubernetes.io/vac-protection");
}

TEST(EventRateLimit, EachKeyHasItsBucket) {
  auto plugin = NewEventRateLimit({{{"Namespace", 1, 2, 16}}});
  auto send = [&](std::string_view ns) {
    Case<corev1::Event> event("{}", ns);
    std::string said = event.Try(*plugin);
    if (!said.empty()) {
      EXPECT_EQ(event.code, Code::kTooManyRequests);
    }
    return said;
  };
  EXPECT_EQ(send("a"), "");
  EXPECT_EQ(send("a"), "");
  EXPECT_EQ(send("a"), "Too many requests: limit reached on type Namespace for key a");
  EXPECT_EQ(send("b"), "");
}

TEST(OwnerReferences, NeedTheirRights) {
  const char* free = R"({"metadata":{"name":"p"}})";
  const char* owned =
      R"({"metadata":{"name":"p","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet",
                          "name":"r","uid":"1","blockOwnerDeletion":true}]}})";
  auto ask = [&](std::vector<std::string> allowed) {
    auto plugin = NewOwnerReferences(std::make_shared<FakeAuthorizer>(std::move(allowed)), api::FindKind);
    PodCase pod(owned);
    return pod.Was(free).Try(*plugin);
  };
  EXPECT_THAT(ask({}), HasSubstr("cannot set an ownerRef on a resource you can't delete"));
  EXPECT_THAT(ask({"delete pods p"}),
              HasSubstr("cannot set blockOwnerDeletion if an ownerReference refers to a "
                        "resource you can't set finalizers on"));
  EXPECT_EQ(ask({"delete pods p", "update replicasets/finalizers r"}), "");
  auto plugin =
      NewOwnerReferences(std::make_shared<FakeAuthorizer>(std::vector<std::string>()), api::FindKind);
  PodCase same(owned);
  EXPECT_EQ(same.Was(owned).Try(*plugin), "");
}

TEST(OwnerReferences, OwnersOfCustomKinds) {
  const char* free = R"({"metadata":{"name":"p"}})";
  const char* owned =
      R"({"metadata":{"name":"p","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Widget",
                          "name":"w","uid":"1","blockOwnerDeletion":true}]}})";
  api::ResourceInfo widgets{};
  widgets.group = "example.com";
  widgets.version = "v1";
  widgets.resource = "widgets";
  widgets.namespaced = true;
  bool served = false;
  auto ask = [&](std::vector<std::string> allowed) {
    auto plugin =
        NewOwnerReferences(std::make_shared<FakeAuthorizer>(std::move(allowed)),
                           [&](std::string_view group, std::string_view version, std::string_view kind) {
                             const bool found = group == "example.com" && version == "v1" && kind == "Widget";
                             return served && found ? &widgets : nullptr;
                           });
    PodCase pod(owned);
    return pod.Was(free).Try(*plugin);
  };
  EXPECT_THAT(ask({"delete pods p", "update widgets/finalizers w"}),
              HasSubstr("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for "
                        "APIVersion example.com/v1 Kind Widget"));
  served = true;
  EXPECT_THAT(ask({"delete pods p"}),
              HasSubstr("cannot set blockOwnerDeletion if an ownerReference refers to a "
                        "resource you can't set finalizers on"));
  EXPECT_EQ(ask({"delete pods p", "update widgets/finalizers w"}), "");
}

TEST(Certificates, SignersNeedTheirRights) {
  using Csr = api::certificates::v1::CertificateSigningRequest;
  const char* csr = R"({"metadata":{"name":"r"},"spec":{"signerName":"example.com/s"}})";
  const char* failed = R"({"metadata":{"name":"r"},"spec":{"signerName":"example.com/s"},
                           "status":{"conditions":[{"type":"Failed","status":"True"}]}})";
  auto with = [](std::vector<std::string> allowed) {
    return std::make_shared<FakeAuthorizer>(std::move(allowed));
  };
  Case<Csr> request(csr);
  request.Was(csr);
  const char* approval = "certificatesigningrequests/approval";
  EXPECT_THAT(request.Try(*NewCertificateApproval(with({})), {}, approval),
              HasSubstr("user not permitted to approve requests with signerName \"example.com/s\""));
  EXPECT_EQ(request.Try(*NewCertificateApproval(with({"approve signers example.com/s"})), {}, approval), "");
  EXPECT_EQ(request.Try(*NewCertificateApproval(with({"approve signers example.com/*"})), {}, approval), "");
  const char* status = "certificatesigningrequests/status";
  EXPECT_EQ(request.Try(*NewCertificateSigning(with({})), {}, status), "");  // signs nothing
  Case<Csr> signing(failed);
  EXPECT_THAT(signing.Was(csr).Try(*NewCertificateSigning(with({})), {}, status),
              HasSubstr("user not permitted to sign requests with signerName \"example.com/s\""));
}

// A request for a certificate, in PEM.
std::string RequestFor(const char* organization, const char* name = "somebody") {
  return *crypto::NewCertificateRequest(*crypto::NewPrivateKey(), {name, {organization}, {}, {}});
}

TEST(Certificates, NobodyBecomesMasterByOne) {
  using Csr = api::certificates::v1::CertificateSigningRequest;
  auto ask = [](const char* organization, const char* signer) {
    Case<Csr> request("{}", "");
    request.object.mutable_metadata()->set_name("r");
    request.object.mutable_spec()->set_signer_name(signer);
    request.object.mutable_spec()->set_request(RequestFor(organization));
    return request.Try(*NewCertificateSubjectRestriction());
  };
  EXPECT_THAT(
      ask("system:masters", "kubernetes.io/kube-apiserver-client"),
      HasSubstr(
          "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"));
  EXPECT_EQ(ask("developers", "kubernetes.io/kube-apiserver-client"), "");
  EXPECT_EQ(ask("system:masters", "example.com/other"), "");
}

class NodeRestrictionTest : public testing::Test {
 protected:
  NodeRestrictionTest() {
    etcd::ClientOptions nowhere;
    nowhere.endpoints = {"http://127.0.0.1:1"};  // nothing is asked: the caches stay empty
    store_ =
        std::make_unique<storage::Store>(std::make_shared<etcd::Client>(nowhere), storage::Store::Options());
    plugin_ = NewNodeRestriction(*store_);
  }
  const User kubelet_{"system:node:n1", "", {"system:nodes"}, {}};
  std::unique_ptr<storage::Store> store_;
  PluginPtr plugin_;
};

TEST_F(NodeRestrictionTest, PodsOfANode) {
  struct {
    const char *pod, *says;
  } cases[] = {
      {R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n1"}})",
       "node \"n1\" can only create pods with an owner reference set to itself"},
      {R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[
           {"apiVersion":"v1","kind":"Node","name":"n1","uid":"1"}]},"spec":{"nodeName":"n1"}})",
       "node \"n1\" can only create pods with a controller owner reference set to itself"},
      {R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[
           {"apiVersion":"v1","kind":"Node","name":"n1","uid":"1","controller":true,"blockOwnerDeletion":true}]},
           "spec":{"nodeName":"n1"}})",
       "node \"n1\" must not set blockOwnerDeletion on an owner reference"},
      {R"({"spec":{"nodeName":"n1"}})", "can only create mirror pods"},
      {R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"n2"}})",
       "node \"n1\" can only create pods with spec.nodeName set to itself"},
      {R"({"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"},"ownerReferences":[
           {"apiVersion":"v1","kind":"Node","name":"n2","uid":"1"}]},"spec":{"nodeName":"n1"}})",
       "node \"n1\" can only create pods with an owner reference set to itself"},
  };
  for (const auto& one : cases) {
    PodCase pod(one.pod);
    EXPECT_THAT(pod.Try(*plugin_, kubelet_), HasSubstr(one.says)) << one.pod;
    EXPECT_EQ(pod.Try(*plugin_, {"alice", "", {}, {}}), "");  // no node
  }
  const char* mine = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})";
  PodCase labelled(R"({"metadata":{"name":"p","labels":{"a":"b"}},"spec":{"nodeName":"n1"}})");
  EXPECT_THAT(labelled.Was(mine).Try(*plugin_, kubelet_, "pods/status"),
              HasSubstr("node \"n1\" cannot update labels through pod status"));
}

TEST_F(NodeRestrictionTest, LabelsAndTaintsOfANode) {
  struct {
    const char *now, *before, *says;
  } cases[] = {
      {R"({"metadata":{"name":"n1","labels":{"kubernetes.io/hostname":"n1","a":"b"}}})", nullptr, ""},
      {R"({"metadata":{"name":"n2"}})", nullptr, "node \"n1\" is not allowed to modify node \"n2\""},
      {R"({"metadata":{"name":"n1","labels":{"x.node-restriction.kubernetes.io/a":"b","other.k8s.io/b":"c"}}})",
       nullptr,
       "node \"n1\" is not allowed to set the following labels: other.k8s.io/b, "
       "x.node-restriction.kubernetes.io/a"},
      {R"({"metadata":{"name":"n1","labels":{"node.kubernetes.io/a":"b","sub.kubelet.kubernetes.io/a":"b"}}})",
       nullptr, ""},
      {R"({"metadata":{"name":"n1"}})",
       R"({"metadata":{"name":"n1","labels":{"node-restriction.kubernetes.io/a":"b"}}})",
       "is not allowed to modify labels: node-restriction.kubernetes.io/a"},
      {R"({"metadata":{"name":"n1"}})",
       R"({"metadata":{"name":"n1"},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}})",
       "node \"n1\" is not allowed to modify taints"},
  };
  for (const auto& one : cases) {
    Case<corev1::Node> node(one.now, "");
    if (one.before) node.Was(one.before);
    const std::string said = node.Try(*plugin_, kubelet_);
    EXPECT_THAT(said, HasSubstr(one.says)) << one.now;
    EXPECT_EQ(said.empty(), *one.says == 0) << said;
  }
}

TEST_F(NodeRestrictionTest, LeasesAndClaims) {
  using Lease = api::coordination::v1::Lease;
  EXPECT_EQ(Case<Lease>(R"({"metadata":{"name":"n1"}})", "kube-node-lease").Try(*plugin_, kubelet_), "");
  EXPECT_THAT(Case<Lease>(R"({"metadata":{"name":"n2"}})", "kube-node-lease").Try(*plugin_, kubelet_),
              HasSubstr("can only access node lease with the same name as the requesting node"));
  EXPECT_THAT(Case<Lease>(R"({"metadata":{"name":"n1"}})").Try(*plugin_, kubelet_),
              HasSubstr("can only access leases in the \"kube-node-lease\" system namespace"));
  using Claim = corev1::PersistentVolumeClaim;
  const char *row = "persistentvolumeclaims/status", *before = R"({"metadata":{"name":"c"}})";
  Case<Claim> grown(R"({"metadata":{"name":"c"},"status":{"capacity":{"storage":"2Gi"}}})");
  EXPECT_EQ(grown.Was(before).Try(*plugin_, kubelet_, row), "");
  Case<Claim> labelled(R"({"metadata":{"name":"c","labels":{"a":"b"}}})");
  EXPECT_THAT(labelled.Was(before).Try(*plugin_, kubelet_, row),
              HasSubstr("node \"n1\" is not allowed to update fields other than status.quantity and "
                        "status.conditions"));
}

TEST_F(NodeRestrictionTest, Certificates) {
  const char *client = "kubernetes.io/kube-apiserver-client-kubelet",
             *serving = "kubernetes.io/kubelet-serving";
  const std::string other = "can only create a node CSR with CN=system:node:n1";
  struct {
    const char* signer;
    std::string request, says;
  } rows[] = {
      {client, RequestFor("system:nodes", "system:node:n1"), ""},
      {serving, RequestFor("system:nodes", "system:node:n1"), ""},
      {client, RequestFor("system:nodes", "system:node:n2"), other},
      {serving, RequestFor("system:nodes", "system:node:n2"), other},
      {"example.com/s", RequestFor("people", "jane"), ""},
      {serving, "junk", "unable to parse csr: "},
  };
  for (const auto& row : rows) {
    Case<api::certificates::v1::CertificateSigningRequest> csr(R"({"metadata":{"name":"r"}})", "");
    csr.object.mutable_spec()->set_signer_name(row.signer);
    csr.object.mutable_spec()->set_request(row.request);
    const std::string said = csr.Try(*plugin_, kubelet_);
    EXPECT_THAT(said, HasSubstr(row.says)) << row.signer;
    EXPECT_EQ(said.empty(), row.says.empty()) << said;
  }
}

TEST_F(NodeRestrictionTest, SlicesAndCsiNodes) {
  using Slice = api::resource::v1::ResourceSlice;
  const char *mine = R"({"metadata":{"name":"s"},"spec":{"nodeName":"n1"}})",
             *other = R"({"metadata":{"name":"s"},"spec":{"nodeName":"n2"}})";
  EXPECT_EQ(Case<Slice>(mine, "").Try(*plugin_, kubelet_), "");
  EXPECT_THAT(Case<Slice>(other, "").Try(*plugin_, kubelet_),
              HasSubstr("can only create ResourceSlice with the same NodeName as the requesting node"));
  using CsiNode = api::storage::v1::CSINode;
  EXPECT_EQ(Case<CsiNode>(R"({"metadata":{"name":"n1"}})", "").Try(*plugin_, kubelet_), "");
  EXPECT_THAT(Case<CsiNode>(R"({"metadata":{"name":"n2"}})", "").Try(*plugin_, kubelet_),
              HasSubstr("can only access CSINode with the same name as the requesting node"));
}

TEST_F(NodeRestrictionTest, ClaimStatusesOfPods) {
  const char* before = R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"}})";
  PodCase pod(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"},
                  "status":{"resourceClaimStatuses":[{"name":"a","resourceClaimName":"b"}]}})");
  EXPECT_THAT(pod.Was(before).Try(*plugin_, kubelet_, "pods/status"),
              HasSubstr("node \"n1\" cannot update resource claim statues"));
  // It would give the node the claim that it names.
  PodCase extended(R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"},
                       "status":{"extendedResourceClaimStatus":{"resourceClaimName":"b"}}})");
  EXPECT_THAT(extended.Was(before).Try(*plugin_, kubelet_, "pods/status"),
              HasSubstr("node \"n1\" cannot update extended resource claim status"));
}

}  // namespace
}  // namespace keelson::apiserver
