// Subresources of a different kind than their parent: scale, binding.
#include <limits>

#include <fmt/format.h>

#include "controlplane/registry/custom_scale.h"
#include "controlplane/registry/field_manager.h"
#include "controlplane/registry/impl.h"
#include "lib/api/meta.h"
#include "lib/api/selector.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/validation/validation.h"

namespace keelson::registry {
namespace {

using autoscalingv1::Scale;

template <typename T>
Result<Scaled> ScaledOf(const T& object) {
  KEELSON_ASSIGN_OR_RETURN(api::LabelSelector selector, api::LabelSelector::From(object.spec().selector()));
  // Absent means one.
  int32_t wanted = object.spec().has_replicas() ? object.spec().replicas() : 1;
  return Scaled{wanted, object.status().replicas(), selector.ToString()};
}

Result<Scaled> Read(const ResourceInfo& main, const Message& parent) {
  if (const apiextensions::CustomRow* custom = apiextensions::CustomOf(main)) {
    return ReadCustomScale(*custom, parent);
  }
  const api::Descriptor* type = parent.GetDescriptor();
  if (type == appsv1::Deployment::descriptor()) {
    return ScaledOf(static_cast<const appsv1::Deployment&>(parent));
  }
  if (type == appsv1::ReplicaSet::descriptor()) {
    return ScaledOf(static_cast<const appsv1::ReplicaSet&>(parent));
  }
  if (type == appsv1::StatefulSet::descriptor()) {
    return ScaledOf(static_cast<const appsv1::StatefulSet&>(parent));
  }
  if (type != corev1::ReplicationController::descriptor()) {
    return Error(Code::kInternal, type->name() + " cannot be scaled");
  }
  const auto& rc = static_cast<const corev1::ReplicationController&>(parent);
  int32_t wanted = rc.spec().has_replicas() ? rc.spec().replicas() : 1;
  return Scaled{wanted, rc.status().replicas(), api::LabelSelector::FromMap(rc.spec().selector()).ToString()};
}

Result<> SetReplicas(const ResourceInfo& main, Message& parent, int32_t replicas) {
  if (const apiextensions::CustomRow* custom = apiextensions::CustomOf(main)) {
    return SetCustomReplicas(*custom, parent, replicas);
  }
  const api::Descriptor* type = parent.GetDescriptor();
  if (type == appsv1::Deployment::descriptor()) {
    static_cast<appsv1::Deployment&>(parent).mutable_spec()->set_replicas(replicas);
  } else if (type == appsv1::ReplicaSet::descriptor()) {
    static_cast<appsv1::ReplicaSet&>(parent).mutable_spec()->set_replicas(replicas);
  } else if (type == appsv1::StatefulSet::descriptor()) {
    static_cast<appsv1::StatefulSet&>(parent).mutable_spec()->set_replicas(replicas);
  } else {
    static_cast<corev1::ReplicationController&>(parent).mutable_spec()->set_replicas(replicas);
  }
  return {};
}

// What upstream puts into a Scale that is about to change where a custom object has no number: a change has to set one.
constexpr int32_t kNoReplicas = std::numeric_limits<int32_t>::min();

Result<Scale> MakeScale(const ResourceInfo& main, const Message& parent, bool for_change = false) {
  KEELSON_ASSIGN_OR_RETURN(Scaled scaled, Read(main, parent));
  if (!scaled.missing.empty()) {
    if (!for_change) {
      return Error(Code::kInternal,
                   fmt::format("Internal error occurred: the spec replicas field \"{}\" does not exist",
                               scaled.missing));
    }
    scaled.wanted = kNoReplicas;
  }
  const metav1::ObjectMeta& meta = api::Meta(parent);
  Scale scale;
  scale.mutable_metadata()->set_name(meta.name());
  scale.mutable_metadata()->set_namespace_(meta.namespace_());
  scale.mutable_metadata()->set_uid(meta.uid());
  scale.mutable_metadata()->set_resource_version(meta.resource_version());
  if (meta.has_creation_timestamp()) {
    *scale.mutable_metadata()->mutable_creation_timestamp() = meta.creation_timestamp();
  }
  if (scaled.wanted != 0) scale.mutable_spec()->set_replicas(scaled.wanted);
  if (scaled.present != 0) scale.mutable_status()->set_replicas(scaled.present);
  if (!scaled.selector.empty()) scale.mutable_status()->set_selector(scaled.selector);
  return scale;
}

// Errors of pods/binding name that resource.
Error BindingConflict(std::string_view name, std::string_view why) {
  ErrorDetails details;
  details.name = std::string(name);
  details.kind = "pods/binding";
  return Error(Code::kConflict,
               fmt::format("Operation cannot be fulfilled on pods/binding \"{}\": {}", name, why))
      .WithDetails(std::move(details));
}

// So do errors of scale.
Error ScaleConflict(const ResourceInfo& info, std::string_view name, std::string_view why) {
  ErrorDetails details;
  details.name = std::string(name);
  details.group = std::string(info.group);
  details.kind = std::string(info.resource);
  const std::string subject = details.group.empty() ? details.kind : details.kind + "." + details.group;
  return Error(Code::kConflict,
               fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", subject, name, why))
      .WithDetails(std::move(details));
}

void MarkScheduled(corev1::Pod& pod, Clock& clock) {
  corev1::PodCondition* condition = nullptr;
  for (auto& one : *pod.mutable_status()->mutable_conditions()) {
    if (one.type() == "PodScheduled") condition = &one;
  }
  if (!condition) condition = pod.mutable_status()->add_conditions();
  if (condition->status() != "True") *condition->mutable_last_transition_time() = api::ToTime(clock.Now());
  condition->set_type("PodScheduled");
  condition->set_status("True");
  condition->clear_reason();
  condition->clear_message();
}

// Joins several errors into one without details, as upstream does for an invalid Binding.
Error Joined(const k8s::FieldErrors& errors) {
  std::string text;
  for (const k8s::FieldError& error : errors) text += (text.empty() ? "" : ", ") + error.ToString();
  return Error(Code::kInternal, errors.size() == 1 ? text : "[" + text + "]");
}

Result<> Assign(corev1::Pod& pod, const corev1::Binding& binding, Clock& clock) {
  const std::string& name = pod.metadata().name();
  if (pod.metadata().has_deletion_timestamp()) {
    return BindingConflict(name, fmt::format("pod {} is being deleted, cannot be assigned to a host", name));
  }
  if (!pod.spec().node_name().empty()) {
    return BindingConflict(
        name, fmt::format("pod {} is already assigned to node \"{}\"", name, pod.spec().node_name()));
  }
  if (pod.spec().scheduling_gates_size() > 0) {
    return BindingConflict(name, fmt::format("pod {} has non-empty .spec.schedulingGates", name));
  }
  pod.mutable_spec()->set_node_name(binding.target().name());
  for (const auto& entry : binding.metadata().annotations()) {
    (*pod.mutable_metadata()->mutable_annotations())[entry.first] = entry.second;
  }
  for (const auto& entry : binding.metadata().labels()) {
    (*pod.mutable_metadata()->mutable_labels())[entry.first] = entry.second;
  }
  MarkScheduled(pod, clock);
  pod.mutable_status()->clear_nominated_node_name();  // the nomination is fulfilled or obsolete
  return {};
}

}  // namespace

Result<ObjectPtr> Registry::Impl::ScaleOf(const ResourceInfo& scale_info, const Message& parent) const {
  KEELSON_ASSIGN_OR_RETURN(Scale scale, MakeScale(MainRow(scale_info), parent));
  int64_t revision = std::atoll(scale.metadata().resource_version().c_str());
  return storage::Object::FromMessage(scale_info, scale, revision);
}

Result<Written> Registry::Impl::UpdateScale(const ResourceInfo& scale_info, std::string_view ns,
                                            std::string_view name, const Change& change,
                                            const WriteOptions& options, bool fields_managed) {
  const ResourceInfo& main = MainRow(scale_info);
  // Admission sees the Scale, not the parent.
  WriteOptions parent_options = options;
  parent_options.admission = nullptr;
  UpdateRequest request{main, ns, name, Part::kMain, &main, {}, {}, false, true};
  request.change = [&](const Message& current) -> Result<std::unique_ptr<Message>> {
    KEELSON_ASSIGN_OR_RETURN(Scale before, MakeScale(main, current, true));
    const ManagedFields::Encoded& parent_fields = api::Meta(current).managed_fields();
    *before.mutable_metadata()->mutable_managed_fields() = ScaleManagedFields(parent_fields);
    KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> changed, change(before));
    if (!fields_managed) {
      FieldWrite write{scale_info, options.field_manager, clock.Now(), api::FieldFilter::Everything()};
      *api::MutableMeta(*changed).mutable_managed_fields() = ManageUpdate(write, &before, *changed);
    }
    auto admit = [&](AdmissionPhase phase) -> Result<> {
      if (!options.admission) return {};
      return options.admission(phase, Operation::kUpdate, scale_info, changed.get(), &before);
    };
    KEELSON_RETURN_IF_ERROR(admit(AdmissionPhase::kMutate));
    const auto& scale = static_cast<const Scale&>(*changed);
    if (scale.metadata().name() != name) {
      return Error(Code::kBadRequest,
                   fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                               scale.metadata().name(), name));
    }
    if (!scale.metadata().namespace_().empty() && scale.metadata().namespace_() != ns) {
      return Error(Code::kBadRequest,
                   "the namespace of the provided object does not match the namespace sent on the request");
    }
    if (main.IsCustom() && scale.spec().replicas() == kNoReplicas) {
      KEELSON_ASSIGN_OR_RETURN(const Scaled scaled, Read(main, current));
      return Error(Code::kBadRequest,
                   fmt::format("the spec replicas field \"{}\" cannot be empty", scaled.missing));
    }
    // The rules of custom objects say what is wrong with theirs.
    if (scale.spec().replicas() < 0 && !main.IsCustom()) {
      return k8s::ToInvalid(
          scale_info.Gvk(), name,
          {k8s::Invalid(k8s::Path("spec").Child("replicas"), int64_t{scale.spec().replicas()},
                        "must be greater than or equal to 0")});
    }
    const std::string& uid = api::Meta(current).uid();
    if (!scale.metadata().uid().empty() && scale.metadata().uid() != uid) {
      return ScaleConflict(scale_info, name,
                           fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                                       scale.metadata().uid(), uid));
    }
    KEELSON_RETURN_IF_ERROR(admit(AdmissionPhase::kValidate));
    std::unique_ptr<Message> parent = Clone(current);
    KEELSON_RETURN_IF_ERROR(SetReplicas(main, *parent, scale.spec().replicas()));
    metav1::ObjectMeta& meta = api::MutableMeta(*parent);
    *meta.mutable_managed_fields() =
        ParentManagedFields(parent_fields, scale.metadata().managed_fields(), main.ApiVersion());
    meta.set_resource_version(scale.metadata().resource_version());
    return parent;
  };
  KEELSON_ASSIGN_OR_RETURN(Written written, Update(request, parent_options));
  KEELSON_ASSIGN_OR_RETURN(written.object, ScaleOf(scale_info, *written.object->Decode()));
  return written;
}

Result<Written> Registry::Impl::Bind(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                     const Message& body, const WriteOptions& options) {
  corev1::Binding binding = static_cast<const corev1::Binding&>(body);
  if (binding.metadata().name() != name) {
    return Error(Code::kBadRequest, "name in URL does not match name in Binding object");
  }
  if (k8s::FieldErrors errors = k8s::ValidateBinding(binding); !errors.empty()) return Joined(errors);
  const ResourceInfo& pods = api::ResourceOf<corev1::Pod>();
  KEELSON_RETURN_IF_ERROR(Admit(options, Operation::kCreate, info, &binding, nullptr));
  storage::Limits limits = LimitsOf(options);
  return WithRetries<Written>(
      store, pods, api::KeyOf(ns, name), limits,
      [&](const Current& current, Current& newer) -> Result<Written> {
        if (!current.object) return NotFoundError(pods, name);
        std::unique_ptr<Message> object = Clone(*current.object->Decode());
        auto& pod = static_cast<corev1::Pod&>(*object);
        const metav1::ObjectMeta &wanted = binding.metadata(), &meta = pod.metadata();
        if (!wanted.uid().empty() && wanted.uid() != meta.uid()) {
          return UidConflict(pods, ns, name, wanted.uid(), meta.uid());
        }
        if (!wanted.resource_version().empty() && wanted.resource_version() != meta.resource_version()) {
          return VersionConflict(pods, ns, name, wanted.resource_version(), meta.resource_version());
        }
        KEELSON_RETURN_IF_ERROR(Assign(pod, binding, clock));
        pod.mutable_metadata()->clear_resource_version();
        if (options.dry_run) return Written{nullptr, true, {}};
        storage::Conflict conflict;
        Result<ObjectPtr> stored =
            store.Put(pods, current.object->key(), pod, current.object->revision(), {}, conflict, limits);
        if (stored) return Written{nullptr, true, {}};
        if (stored.error().Is(Code::kConflict)) newer = {conflict.current, false};
        return stored.error();
      });
}

}  // namespace keelson::registry
