#include "controlplane/registry/strategy.h"

#include <algorithm>

#include "lib/api/codec/codec.h"
#include "lib/api/deleted_object.h"
#include "lib/api/meta.h"
#include "lib/k8s/defaulting/defaulting.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::registry {
namespace {

using google::protobuf::FieldDescriptor;

bool Contains(std::initializer_list<std::string_view> list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

std::string EncodedSpec(const Message& object) {
  std::unique_ptr<Message> copy(object.New());
  copy->CopyFrom(object);
  ClearField(*copy, "metadata");
  ClearField(*copy, "status");
  return api::EncodeRaw(*copy);
}

}  // namespace

void ClearField(Message& object, const char* name) {
  if (const FieldDescriptor* field = object.GetDescriptor()->FindFieldByName(name)) {
    object.GetReflection()->ClearField(&object, field);
  }
}

void CopyField(const Message& from, Message& to, const char* name) {
  const FieldDescriptor* field = to.GetDescriptor()->FindFieldByName(name);
  if (!field) return;
  to.GetReflection()->ClearField(&to, field);
  if (from.GetReflection()->HasField(from, field)) {
    to.GetReflection()->MutableMessage(&to, field)->CopyFrom(from.GetReflection()->GetMessage(from, field));
  }
}

bool SpecDiffers(const Message& a, const Message& b) { return EncodedSpec(a) != EncodedSpec(b); }

Strategy::Strategy(const ResourceInfo& info) : info_(info) {
  has_status_ =
      api::FindResource(info.group, info.version, std::string(info.resource) + "/status") != nullptr;
  counts_generation_ = Contains({"pods",
                                 "replicationcontrollers",
                                 "deployments",
                                 "replicasets",
                                 "statefulsets",
                                 "daemonsets",
                                 "cronjobs",
                                 "jobs",
                                 "poddisruptionbudgets",
                                 "ingresses",
                                 "ingressclasses",
                                 "networkpolicies",
                                 "endpointslices",
                                 "flowschemas",
                                 "prioritylevelconfigurations",
                                 "customresourcedefinitions",
                                 "mutatingwebhookconfigurations",
                                 "validatingwebhookconfigurations",
                                 "validatingadmissionpolicies",
                                 "validatingadmissionpolicybindings",
                                 "mutatingadmissionpolicies",
                                 "mutatingadmissionpolicybindings",
                                 "priorityclasses",
                                 "resourceslices",
                                 "deviceclasses"},
                                info.resource);
  keeps_status_on_create_ = info.resource == "nodes";
  create_on_update_ = Contains({"endpoints", "events", "leases", "limitranges", "services", "runtimeclasses",
                                "roles", "rolebindings", "clusterroles", "clusterrolebindings"},
                               info.resource);
  // Kinds whose writers must send a resourceVersion.
  unconditional_update_ = !Contains(
      {"leases", "leasecandidates", "apiservices", "customresourcedefinitions", "csinodes", "csidrivers",
       "csistoragecapacities", "runtimeclasses", "poddisruptionbudgets", "volumeattachments",
       "storageversions", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
       "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicies",
       "validatingadmissionpolicybindings", "podcertificaterequests", "storageversionmigrations"},
      info.resource);
  collects_garbage_ = info.resource != "events";
  orphans_by_default_ = Contains({"replicationcontrollers", "jobs"}, info.resource);
  returns_deleted_object_ = api::DeleteReturnsObject(info);
}

void Strategy::SetDefaults(Message& object) const { k8s::SetDefaults(object); }

k8s::FieldErrors Strategy::Validate(const Message& object) const { return k8s::Validate(object); }

k8s::FieldErrors Strategy::ValidateUpdate(Part part, std::string_view subresource, const Message& object,
                                          const Message& old) const {
  if (part == Part::kMain) return k8s::ValidateUpdate(object, old);
  if (part == Part::kStatus) return k8s::ValidateStatusUpdate(object, old);
  return k8s::ValidatePartUpdate(object, old, subresource);
}

void Strategy::PrepareCreate(const Context&, Message& object) const {
  if (has_status_ && !keeps_status_on_create_) ClearField(object, "status");
  metav1::ObjectMeta& meta = api::MutableMeta(object);
  if (counts_generation_) {
    meta.set_generation(1);
  } else {
    meta.clear_generation();
  }
}

void Strategy::PrepareUpdate(const Context&, Message& object, const Message& old) const {
  if (has_status_) CopyField(old, object, "status");
  if (!counts_generation_) return;
  // Objects that others wrote may have no generation yet.
  if (SpecDiffers(object, old)) api::MutableMeta(object).set_generation(api::Meta(old).generation() + 1);
}

void Strategy::PreparePart(const Context&, Part part, Message& object, const Message& old) const {
  if (part != Part::kStatus) return;
  std::unique_ptr<Message> kept(old.New());
  kept->CopyFrom(old);
  CopyField(object, *kept, "metadata");
  CopyField(object, *kept, "status");
  object.GetReflection()->Swap(&object, kept.get());
}

bool Strategy::ReadyToGo(const Message& object) const {
  const metav1::ObjectMeta& meta = api::Meta(object);
  return meta.has_deletion_timestamp() && meta.finalizers_size() == 0 &&
         meta.deletion_grace_period_seconds() == 0;
}

std::unique_ptr<Strategy> MakeStrategy(const ResourceInfo& info, ServiceAllocator& allocator) {
  if (info.group.empty() && info.resource == "pods") return MakePodStrategy(info);
  if (info.group.empty() && info.resource == "namespaces") return MakeNamespaceStrategy(info);
  if (info.group.empty() && info.resource == "services") return MakeServiceStrategy(info, allocator);
  for (auto make : {MakeWorkloadStrategy, MakeConfigStrategy, MakeVolumeStrategy, MakeCertificateStrategy,
                    MakePodCertificateStrategy, MakeExtensionStrategy, MakeAutoscalerStrategy}) {
    if (std::unique_ptr<Strategy> strategy = make(info)) return strategy;
  }
  return std::make_unique<Strategy>(info);
}

}  // namespace keelson::registry
