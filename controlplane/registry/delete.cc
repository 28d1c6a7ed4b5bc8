// Deletion, in the steps that finalizers and grace periods ask for:
//
//   delete --> [graceful: deletionTimestamp in the future, the kubelet deletes again with 0] ----.
//         \--> [finalizers: deletionTimestamp now; the client that empties them removes it] -----+--> gone
//          \-------------------------------------------------------------------------------------'
#include <algorithm>

#include <fmt/format.h>

#include "controlplane/registry/impl.h"
#include "controlplane/storage/convert.h"
#include "lib/api/meta.h"
#include "lib/base/wall_time.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {
namespace {

using metav1::DeleteOptions;

constexpr std::string_view kOrphan = "orphan", kForeground = "foregroundDeletion";

// Options that conflict with ignoreStoreReadErrorWithClusterBreakingPotential.
void CheckIgnoreReadError(const DeleteOptions& options, k8s::FieldErrors& errors) {
  if (!options.ignore_store_read_error_with_cluster_breaking_potential()) return;
  const k8s::Path path("ignoreStoreReadErrorWithClusterBreakingPotential");
  const std::pair<bool, const char*> others[] = {{options.dry_run_size() > 0, ".dryRun"},
                                                 {options.has_propagation_policy(), ".propagationPolicy"},
                                                 {options.has_orphan_dependents(), ".orphanDependents"},
                                                 {options.has_grace_period_seconds(), ".gracePeriodSeconds"},
                                                 {options.has_preconditions(), ".preconditions"}};
  for (const auto& [set, name] : others) {
    if (set) {
      errors.push_back(k8s::InvalidBool(path, true, fmt::format("cannot be set together with {}", name)));
    }
  }
}

Result<> CheckOptions(const DeleteOptions& options) {
  k8s::FieldErrors errors;
  const k8s::Path path("propagationPolicy");
  const std::string& policy = options.propagation_policy();
  if (options.has_orphan_dependents() && options.has_propagation_policy()) {
    errors.push_back(
        k8s::Invalid(path, policy, "orphanDependents and deletionPropagation cannot be both set"));
  }
  if (options.has_propagation_policy() && policy != "Background" && policy != "Foreground" &&
      policy != "Orphan") {
    errors.push_back(k8s::NotSupported(path, policy, {"Foreground", "Background", "Orphan", "nil"}));
  }
  CheckDryRun(options.dry_run(), errors);
  CheckIgnoreReadError(options, errors);
  if (errors.empty()) return {};
  return k8s::ToInvalid({"meta.k8s.io", "v1", "DeleteOptions"}, "", errors);
}

// Upstream names the kind in these errors; other conflicts name the resource.
Error PreconditionConflict(const ResourceInfo& requested, const std::string& name, std::string why) {
  const ResourceInfo& info = storage::StoredAs(requested);
  ErrorDetails details;
  details.name = name;
  details.group = std::string(info.kind_group.empty() ? info.group : info.kind_group);
  details.kind = std::string(info.kind);
  std::string subject = details.group.empty() ? details.kind : details.kind + "." + details.group;
  return Error(Code::kConflict,
               fmt::format("Operation cannot be fulfilled on {} \"{}\": {}", subject, name, why))
      .WithDetails(std::move(details));
}

Result<> CheckPreconditions(const ResourceInfo& info, const metav1::ObjectMeta& meta,
                            const DeleteOptions& options) {
  const auto& wanted = options.preconditions();
  if (wanted.has_uid() && wanted.uid() != meta.uid()) {
    return PreconditionConflict(
        info, meta.name(),
        fmt::format("the UID in the precondition ({}) does not match the UID in record ({}). The object "
                    "might have been deleted and then recreated",
                    wanted.uid(), meta.uid()));
  }
  if (wanted.has_resource_version() && wanted.resource_version() != meta.resource_version()) {
    return PreconditionConflict(
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

// Sets the garbage collector's two finalizers to what the client wants for the dependents. Returns whether
// anything changed.
bool SetGcFinalizers(metav1::ObjectMeta& meta, const DeleteOptions& options, const Strategy& strategy) {
  if (!strategy.collects_garbage()) return false;
  bool orphan = false, foreground = false;
  if (options.has_orphan_dependents()) {
    orphan = options.orphan_dependents();
  } else if (options.has_propagation_policy()) {
    orphan = options.propagation_policy() == "Orphan";
    foreground = options.propagation_policy() == "Foreground";
  } else {
    orphan = Has(meta, kOrphan) || (strategy.orphans_by_default() && !Has(meta, kForeground));
    foreground = !orphan && Has(meta, kForeground);
  }
  if (orphan == Has(meta, kOrphan) && foreground == Has(meta, kForeground)) return false;
  auto& finalizers = *meta.mutable_finalizers();
  for (int i = finalizers.size() - 1; i >= 0; --i) {
    if (finalizers[i] == kOrphan || finalizers[i] == kForeground) finalizers.DeleteSubrange(i, 1);
  }
  if (orphan) *finalizers.Add() = kOrphan;
  if (foreground) *finalizers.Add() = kForeground;
  return true;
}

// Marks the start of the deletion. It is visible to everybody, so the generation grows.
void Mark(metav1::ObjectMeta& meta, int64_t grace, Clock& clock) {
  if (!meta.has_deletion_timestamp() && meta.generation() > 0) meta.set_generation(meta.generation() + 1);
  *meta.mutable_deletion_timestamp() = api::ToTime(clock.Now() + Span(grace));
  meta.set_deletion_grace_period_seconds(grace);
}

// Finalizers hold the object back; the grace period no longer matters.
bool MarkHeld(metav1::ObjectMeta& meta, Clock& clock) {
  const metav1::Time now = api::ToTime(clock.Now());
  bool changed = !meta.has_deletion_grace_period_seconds() || meta.deletion_grace_period_seconds() != 0;
  if (!meta.has_deletion_timestamp()) {
    Mark(meta, 0, clock);
    return true;
  }
  if (meta.deletion_timestamp().seconds() > now.seconds()) {
    *meta.mutable_deletion_timestamp() = now;
    changed = true;
  }
  meta.set_deletion_grace_period_seconds(0);
  return changed;
}

// A shorter grace period counts from the start of the one in progress.
void Shorten(metav1::ObjectMeta& meta, int64_t grace) {
  int64_t began = meta.deletion_timestamp().seconds() - Span(meta.deletion_grace_period_seconds()).count();
  meta.mutable_deletion_timestamp()->set_seconds(began + Span(grace).count());
  meta.set_deletion_grace_period_seconds(grace);
}

bool IsNamespace(const ResourceInfo& info) { return info.group.empty() && info.resource == "namespaces"; }

bool IsImmortal(const ResourceInfo& info, std::string_view name) {
  return IsNamespace(info) && (name == "default" || name == "kube-system" || name == "kube-public");
}

// The effect of one attempt at a deletion on the object.
enum class Step { kNothing, kStore, kStoreAndRemove, kRemove };

Step BeginNamespace(corev1::Namespace& object, const DeleteOptions& options, const Strategy& strategy,
                    Clock& clock) {
  metav1::ObjectMeta& meta = *object.mutable_metadata();
  if (!meta.has_deletion_timestamp()) {
    SetGcFinalizers(meta, options, strategy);
    Mark(meta, 0, clock);
    meta.clear_deletion_grace_period_seconds();
    object.mutable_status()->set_phase("Terminating");
    return object.spec().finalizers_size() == 0 && meta.finalizers_size() == 0 ? Step::kRemove : Step::kStore;
  }
  if (object.spec().finalizers_size() > 0) return Step::kNothing;
  if (meta.finalizers_size() == 0) return Step::kRemove;
  return MarkHeld(meta, clock) ? Step::kStore : Step::kNothing;
}

Step BeginDeletion(Message& object, const DeleteOptions& options, const Strategy& strategy, Clock& clock) {
  metav1::ObjectMeta& meta = api::MutableMeta(object);
  if (!meta.has_deletion_timestamp()) strategy.BeginDeletion(object, clock);
  std::optional<int64_t> asked;
  if (options.has_grace_period_seconds()) {
    asked = options.grace_period_seconds() < 0 ? 1 : options.grace_period_seconds();
  }
  const std::optional<int64_t> granted = strategy.GracePeriod(object, asked);
  bool graceful = granted.has_value();
  int64_t period = granted.value_or(0);
  const bool was_deleting = meta.has_deletion_timestamp();
  if (graceful && was_deleting) {
    const bool has_period = meta.has_deletion_grace_period_seconds();
    const int64_t left = meta.deletion_grace_period_seconds();
    if (!has_period) {
      graceful = false;
    } else if (asked && *asked < left) {
      Shorten(meta, *asked);
      period = *asked;
    } else if (left > 0 || meta.finalizers_size() > 0) {
      return Step::kNothing;  // the deletion in progress is at least as fast, and must not change
    } else {
      return Step::kRemove;  // was interrupted between its two writes
    }
  } else if (graceful) {
    Mark(meta, period, clock);
  }
  const bool changed = SetGcFinalizers(meta, options, strategy);
  const bool held = meta.finalizers_size() > 0;
  if (!graceful) {
    if (!held) return Step::kRemove;
    return MarkHeld(meta, clock) || changed ? Step::kStore : Step::kNothing;
  }
  if (held || period > 0) return Step::kStore;
  return was_deleting ? Step::kRemove : Step::kStoreAndRemove;
}

}  // namespace

void CheckDryRun(const google::protobuf::RepeatedPtrField<std::string>& values, k8s::FieldErrors& errors) {
  if (std::all_of(values.begin(), values.end(), [](const std::string& value) { return value == "All"; })) {
    return;
  }
  std::string list;
  for (const std::string& value : values) list += (list.empty() ? "" : ",") + k8s::Quote(value);
  k8s::FieldError error = k8s::NotSupported(k8s::Path("dryRun"), "", {"All"});
  error.value = "[" + list + "]";
  errors.push_back(std::move(error));
}

Result<Deleted> Registry::Impl::Delete(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                       const DeleteOptions& delete_options, const WriteOptions& options) {
  KEELSON_RETURN_IF_ERROR(CheckOptions(delete_options));
  if (IsImmortal(info, name)) return ForbiddenError(info, name, "this namespace may not be deleted");
  if (delete_options.ignore_store_read_error_with_cluster_breaking_potential()) {
    return DeleteUnreadable(info, ns, name, options);
  }
  return WithRetries<Deleted>(store, info, api::KeyOf(ns, name), LimitsOf(options),
                              [&](const Current& current, Current& newer) -> Result<Deleted> {
                                if (!current.object) return NotFoundError(info, name);
                                return TryDelete(info, current, delete_options, options, newer);
                              });
}

// Ignores finalizers, preconditions and admission: the object cannot be read.
Result<Deleted> Registry::Impl::DeleteUnreadable(const ResourceInfo& info, std::string_view ns,
                                                 std::string_view name, const WriteOptions& options) {
  const k8s::Path path("ignoreStoreReadErrorWithClusterBreakingPotential");
  if (options.dry_run) {
    return k8s::ToInvalid({"meta.k8s.io", "v1", "DeleteOptions"}, "",
                          {k8s::InvalidBool(path, true, "cannot be set together with .dryRun")});
  }
  KEELSON_ASSIGN_OR_RETURN(bool deleted,
                           store.DeleteUnreadable(info, api::KeyOf(ns, name), LimitsOf(options)));
  if (deleted) return Deleted{nullptr, true, false};
  // Upstream names the resource here, not the kind.
  return k8s::ToInvalid(
      {std::string(info.group), std::string(info.version), std::string(info.resource)}, name,
      {k8s::InvalidBool(
          path, true, "is exclusively used to delete corrupt object(s), try again by removing this option")});
}

Result<Deleted> Registry::Impl::TryDelete(const ResourceInfo& info, const Current& current,
                                          const DeleteOptions& delete_options, const WriteOptions& options,
                                          Current& newer) {
  const Strategy& strategy = StrategyOf(info);
  std::shared_ptr<const Message> old = current.object->Decode();
  KEELSON_RETURN_IF_ERROR(CheckPreconditions(info, api::Meta(*old), delete_options));
  KEELSON_RETURN_IF_ERROR(Admit(options, Operation::kDelete, info, nullptr, old.get()));
  std::unique_ptr<Message> object = Clone(*old);
  api::MutableMeta(*object).clear_resource_version();
  const Step step = IsNamespace(info) ? BeginNamespace(static_cast<corev1::Namespace&>(*object),
                                                       delete_options, strategy, clock)
                                      : BeginDeletion(*object, delete_options, strategy, clock);
  const bool shown = strategy.returns_deleted_object();
  if (step == Step::kNothing) return Deleted{current.object, false, shown};
  if (step == Step::kRemove) return Remove(info, current, options, newer);
  if (options.dry_run) {
    ObjectPtr marked = storage::Object::FromMessage(info, *object, current.object->revision());
    return Deleted{std::move(marked), step == Step::kStoreAndRemove, shown};
  }
  storage::Conflict conflict;
  Result<ObjectPtr> stored = store.Put(info, current.object->key(), *object, current.object->revision(),
                                       TtlOf(info), conflict, LimitsOf(options));
  if (!stored) {
    if (stored.error().Is(Code::kConflict)) newer = {conflict.current, false};
    return stored.error();
  }
  if (step == Step::kStore) return Deleted{*stored, false, shown};
  Current marked{*stored, false};
  Result<Deleted> removed = Remove(info, marked, options, newer);
  // Somebody else has removed it in the meantime: it is gone.
  if (!removed && removed.error().Is(Code::kConflict) && !newer.object) return Deleted{*stored, true, shown};
  return removed;
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
