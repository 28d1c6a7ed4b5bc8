// Deletion, in the steps that finalizers and grace periods ask for:
//
//   delete --> [graceful: deletionTimestamp in the future, the kubelet deletes again with 0] --.
//         \--> [finalizers: deletionTimestamp now; whoever empties them removes the object] ----+--> gone
//          \------------------------------------------------------------------------------------'
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/registry/impl.h"
#include "lib/api/meta.h"

namespace keelson::registry {
namespace {

constexpr std::string_view kOrphan = "orphan", kForeground = "foregroundDeletion";

Result<> CheckOptions(const metav1::DeleteOptions& options) {
  if (options.has_orphan_dependents() && options.has_propagation_policy())
    return Error(Code::kInvalid,
                 "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"" +
                     options.propagation_policy() +
                     "\": orphanDependents and deletionPropagation cannot be both set");
  const std::string& policy = options.propagation_policy();
  if (options.has_propagation_policy() && policy != "Background" && policy != "Foreground" &&
      policy != "Orphan")
    return Error(Code::kInvalid,
                 fmt::format("DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported "
                             "value: \"{}\": supported values: \"Background\", \"Foreground\", "
                             "\"Orphan\"",
                             policy));
  if (options.has_grace_period_seconds() && options.grace_period_seconds() < 0)
    return Error(
        Code::kInvalid,
        fmt::format(
            "DeleteOptions.meta.k8s.io \"\" is invalid: gracePeriodSeconds: Invalid value: {}: must be "
            "greater than or equal to 0",
            options.grace_period_seconds()));
  return {};
}

Result<> CheckPreconditions(const ResourceInfo& info, const metav1::ObjectMeta& meta,
                            const metav1::DeleteOptions& options) {
  const auto& wanted = options.preconditions();
  if (wanted.has_uid() && wanted.uid() != meta.uid()) {
    return ConflictError(
        info, meta.name(),
        fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The object "
                    "might have been deleted and then recreated",
                    wanted.uid(), meta.uid()));
  }
  if (wanted.has_resource_version() && wanted.resource_version() != meta.resource_version()) {
    return ConflictError(
        info, meta.name(),
        fmt::format("the ResourceVersion in the precondition ({}) does not match the ResourceVersion in "
                    "record ({}). The object might have been modified",
                    wanted.resource_version(), meta.resource_version()));
  }
  return {};
}

bool Has(const metav1::ObjectMeta& meta, std::string_view finalizer) {
  return std::find(meta.finalizers().begin(), meta.finalizers().end(), finalizer) != meta.finalizers().end();
}

// Makes the garbage collector's two finalizers say what the client wants for the dependents.
void SetGcFinalizers(metav1::ObjectMeta& meta, const metav1::DeleteOptions& options,
                     bool orphans_by_default) {
  bool orphan = false, foreground = false;
  if (options.has_orphan_dependents()) {
    orphan = options.orphan_dependents();
  } else if (options.has_propagation_policy()) {
    orphan = options.propagation_policy() == "Orphan";
    foreground = options.propagation_policy() == "Foreground";
  } else {
    orphan = Has(meta, kOrphan) || (orphans_by_default && !Has(meta, kForeground));
    foreground = !orphan && Has(meta, kForeground);
  }
  auto& finalizers = *meta.mutable_finalizers();
  for (int i = finalizers.size() - 1; i >= 0; --i) {
    if ((finalizers[i] == kOrphan && !orphan) || (finalizers[i] == kForeground && !foreground))
      finalizers.DeleteSubrange(i, 1);
  }
  if (orphan && !Has(meta, kOrphan)) *finalizers.Add() = kOrphan;
  if (foreground && !Has(meta, kForeground)) *finalizers.Add() = kForeground;
}

void MarkDeleting(metav1::ObjectMeta& meta, int64_t grace, Clock& clock) {
  if (!meta.has_deletion_timestamp() && meta.generation() > 0) meta.set_generation(meta.generation() + 1);
  *meta.mutable_deletion_timestamp() = api::ToTime(clock.Now() + std::chrono::seconds(grace));
  meta.set_deletion_grace_period_seconds(grace);
}

// A shorter grace period than the one under way counts from when that began.
void Shorten(metav1::ObjectMeta& meta, int64_t grace) {
  int64_t began = meta.deletion_timestamp().seconds() - meta.deletion_grace_period_seconds();
  meta.mutable_deletion_timestamp()->set_seconds(began + grace);
  meta.set_deletion_grace_period_seconds(grace);
}

bool IsImmortal(const ResourceInfo& info, std::string_view name) {
  return info.group.empty() && info.resource == "namespaces" &&
         (name == "default" || name == "kube-system" || name == "kube-public");
}

}  // namespace

Result<Deleted> Registry::Impl::Delete(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                       const metav1::DeleteOptions& delete_options,
                                       const WriteOptions& options) {
  RETURN_IF_ERROR(CheckOptions(delete_options));
  if (IsImmortal(info, name)) return ForbiddenError(info, name, "this namespace may not be deleted");
  return WithRetries<Deleted>(store, info, api::KeyOf(ns, name), LimitsOf(options),
                              [&](const Current& current, Current& newer) -> Result<Deleted> {
                                if (!current.object) return NotFoundError(info, name);
                                return TryDelete(info, current, delete_options, options, newer);
                              });
}

Result<Deleted> Registry::Impl::TryDelete(const ResourceInfo& info, const Current& current,
                                          const metav1::DeleteOptions& delete_options,
                                          const WriteOptions& options, Current& newer) {
  const Strategy& strategy = StrategyOf(info);
  std::shared_ptr<const Message> old = current.object->Decode();
  RETURN_IF_ERROR(CheckPreconditions(info, api::Meta(*old), delete_options));
  if (options.admission) RETURN_IF_ERROR(options.admission(Operation::kDelete, info, nullptr, old.get()));
  std::unique_ptr<Message> object = Clone(*old);
  metav1::ObjectMeta& meta = api::MutableMeta(*object);
  meta.clear_resource_version();

  const bool is_namespace = info.group.empty() && info.resource == "namespaces";
  const bool was_deleting = meta.has_deletion_timestamp();
  std::optional<int64_t> asked;
  if (delete_options.has_grace_period_seconds()) asked = delete_options.grace_period_seconds();
  int64_t grace = strategy.GracePeriod(*object, asked).value_or(0);
  SetGcFinalizers(meta, delete_options, strategy.orphans_by_default());
  bool held = meta.finalizers_size() > 0;
  if (is_namespace) {
    auto& spec = static_cast<corev1::Namespace&>(*object);
    held = held || spec.spec().finalizers_size() > 0;
    spec.mutable_status()->set_phase("Terminating");
  }
  bool changed = meta.finalizers_size() != api::Meta(*old).finalizers_size();
  if (was_deleting && meta.deletion_grace_period_seconds() > 0 &&
      (!asked || grace >= meta.deletion_grace_period_seconds())) {
    // The deletion under way is at least as quick as this one.
    if (!changed) return Deleted{current.object, false, strategy.returns_deleted_object()};
    grace = meta.deletion_grace_period_seconds();
  } else if (was_deleting && meta.deletion_grace_period_seconds() > grace) {
    Shorten(meta, grace);
    changed = true;
  } else if (!was_deleting) {
    MarkDeleting(meta, grace, clock);
    if (is_namespace) meta.clear_deletion_grace_period_seconds();
    changed = true;
  }
  if (!held && grace == 0) return Remove(info, current, options, newer);
  if (!changed) return Deleted{current.object, false, strategy.returns_deleted_object()};
  if (options.dry_run) {
    return Deleted{storage::Object::FromMessage(info, *object, current.object->revision()), false,
                   strategy.returns_deleted_object()};
  }
  storage::Conflict conflict;
  Result<ObjectPtr> stored = store.Put(info, current.object->key(), *object, current.object->revision(),
                                       TtlOf(info), conflict, LimitsOf(options));
  if (stored) return Deleted{*stored, false, strategy.returns_deleted_object()};
  if (stored.error().Is(Code::kConflict)) newer = {conflict.current, false};
  return stored.error();
}

Result<Deleted> Registry::Impl::Remove(const ResourceInfo& info, const Current& current,
                                       const WriteOptions& options, Current& newer) {
  const Strategy& strategy = StrategyOf(info);
  if (options.dry_run) return Deleted{current.object, true, strategy.returns_deleted_object()};
  storage::Conflict conflict;
  Result<int64_t> revision =
      store.Delete(info, current.object->key(), current.object->revision(), conflict, LimitsOf(options));
  if (!revision) {
    if (revision.error().Is(Code::kConflict)) newer = {conflict.current, false};
    return revision.error();
  }
  Context context{info, options, clock, LimitsOf(options)};
  strategy.Deleted(context, *current.object->Decode());
  return Deleted{current.object->WithRevision(*revision), true, strategy.returns_deleted_object()};
}

}  // namespace keelson::registry
