// Separate from scheme.cc: FindMessage() links every type, which only programs that call it should pay for.
// unity: alone
#include <map>
#include <tuple>

#include "lib/api/proto/admission_v1.pb.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/proto/apiregistration_v1.pb.h"
#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/api/proto/certificates_v1beta1.pb.h"
#include "lib/api/proto/flowcontrol_v1.pb.h"
#include "lib/api/proto/metrics_v1beta1.pb.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/proto/node_v1.pb.h"
#include "lib/api/proto/policy_v1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/proto/scheduling_v1.pb.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/proto/storagemigration_v1beta1.pb.h"
#include "lib/api/scheme.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

using google::protobuf::FileDescriptor;
using Names = std::tuple<std::string_view, std::string_view, std::string_view>;  // group, version, kind
struct ByNames {
  using is_transparent = void;
  bool operator()(const Names& one, const Names& other) const { return one < other; }
};
using Types = std::map<std::tuple<std::string, std::string, std::string>, const Descriptor*, ByNames>;

Types AllTypes() {
  Types types;
  for (const FileDescriptor* file :
       {admission::v1::AdmissionReview::descriptor()->file(),
        admissionregistration::v1::ValidatingWebhookConfiguration::descriptor()->file(),
        apidiscovery::v2::APIGroupDiscoveryList::descriptor()->file(),
        apiextensions::v1::CustomResourceDefinition::descriptor()->file(),
        apiregistration::v1::APIService::descriptor()->file(),
        apps::v1::Deployment::descriptor()->file(),
        authentication::v1::TokenReview::descriptor()->file(),
        authorization::v1::SubjectAccessReview::descriptor()->file(),
        autoscaling::v1::Scale::descriptor()->file(),
        autoscaling::v2::HorizontalPodAutoscaler::descriptor()->file(),
        batch::v1::Job::descriptor()->file(),
        certificates::v1::CertificateSigningRequest::descriptor()->file(),
        certificates::v1beta1::PodCertificateRequest::descriptor()->file(),
        coordination::v1::Lease::descriptor()->file(),
        core::v1::ObjectReference::descriptor()->file(),
        core::v1::ConfigMap::descriptor()->file(),
        core::v1::Container::descriptor()->file(),
        core::v1::Node::descriptor()->file(),
        core::v1::Pod::descriptor()->file(),
        core::v1::Service::descriptor()->file(),
        core::v1::Volume::descriptor()->file(),
        discovery::v1::EndpointSlice::descriptor()->file(),
        events::v1::Event::descriptor()->file(),
        flowcontrol::v1::FlowSchema::descriptor()->file(),
        meta::v1::ObjectMeta::descriptor()->file(),
        metrics::v1beta1::PodMetrics::descriptor()->file(),
        networking::v1::Ingress::descriptor()->file(),
        node::v1::RuntimeClass::descriptor()->file(),
        policy::v1::PodDisruptionBudget::descriptor()->file(),
        rbac::v1::Role::descriptor()->file(),
        resource::v1::ResourceClaim::descriptor()->file(),
        scheduling::v1::PriorityClass::descriptor()->file(),
        storage::v1::StorageClass::descriptor()->file(),
        storagemigration::v1beta1::StorageVersionMigration::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) {
      const Descriptor* type = file->message_type(i);
      GroupVersionKind gvk = GvkOf(type);
      types.emplace(std::tuple(gvk.group, gvk.version, gvk.kind), type);
    }
  }
  return types;
}

}  // namespace

const Descriptor* FindMessage(std::string_view group, std::string_view version, std::string_view kind) {
  static const Types* const types = new Types(AllTypes());
  auto it = types->find(std::tuple(group, version, kind));
  return it == types->end() ? nullptr : it->second;
}

}  // namespace keelson::api
