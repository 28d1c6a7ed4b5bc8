// Namespaces, nodes, secrets, quotas, access rules, priorities and certificates.
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/api/proto/scheduling_v1.pb.h"
#include "lib/k8s/defaulting/table.h"

namespace keelson::k8s {

namespace schedulingv1 = api::scheduling::v1;

namespace {

constexpr char kMetadataName[] = "kubernetes.io/metadata.name";
constexpr char kRbacGroup[] = "rbac.authorization.k8s.io";

void DefaultNamespace(corev1::Namespace& object) {
  const std::string& name = object.metadata().name();
  if (!name.empty()) (*object.mutable_metadata()->mutable_labels())[kMetadataName] = name;
  if (object.status().phase().empty()) object.mutable_status()->set_phase("Active");
}

// podCIDR is the first of podCIDRs. An old client may set podCIDR alone; then it decides.
void DefaultPodCidrs(corev1::NodeSpec& spec) {
  if (!spec.pod_cidr().empty() && (spec.pod_cidrs().empty() || spec.pod_cidr() != spec.pod_cidrs(0))) {
    spec.clear_pod_cidrs();
    spec.add_pod_cidrs(spec.pod_cidr());
  } else if (spec.pod_cidr().empty() && !spec.pod_cidrs().empty()) {
    spec.set_pod_cidr(spec.pod_cidrs(0));
  }
}

void DefaultNode(corev1::Node& object) {
  if (object.has_spec()) DefaultPodCidrs(*object.mutable_spec());
  if (!object.has_status()) return;
  corev1::NodeStatus& status = *object.mutable_status();
  RoundQuantities(*status.mutable_capacity());
  RoundQuantities(*status.mutable_allocatable());
  if (status.allocatable().empty()) *status.mutable_allocatable() = status.capacity();
}

void DefaultPodCertificate(api::certificates::v1beta1::PodCertificateRequest& object) {
  auto& spec = *object.mutable_spec();
  if (!spec.has_max_expiration_seconds()) spec.set_max_expiration_seconds(24 * 3600);
}

void DefaultSecret(corev1::Secret& object) {
  if (object.type().empty()) object.set_type("Opaque");
}

void DefaultQuota(corev1::ResourceQuota& object) {
  if (object.has_spec()) RoundQuantities(*object.mutable_spec()->mutable_hard());
  if (!object.has_status()) return;
  RoundQuantities(*object.mutable_status()->mutable_hard());
  RoundQuantities(*object.mutable_status()->mutable_used());
}

void Inherit(QuantityMap& to, const QuantityMap& from) {
  for (const auto& [name, quantity] : from) to.insert({name, quantity});
}

void DefaultLimitRange(corev1::LimitRange& object) {
  if (!object.has_spec()) return;
  for (corev1::LimitRangeItem& item : *object.mutable_spec()->mutable_limits()) {
    for (QuantityMap* map : {item.mutable_max(), item.mutable_min(), item.mutable_default_(),
                             item.mutable_default_request(), item.mutable_max_limit_request_ratio()}) {
      RoundQuantities(*map);
    }
    if (item.type() != "Container") continue;
    Inherit(*item.mutable_default_(), item.max());
    Inherit(*item.mutable_default_request(), item.default_());
    Inherit(*item.mutable_default_request(), item.min());
  }
}

void DefaultRoleRef(rbacv1::RoleRef& ref) {
  if (ref.api_group().empty()) ref.set_api_group(kRbacGroup);
}

void DefaultSubjects(google::protobuf::RepeatedPtrField<rbacv1::Subject>& subjects) {
  for (rbacv1::Subject& subject : subjects) {
    if (!subject.api_group().empty()) continue;
    if (subject.kind() == "User" || subject.kind() == "Group") subject.set_api_group(kRbacGroup);
  }
}

template <typename T>
void DefaultRoleBinding(T& object) {
  DefaultRoleRef(*object.mutable_role_ref());
  DefaultSubjects(*object.mutable_subjects());
}

void DefaultPriorityClass(schedulingv1::PriorityClass& object) {
  if (!object.has_preemption_policy()) object.set_preemption_policy("PreemptLowerPriority");
}

}  // namespace

void RegisterConfigDefaults(DefaultTable& table) {
  table.Add<api::certificates::v1beta1::PodCertificateRequest, DefaultPodCertificate>();
  table.Add<corev1::Namespace, DefaultNamespace>();
  table.Add<corev1::Node, DefaultNode>();
  table.Add<corev1::Secret, DefaultSecret>();
  table.Add<corev1::ResourceQuota, DefaultQuota>();
  table.Add<corev1::LimitRange, DefaultLimitRange>();
  table.Add<rbacv1::RoleBinding, DefaultRoleBinding<rbacv1::RoleBinding>>();
  table.Add<rbacv1::ClusterRoleBinding, DefaultRoleBinding<rbacv1::ClusterRoleBinding>>();
  table.Add<schedulingv1::PriorityClass, DefaultPriorityClass>();
}

}  // namespace keelson::k8s
