#include "lib/api/scheme.h"

#include <cstdlib>
#include <memory>
#include <unordered_map>

#include "lib/api/resource_table.h"
#include "lib/base/log.h"

// Types that no other file of lib/api names are linked in by these.
#include "lib/api/proto/admission_v1.pb.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/api/proto/apidiscovery_v2.pb.h"
#include "lib/api/proto/apiextensions_v1.pb.h"
#include "lib/api/proto/apiregistration_v1.pb.h"
#include "lib/api/proto/autoscaling_v2.pb.h"
#include "lib/api/proto/batch_v1.pb.h"
#include "lib/api/proto/certificates_v1.pb.h"
#include "lib/api/proto/flowcontrol_v1.pb.h"
#include "lib/api/proto/metrics_v1beta1.pb.h"
#include "lib/api/proto/networking_v1.pb.h"
#include "lib/api/proto/node_v1.pb.h"
#include "lib/api/proto/policy_v1.pb.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/api/proto/scheduling_v1.pb.h"
#include "lib/api/proto/storage_v1.pb.h"
#include "lib/api/types.h"

namespace keelson::api {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using google::protobuf::MessageFactory;

struct Index {
  std::unordered_map<std::string, const ResourceInfo*> by_resource, by_kind;
  std::unordered_map<const Descriptor*, const ResourceInfo*> by_descriptor;
  std::unordered_map<std::string, const Descriptor*> messages;

  static std::string Key(std::string_view a, std::string_view b, std::string_view c) {
    std::string key(a);
    (key += '|') += b;
    (key += '|') += c;
    return key;
  }

  Index() {
    for (const ResourceInfo& row : Resources()) {
      by_resource.emplace(Key(row.group, row.version, row.resource), &row);
      if (row.IsSubresource()) continue;
      by_kind.emplace(Key(row.kind_group, row.kind_version, row.kind), &row);
      by_descriptor.emplace(row.descriptor(), &row);
    }
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
          storage::v1::StorageClass::descriptor()->file()}) {
      for (int i = 0; i < file->message_type_count(); ++i) {
        const Descriptor* type = file->message_type(i);
        GroupVersionKind gvk = GvkOf(type);
        messages.emplace(Key(gvk.group, gvk.version, gvk.kind), type);
      }
    }
  }
};

const Index& TheIndex() {
  static const Index* index = new Index;
  return *index;
}

template <typename Map>
auto Lookup(const Map& map, std::string_view a, std::string_view b, std::string_view c) ->
    typename Map::mapped_type {
  auto it = map.find(Index::Key(a, b, c));
  return it == map.end() ? nullptr : it->second;
}

}  // namespace

std::pair<std::string, std::string> SplitApiVersion(std::string_view api_version) {
  auto slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", std::string(api_version)};
  return {std::string(api_version.substr(0, slash)), std::string(api_version.substr(slash + 1))};
}

std::string ResourceInfo::ApiVersion() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

GroupVersionKind ResourceInfo::Gvk() const {
  return {std::string(kind_group), std::string(kind_version), std::string(kind)};
}

const Descriptor* ResourceInfo::descriptor() const {
  return DescriptorPool::generated_pool()->FindMessageTypeByName(std::string(message));
}

const Message& ResourceInfo::prototype() const {
  return *MessageFactory::generated_factory()->GetPrototype(descriptor());
}

bool ResourceInfo::HasVerb(std::string_view verb) const {
  for (size_t start = 0; start <= verbs.size();) {
    size_t end = std::min(verbs.find(',', start), verbs.size());
    if (verbs.substr(start, end - start) == verb) return true;
    start = end + 1;
  }
  return false;
}

std::string ResourceInfo::GroupResource() const {
  std::string name(resource.substr(0, resource.find('/')));
  return group.empty() ? name : name + "." + std::string(group);
}

std::span<const ResourceInfo> Resources() { return {kResourceTable, kResourceTableSize}; }

const ResourceInfo* FindResource(std::string_view group, std::string_view version,
                                 std::string_view resource) {
  return Lookup(TheIndex().by_resource, group, version, resource);
}

const ResourceInfo* FindKind(std::string_view group, std::string_view version, std::string_view kind) {
  return Lookup(TheIndex().by_kind, group, version, kind);
}

const ResourceInfo& ResourceOf(const Descriptor* descriptor) {
  auto it = TheIndex().by_descriptor.find(descriptor);
  if (it == TheIndex().by_descriptor.end()) {
    log::Error("Message type is no API resource", {{"type", descriptor->full_name()}});
    std::abort();
  }
  return *it->second;
}

const Descriptor* FindMessage(std::string_view group, std::string_view version, std::string_view kind) {
  return Lookup(TheIndex().messages, group, version, kind);
}

std::unique_ptr<Message> NewObject(const Descriptor* descriptor) {
  return std::unique_ptr<Message>(MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
}

}  // namespace keelson::api
