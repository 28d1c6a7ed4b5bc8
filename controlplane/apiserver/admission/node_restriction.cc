// NodeRestriction: limits a kubelet's writes to its own node: Node, Lease, CSINode, the pods bound to it and
// their objects. The Node authorizer limits reads; handlers/node_token_restriction.h limits TokenRequests.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/certificate_request.h"
#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/authz/node.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/k8s/pods/pod_util.h"

namespace keelson::apiserver {
namespace {

using Keys = std::set<std::string, std::less<>>;
namespace resourcev1 = api::resource::v1;

constexpr char kLeaseNamespace[] = "kube-node-lease";

// Labels in Kubernetes' domains that kubelets may set.
const Keys kKubeletLabels = {"kubernetes.io/hostname",
                             "kubernetes.io/os",
                             "kubernetes.io/arch",
                             "beta.kubernetes.io/os",
                             "beta.kubernetes.io/arch",
                             "beta.kubernetes.io/instance-type",
                             "node.kubernetes.io/instance-type",
                             "topology.kubernetes.io/zone",
                             "topology.kubernetes.io/region",
                             "failure-domain.beta.kubernetes.io/zone",
                             "failure-domain.beta.kubernetes.io/region"};

// True for the domain and its subdomains.
bool IsIn(std::string_view domain, std::string_view parent) {
  if (domain == parent) return true;
  return domain.size() > parent.size() + 1 && domain.substr(domain.size() - parent.size()) == parent &&
         domain[domain.size() - parent.size() - 1] == '.';
}

// Labels that could attract pods meant for other nodes.
bool IsForbiddenLabel(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view domain = key.substr(0, slash);
  if (IsIn(domain, "node-restriction.kubernetes.io")) return true;
  if (!IsIn(domain, "kubernetes.io") && !IsIn(domain, "k8s.io")) return false;
  return !kKubeletLabels.count(key) && !IsIn(domain, "kubelet.kubernetes.io") &&
         !IsIn(domain, "node.kubernetes.io");
}

using LabelMap = google::protobuf::Map<std::string, std::string>;
Keys ForbiddenChanges(const LabelMap& now, const LabelMap& before) {
  Keys keys;
  auto look = [&](const LabelMap& a, const LabelMap& b) {
    for (const auto& label : a) {
      auto other = b.find(label.first);
      const bool same = other != b.end() && other->second == label.second;
      if (!same && IsForbiddenLabel(label.first)) keys.insert(label.first);
    }
  };
  look(now, before);
  look(before, now);
  return keys;
}

template <typename T>
bool SameAll(const google::protobuf::RepeatedPtrField<T>& a, const google::protobuf::RepeatedPtrField<T>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const T& x, const T& y) {
           return api::EncodeRaw(x) == api::EncodeRaw(y);
         });
}

class NodeRestriction : public AdmissionPlugin {
 public:
  explicit NodeRestriction(storage::Store& store) : store_(store) {}
  std::string_view name() const override { return "NodeRestriction"; }

  // Runs before fields are copied from the stored object, to see what the node sent.
  Result<> Mutate(const AdmissionRequest& request) override {
    if (!request.user.InGroup(kGroupNodes)) return {};
    const std::string node = NodeNameOf(request.user);
    if (node.empty()) {
      if (request.user.name.rfind(kUserNodePrefix, 0) != 0) return {};
      return NotAdmitted(request,
                         fmt::format("could not determine node from user \"{}\"", request.user.name));
    }
    const Scope scope{request, node};
    const std::string_view group = request.info.group, resource = request.MainResource();
    const std::string_view subresource = request.Subresource();
    if (group.empty() && resource == "nodes") return CheckNode(scope);
    if (group.empty() && resource == "pods") {
      if (subresource.empty()) return CheckPod(scope);
      if (subresource == "status") return CheckPodStatus(scope);
      if (subresource == "eviction") return CheckEviction(scope);
      return scope.Refuse(fmt::format(
          "unexpected pod subresource \"{}\", only 'status' and 'eviction' are allowed", subresource));
    }
    if (group.empty() && resource == "persistentvolumeclaims") {
      if (subresource == "status") return CheckClaimStatus(scope);
      return scope.Refuse("may only update PVC status");
    }
    if (group == "coordination.k8s.io" && resource == "leases") return CheckLease(scope);
    if (group == "storage.k8s.io" && resource == "csinodes") {
      if (scope.ObjectName() == node) return {};
      return scope.Refuse("can only access CSINode with the same name as the requesting node");
    }
    if (group == "resource.k8s.io" && resource == "resourceslices") return CheckSlice(scope);
    if (group == "certificates.k8s.io" && resource == "certificatesigningrequests") return CheckCsr(scope);
    if (group == "certificates.k8s.io" && resource == "podcertificaterequests") {
      return CheckPodCertificate(scope);
    }
    return {};
  }

 private:
  struct Scope {
    const AdmissionRequest& request;
    const std::string& node;
    Result<> Refuse(std::string_view why) const { return NotAdmitted(request, why); }
    Result<> RefuseNode(std::string_view why) const {
      return NotAdmitted(request, fmt::format("node \"{}\" {}", node, why));
    }
    std::string ObjectName() const {
      return request.name.empty() && request.object ? api::Meta(*request.object).name()
                                                    : std::string(request.name);
    }
  };

  static Result<> CheckNode(const Scope& scope) {
    const AdmissionRequest& request = scope.request;
    if (const std::string name = scope.ObjectName(); name != scope.node) {
      return scope.RefuseNode(fmt::format("is not allowed to modify node \"{}\"", name));
    }
    if (request.Creates()) {
      const Keys bad = ForbiddenChanges(request.Object<corev1::Node>().metadata().labels(), {});
      if (bad.empty()) return {};
      return scope.RefuseNode(
          fmt::format("is not allowed to set the following labels: {}", fmt::join(bad, ", ")));
    }
    if (!request.Updates()) return {};
    const auto &now = request.Object<corev1::Node>(), &before = request.OldObject<corev1::Node>();
    if (!SameAll(now.spec().taints(), before.spec().taints())) {
      return scope.RefuseNode("is not allowed to modify taints");
    }
    if (!SameAll(now.metadata().owner_references(), before.metadata().owner_references())) {
      return scope.RefuseNode("is not allowed to modify ownerReferences");
    }
    const Keys bad = ForbiddenChanges(now.metadata().labels(), before.metadata().labels());
    if (bad.empty()) return {};
    return scope.Refuse(fmt::format("is not allowed to modify labels: {}", fmt::join(bad, ", ")));
  }

  Result<> CheckPod(const Scope& scope) {
    const AdmissionRequest& request = scope.request;
    if (request.Creates()) return CheckPodCreate(scope, request.Object<corev1::Pod>());
    if (!request.Deletes()) {
      return scope.Refuse(
          fmt::format("unexpected operation \"UPDATE\", node \"{}\" can only create and delete "
                      "mirror pods",
                      scope.node));
    }
    if (request.OldObject<corev1::Pod>().spec().node_name() == scope.node) return {};
    return scope.RefuseNode("can only delete pods with spec.nodeName set to itself");
  }

  Result<> CheckPodCreate(const Scope& scope, const corev1::Pod& pod) {
    if (!k8s::IsMirror(pod)) {
      return scope.Refuse(
          fmt::format("pod does not have \"{}\" annotation, node \"{}\" can only create mirror "
                      "pods",
                      k8s::kMirrorAnnotation, scope.node));
    }
    if (pod.spec().node_name() != scope.node) {
      return scope.RefuseNode("can only create pods with spec.nodeName set to itself");
    }
    KEELSON_RETURN_IF_ERROR(CheckOwner(scope, pod.metadata()));
    if (!pod.spec().service_account_name().empty()) {
      return scope.RefuseNode("can not create pods that reference a service account");
    }
    if (!k8s::ReferencedSecrets(pod.spec()).empty()) {
      return scope.RefuseNode("can not create pods that reference secrets");
    }
    if (!k8s::ReferencedConfigMaps(pod.spec()).empty()) {
      return scope.RefuseNode("can not create pods that reference configmaps");
    }
    for (const corev1::Volume& volume : pod.spec().volumes()) {
      const auto& source = volume.volume_source();
      for (const auto& projection : source.projected().sources()) {
        if (projection.has_cluster_trust_bundle()) {
          return scope.RefuseNode("can not create pods that reference clustertrustbundles");
        }
        if (projection.has_pod_certificate()) {
          return scope.RefuseNode("can not create pods that reference podcertificates");
        }
      }
      if (source.has_persistent_volume_claim() || source.has_ephemeral()) {
        return scope.RefuseNode("can not create pods that reference persistentvolumeclaims");
      }
    }
    if (pod.spec().resource_claims_size() > 0) {
      return scope.RefuseNode("can not create pods that reference resourceclaims");
    }
    return {};
  }

  Result<> CheckOwner(const Scope& scope, const metav1::ObjectMeta& meta) {
    if (meta.owner_references_size() > 1) {
      return scope.RefuseNode("can only create pods with a single owner reference set to itself");
    }
    if (meta.owner_references().empty()) {
      return scope.RefuseNode("can only create pods with an owner reference set to itself");
    }
    const metav1::OwnerReference& owner = meta.owner_references(0);
    if (owner.api_version() != "v1" || owner.kind() != "Node" || owner.name() != scope.node) {
      return scope.RefuseNode("can only create pods with an owner reference set to itself");
    }
    if (!owner.controller()) {
      return scope.RefuseNode("can only create pods with a controller owner reference set to itself");
    }
    if (owner.block_owner_deletion()) {
      return scope.RefuseNode("must not set blockOwnerDeletion on an owner reference");
    }
    const api::ResourceInfo& nodes = api::ResourceOf<corev1::Node>();
    storage::ObjectPtr stored = store_.Peek(nodes, scope.node);
    if (!stored) return registry::NotFoundError(nodes, scope.node);
    const std::string uid = api::Meta(*stored->Decode()).uid();
    if (owner.uid() == uid) return {};
    return scope.Refuse(
        fmt::format("node {} UID mismatch: expected {} got {}", scope.node, owner.uid(), uid));
  }

  static Result<> CheckPodStatus(const Scope& scope) {
    const AdmissionRequest& request = scope.request;
    if (!request.Updates()) return scope.Refuse(UnexpectedOperation(request));
    const auto &now = request.Object<corev1::Pod>(), &before = request.OldObject<corev1::Pod>();
    if (before.spec().node_name() != scope.node) {
      return scope.RefuseNode("can only update pod status for pods with spec.nodeName set to itself");
    }
    const auto &labels = now.metadata().labels(), &old_labels = before.metadata().labels();
    const bool same = labels.size() == old_labels.size() &&
                      std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
                        auto found = old_labels.find(label.first);
                        return found != old_labels.end() && found->second == label.second;
                      });
    if (!same) return scope.RefuseNode("cannot update labels through pod status");
    if (!SameAll(now.status().resource_claim_statuses(), before.status().resource_claim_statuses())) {
      return scope.RefuseNode("cannot update resource claim statues");  // upstream's spelling
    }
    if (api::EncodeRaw(now.status().extended_resource_claim_status()) !=
        api::EncodeRaw(before.status().extended_resource_claim_status())) {
      return scope.RefuseNode("cannot update extended resource claim status");
    }
    return {};
  }

  Result<> CheckEviction(const Scope& scope) {
    const AdmissionRequest& request = scope.request;
    storage::ObjectPtr found =
        store_.Peek(api::ResourceOf<corev1::Pod>(), api::KeyOf(request.ns, scope.ObjectName()));
    if (!found) return {};
    auto pod = std::static_pointer_cast<const corev1::Pod>(found->Decode());
    if (pod->spec().node_name() == scope.node) return {};
    return scope.Refuse(
        fmt::format("node {} can only evict pods with spec.nodeName set to itself", scope.node));
  }

  static Result<> CheckClaimStatus(const Scope& scope) {
    const AdmissionRequest& request = scope.request;
    if (!request.Updates()) return scope.Refuse(UnexpectedOperation(request));
    auto rest = [](corev1::PersistentVolumeClaim claim) {
      claim.mutable_metadata()->clear_resource_version();
      claim.mutable_metadata()->clear_managed_fields();
      corev1::PersistentVolumeClaimStatus& status = *claim.mutable_status();
      status.clear_capacity();
      status.clear_conditions();
      status.clear_allocated_resources();
      status.clear_allocated_resource_statuses();
      return api::EncodeRaw(claim);
    };
    if (rest(request.Object<corev1::PersistentVolumeClaim>()) ==
        rest(request.OldObject<corev1::PersistentVolumeClaim>())) {
      return {};
    }
    return scope.RefuseNode(
        "is not allowed to update fields other than status.quantity and status.conditions");
  }

  static Result<> CheckLease(const Scope& scope) {
    if (scope.request.ns != kLeaseNamespace) {
      return scope.Refuse(
          fmt::format("can only access leases in the \"{}\" system namespace", kLeaseNamespace));
    }
    if (scope.ObjectName() == scope.node) return {};
    return scope.Refuse("can only access node lease with the same name as the requesting node");
  }

  static Result<> CheckSlice(const Scope& scope) {
    const AdmissionRequest& request = scope.request;
    const api::Message* object = request.Creates() ? request.object : request.old_object;
    if (!object || static_cast<const resourcev1::ResourceSlice*>(object)->spec().node_name() == scope.node) {
      return {};
    }
    return scope.Refuse(fmt::format("can only {} ResourceSlice with the same NodeName as the requesting node",
                                    request.Creates()   ? "create"
                                    : request.Updates() ? "update"
                                                        : "delete"));
  }

  // A kubelet may request certificates for its own node only, whichever signer.
  static Result<> CheckCsr(const Scope& scope) {
    if (!scope.request.Creates() || !scope.request.Subresource().empty()) return {};
    const auto& csr = scope.request.Object<api::certificates::v1::CertificateSigningRequest>();
    const std::string& signer = csr.spec().signer_name();
    if (signer != "kubernetes.io/kubelet-serving" &&
        signer != "kubernetes.io/kube-apiserver-client-kubelet") {
      return {};
    }
    Result<crypto::CertificateSubject> subject = SubjectOfRequest(csr.spec().request());
    if (!subject) return scope.Refuse(fmt::format("unable to parse csr: {}", subject.error().message()));
    const std::string name = fmt::format("{}{}", kUserNodePrefix, scope.node);
    if (subject->common_name == name) return {};
    return scope.Refuse(fmt::format("can only create a node CSR with CN={}", name));
  }

  // The stored object that a request names; null: it does not exist.
  template <typename T>
  std::shared_ptr<const T> Stored(const std::string& key) const {
    storage::ObjectPtr found = store_.Peek(api::ResourceOf<T>(), key);
    return found ? std::static_pointer_cast<const T>(found->Decode()) : nullptr;
  }

  // Only for the node's own pods, as they are. If the two sides may just have seen different versions, the
  // error is retriable.
  Result<> CheckPodCertificate(const Scope& scope) const {
    const AdmissionRequest& request = scope.request;
    if (!request.Creates()) return scope.Refuse(UnexpectedOperation(request));
    if (!request.Subresource().empty()) {
      return scope.Refuse(fmt::format("unexpected subresource {}", request.Subresource()));
    }
    const auto& spec = request.Object<api::certificates::v1beta1::PodCertificateRequest>().spec();
    auto later = [](std::string why) { return Error(Code::kInternal, std::move(why)); };
    if (spec.node_name() != scope.node) {
      return scope.Refuse(
          fmt::format("PodCertificateRequest.Spec.NodeName=\"{}\", which is not the requesting node \"{}\"",
                      spec.node_name(), scope.node));
    }
    const std::string pod_key = api::KeyOf(request.ns, spec.pod_name()),
                      account_key = api::KeyOf(request.ns, spec.service_account_name());
    const std::string subject = fmt::format("PodCertificateRequest for pod \"{}\"", pod_key);
    const auto node = Stored<corev1::Node>(scope.node);
    if (!node) {
      return later(fmt::format(
          "while retrieving node \"{0}\" named in the PodCertificateRequest: node \"{0}\" not found",
          scope.node));
    }
    if (node->metadata().uid() != spec.node_uid()) {
      return later(fmt::format("{} names node UID \"{}\", inconsistent with the running node (\"{}\")",
                               subject, spec.node_uid(), node->metadata().uid()));
    }
    const auto pod = Stored<corev1::Pod>(pod_key);
    if (!pod) {
      return later(
          fmt::format("while retrieving pod \"{}\" named in the PodCertificateRequest: pod \"{}\" not found",
                      pod_key, spec.pod_name()));
    }
    if (pod->metadata().uid() != spec.pod_uid()) {
      return later(fmt::format("{} contains pod UID (\"{}\") which differs from running pod \"{}\"", subject,
                               spec.pod_uid(), pod->metadata().uid()));
    }
    if (pod->spec().node_name() != scope.node) {
      return scope.Refuse(
          fmt::format("pod \"{}\" is not running on node \"{}\" named in the PodCertificateRequest", pod_key,
                      spec.node_name()));
    }
    if (k8s::IsMirror(*pod)) return scope.Refuse(fmt::format("pod \"{}\" is a mirror pod", pod_key));
    if (pod->spec().service_account_name() != spec.service_account_name()) {
      return scope.Refuse(
          fmt::format("{} contains serviceAccountName (\"{}\") that differs from running pod (\"{}\")",
                      subject, spec.service_account_name(), pod->spec().service_account_name()));
    }
    const auto account = Stored<corev1::ServiceAccount>(account_key);
    if (!account) {
      return later(
          fmt::format("while retrieving service account \"{}\" named in the PodCertificateRequest: "
                      "serviceaccount \"{}\" not found",
                      account_key, spec.service_account_name()));
    }
    if (account->metadata().uid() == spec.service_account_uid()) return {};
    return later(fmt::format(
        "{} names service account UID \"{}\", which differs from the running service account (\"{}\")",
        subject, spec.service_account_uid(), account->metadata().uid()));
  }

  static std::string UnexpectedOperation(const AdmissionRequest& request) {
    return fmt::format("unexpected operation \"{}\"", request.Creates()   ? "CREATE"
                                                      : request.Deletes() ? "DELETE"
                                                                          : "UPDATE");
  }

  storage::Store& store_;
};

}  // namespace

PluginPtr NewNodeRestriction(storage::Store& store) { return std::make_unique<NodeRestriction>(store); }

}  // namespace keelson::apiserver
