// Create and update.
#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/registry/field_manager.h"
#include "controlplane/registry/impl.h"
#include "lib/api/codec/codec.h"
#include "lib/api/codec/custom_object.h"
#include "lib/api/meta.h"
#include "lib/k8s/field_error.h"
#include "lib/k8s/warnings/warnings.h"

namespace keelson::registry {
namespace {

constexpr size_t kMaxGeneratedBase = 58;  // 63 less the suffix
constexpr int kGenerateAttempts = 8;

// Whether the write changes nothing. Times in managed fields do not count, and are reset to the stored
// ones.
bool ChangesNothing(Message& object, const Message& old) {
  metav1::ObjectMeta& meta = api::MutableMeta(object);
  const metav1::ObjectMeta& before = api::Meta(old);
  if (!SameButForTimes(meta.managed_fields(), before.managed_fields())) return false;
  ManagedFields::Encoded own = before.managed_fields();
  own.Swap(meta.mutable_managed_fields());
  meta.set_resource_version(before.resource_version());
  const bool same = api::EncodeRaw(object) == api::EncodeRaw(old);
  meta.clear_resource_version();
  if (!same) own.Swap(meta.mutable_managed_fields());
  return same;
}

// Checks the managed fields of a create or update beyond what the field manager checks.
void CheckManagedFields(const Message& object, k8s::FieldErrors& errors) {
  for (k8s::FieldError& error : ValidateManagedFields(api::Meta(object).managed_fields())) {
    errors.push_back(std::move(error));
  }
}

bool GeneratesName(const Message& object) {
  const metav1::ObjectMeta& meta = api::Meta(object);
  return meta.name().empty() && !meta.generate_name().empty();
}

Result<> CheckScope(const ResourceInfo& info, std::string_view ns, Message& object) {
  metav1::ObjectMeta& meta = api::MutableMeta(object);
  if (!info.namespaced) {
    if (!ns.empty() || !meta.namespace_().empty()) meta.clear_namespace_();
    return {};
  }
  if (meta.namespace_().empty()) meta.set_namespace_(std::string(ns));
  if (meta.namespace_() == ns) return {};
  return Error(Code::kBadRequest,
               "the namespace of the provided object does not match the namespace sent on the request");
}

// Removes fields that only the server sets: admission sees them empty.
void WipeSystemFields(Message& object) {
  metav1::ObjectMeta& meta = api::MutableMeta(object);
  meta.clear_uid();
  meta.clear_creation_timestamp();
  meta.clear_deletion_timestamp();
  meta.clear_deletion_grace_period_seconds();
  meta.clear_self_link();
}

void FillSystemFields(Message& object, Clock& clock) {
  WipeSystemFields(object);
  metav1::ObjectMeta& meta = api::MutableMeta(object);
  meta.set_uid(api::NewUid());
  *meta.mutable_creation_timestamp() = api::ToTime(clock.Now());
}

// Removes duplicate owners, with a warning for the client.
void DedupOwners(Message& object, std::vector<std::string>& warnings) {
  auto& owners = *api::MutableMeta(object).mutable_owner_references();
  if (owners.size() < 2) return;
  std::set<std::string> seen;
  std::vector<std::string> twice;
  for (int i = 0; i < owners.size();) {
    if (seen.insert(owners[i].uid()).second) {
      ++i;
      continue;
    }
    twice.push_back(owners[i].uid());
    owners.DeleteSubrange(i, 1);
  }
  if (twice.empty()) return;
  warnings.push_back(fmt::format(
      ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
      "and may "
      "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: [{}]",
      fmt::join(twice, " ")));
}

// Runs mutating admission with the managed fields in the object, and takes them out again.
Result<> Mutate(const Strategy& strategy, const WriteOptions& options, Operation operation,
                const ResourceInfo& requested, Message& object, const Message* old,
                ManagedFields::Encoded& managed, std::vector<std::string>& warnings) {
  if (!options.admission) return {};
  managed.Swap(api::MutableMeta(object).mutable_managed_fields());
  const std::string before = requested.IsCustom() ? api::ContentText(object) : "";
  KEELSON_RETURN_IF_ERROR(options.admission(AdmissionPhase::kMutate, operation, requested, &object, old));
  managed.Clear();
  managed.Swap(api::MutableMeta(object).mutable_managed_fields());
  DedupOwners(object, warnings);
  // A custom object that admission left alone follows its schema already.
  if (!requested.IsCustom() || api::ContentText(object) != before) strategy.SetDefaults(object);
  return {};
}

// Whether a resourceVersion in a create names a revision. Others ("0", and what is not a number) are
// accepted.
bool IsRevision(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value != 0;
}

// Keeps fields that no client may change: always, or where the client left them out.
void KeepSystemFields(Message& object, const Message& old) {
  metav1::ObjectMeta& meta = api::MutableMeta(object);
  const metav1::ObjectMeta& before = api::Meta(old);
  if (meta.uid().empty()) meta.set_uid(before.uid());
  if (before.has_creation_timestamp()) *meta.mutable_creation_timestamp() = before.creation_timestamp();
  if (before.has_deletion_timestamp()) *meta.mutable_deletion_timestamp() = before.deletion_timestamp();
  if (before.has_deletion_grace_period_seconds() && !meta.has_deletion_grace_period_seconds()) {
    meta.set_deletion_grace_period_seconds(before.deletion_grace_period_seconds());
  }
  if (before.has_generation()) {
    meta.set_generation(before.generation());
  } else {
    meta.clear_generation();
  }
  meta.clear_self_link();
}

Result<> CheckName(const UpdateRequest& request, const Message& object) {
  const std::string& name = api::Meta(object).name();
  if (name == request.name) return {};
  if (name.empty()) {
    return Error(
        Code::kBadRequest,
        fmt::format("the name of the object ({} based on URL) was undeterminable: name must be provided",
                    request.name));
  }
  return Error(
      Code::kBadRequest,
      fmt::format("the name of the object ({}) does not match the name on the URL ({})", name, request.name));
}

// Checks the resourceVersion that the client sent.
Result<> CheckVersion(const UpdateRequest& request, const Message& object, const storage::Object& current,
                      bool may_be_unconditional) {
  const std::string& version = api::Meta(object).resource_version();
  if (version.empty() || version == "0") {
    if (may_be_unconditional) return {};
    // Upstream names the resource here, not the kind.
    const k8s::Path path("metadata");
    return k8s::ToInvalid(
        {std::string(request.info.group), std::string(request.info.version),
         std::string(request.info.resource)},
        request.name,
        {k8s::InvalidRaw(path.Child("resourceVersion"), "0", "must be specified for an update")});
  }
  if (!std::all_of(version.begin(), version.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return Error(Code::kInternal,
                 fmt::format("strconv.ParseUint: parsing {}: invalid syntax", k8s::Quote(version)));
  }
  if (version != std::to_string(current.revision())) {
    return ConflictError(
        request.info, request.name,
        "the object has been modified; please apply your changes to the latest version and try again");
  }
  return {};
}

// A UID in a body says which object it is meant for. In a patch it is an ordinary change, for validation to
// refuse.
Result<> CheckUid(const UpdateRequest& request, const Message& object, const Message& old) {
  const std::string& uid = api::Meta(object).uid();
  if (request.patch || uid.empty() || uid == api::Meta(old).uid()) return {};
  return UidConflict(request.info, request.ns, request.name, uid, api::Meta(old).uid());
}

// For a generated name, asks the client to try again.
Error ExistsError(const ResourceInfo& info, const metav1::ObjectMeta& meta) {
  Error error = AlreadyExistsError(info, meta.name());
  if (meta.generate_name().empty()) return error;
  ErrorDetails details = *error.details();
  details.retry_after_seconds = 1;
  return Error(Code::kAlreadyExists,
               error.message() + ", the server was not able to generate a unique name for the object")
      .WithDetails(std::move(details));
}

}  // namespace

Result<> Registry::Impl::CheckNamespace(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                        const storage::Limits& limits) const {
  static const ResourceInfo& namespaces = api::ResourceOf<corev1::Namespace>();
  ObjectPtr object = store.Peek(namespaces, ns);
  if (!object) {
    // The namespace may be too new for the cache.
    KEELSON_ASSIGN_OR_RETURN(object, store.Get(namespaces, ns, "", limits));
  }
  if (!object) return NotFoundError(namespaces, ns);
  auto decoded = object->Decode();
  if (static_cast<const corev1::Namespace&>(*decoded).status().phase() != "Terminating" &&
      !api::Meta(*decoded).has_deletion_timestamp()) {
    return {};
  }
  Error forbidden = ForbiddenError(
      info, name,
      fmt::format("unable to create new content in namespace {} because it is being terminated", ns));
  ErrorDetails details = *forbidden.details();
  details.causes.push_back(
      {"NamespaceTerminating", fmt::format("namespace {} is being terminated", ns), "metadata.namespace"});
  return forbidden.WithDetails(std::move(details));
}

Result<Written> Registry::Impl::Create(const ResourceInfo& info, const ResourceInfo& requested,
                                       std::string_view ns, std::unique_ptr<Message> object,
                                       const WriteOptions& options, bool fields_managed) {
  const Strategy& strategy = StrategyOf(info);
  KEELSON_RETURN_IF_ERROR(strategy.MayCreate());
  std::vector<std::string> warnings;
  Context context{info, options, clock, LimitsOf(options), &warnings};
  const FieldWrite write{info, options.field_manager, clock.Now(), ResetFilter(info, Part::kMain)};
  KEELSON_RETURN_IF_ERROR(CheckScope(info, ns, *object));
  if (info.namespaced) {
    const metav1::ObjectMeta& meta = api::Meta(*object);
    const std::string& name = meta.name().empty() ? meta.generate_name() : meta.name();
    KEELSON_RETURN_IF_ERROR(CheckNamespace(info, ns, name, context.limits));
  }
  const bool generated = GeneratesName(*object);
  std::unique_ptr<Message> original = generated ? Clone(*object) : nullptr;
  for (int attempt = 1;; ++attempt) {
    if (original && attempt > 1) object = Clone(*original);
    Effects effects;
    warnings.clear();
    DedupOwners(*object, warnings);
    WipeSystemFields(*object);
    if (!info.IsCustom() || !options.coerced) strategy.SetDefaults(*object);
    strategy.Fold(*object);
    // Before admission and the strategy: what these add has no manager.
    ManagedFields::Encoded managed;
    if (fields_managed) {
      managed.Swap(api::MutableMeta(*object).mutable_managed_fields());
    } else {
      managed = ManageUpdate(write, nullptr, *object);
    }
    KEELSON_RETURN_IF_ERROR(
        Mutate(strategy, options, Operation::kCreate, requested, *object, nullptr, managed, warnings));
    KEELSON_RETURN_IF_ERROR(CheckScope(info, ns, *object));
    if (GeneratesName(*object)) {
      metav1::ObjectMeta& meta = api::MutableMeta(*object);
      meta.set_name(meta.generate_name().substr(0, kMaxGeneratedBase) + api::RandomSuffix());
    }
    FillSystemFields(*object, clock);
    // After admission: fields derived from the spec (QoS class, generation) must reflect its changes.
    strategy.PrepareCreate(context, *object);
    managed.Swap(api::MutableMeta(*object).mutable_managed_fields());
    api::Normalize(*object);
    KEELSON_RETURN_IF_ERROR(strategy.Allocate(context, *object, nullptr, effects));
    const std::string name = api::Meta(*object).name();
    k8s::FieldErrors errors = strategy.Validate(*object);
    strategy.Check(context, Part::kMain, *object, nullptr, errors);
    CheckManagedFields(*object, errors);
    if (!errors.empty()) return k8s::ToInvalid(info.Gvk(), name, errors);
    if (options.admission) {
      KEELSON_RETURN_IF_ERROR(
          options.admission(AdmissionPhase::kValidate, Operation::kCreate, requested, object.get(), nullptr));
    }
    for (std::string& warning : k8s::WarningsOnCreate(*object)) warnings.push_back(std::move(warning));
    const std::string key = api::KeyOf(*object);
    if (options.dry_run) {
      KEELSON_ASSIGN_OR_RETURN(ObjectPtr existing, store.Get(info, key, "", context.limits));
      if (existing) return ExistsError(info, api::Meta(*object));
      return Written{storage::Object::Unstored(info, *object), true, std::move(warnings)};
    }
    if (IsRevision(api::Meta(*object).resource_version())) {
      return Error(Code::kInternal, "resourceVersion should not be set on objects to be created");
    }
    api::MutableMeta(*object).clear_resource_version();
    storage::Conflict conflict;
    Result<ObjectPtr> stored = PutNew(info, *object, conflict, context.limits);
    if (stored) {
      effects.Commit();
      return Written{*stored, true, std::move(warnings)};
    }
    if (!stored.error().Is(Code::kConflict)) {
      effects.Abandon();
      return stored.error();
    }
    if (generated && attempt < kGenerateAttempts) continue;
    Error exists = ExistsError(info, api::Meta(*object));
    if (conflict.current && api::Meta(*conflict.current->Decode()).has_deletion_timestamp()) {
      return exists.Wrap("object is being deleted");
    }
    return exists;
  }
}

Result<ObjectPtr> Registry::Impl::PutNew(const ResourceInfo& info, const Message& object,
                                         storage::Conflict& conflict, const storage::Limits& limits) {
  static const ResourceInfo& definitions = api::ResourceOf<apiextensionsv1::CustomResourceDefinition>();
  const std::string key = api::KeyOf(object);
  const apiextensions::CustomRow* row = apiextensions::CustomOf(info);
  if (!row) return store.Put(info, key, object, 0, TtlOf(info), conflict, limits);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    KEELSON_RETURN_IF_ERROR(custom.Find(info.group, info.resource, limits));
    const std::shared_ptr<const apiextensions::Definition> definition = row->owner->definition();
    KEELSON_RETURN_IF_ERROR(StrategyOf(info).MayCreate());
    if (!definition) continue;  // another one has just come
    const storage::Precondition allows{definitions, definition->name(), definition->revision};
    Result<ObjectPtr> stored = store.Put(info, key, object, 0, TtlOf(info), conflict, limits, &allows);
    if (stored || !stored.error().Is(Code::kConflict) || !conflict.precondition_fails) return stored;
    // The cache is behind: a consistent read waits until it has the definition as it is now.
    KEELSON_RETURN_IF_ERROR(store.Get(definitions, allows.key, "", limits));
  }
  return Error(Code::kUnavailable, "the definition of the resource keeps changing");
}

Result<Written> Registry::Impl::Update(const UpdateRequest& request, const WriteOptions& options) {
  storage::Limits limits = LimitsOf(options);
  const std::string key = api::KeyOf(request.ns, request.name);
  return WithRetries<Written>(store, request.info, key, limits,
                              [&](const Current& current, Current& newer) -> Result<Written> {
                                if (current.object) return TryUpdate(request, current, options, newer);
                                if (!request.create) return NotFoundError(request.info, request.name);
                                KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> object, request.create());
                                api::MutableMeta(*object).clear_resource_version();
                                api::MutableMeta(*object).set_name(std::string(request.name));
                                return Create(request.info, request.info, request.ns, std::move(object),
                                              options, request.fields_managed);
                              });
}

Result<Written> Registry::Impl::TryUpdate(const UpdateRequest& request, const Current& current,
                                          const WriteOptions& options, Current& newer) {
  const ResourceInfo& info = request.info;
  const Strategy& strategy = StrategyOf(info);
  Context context{info, options, clock, LimitsOf(options)};
  std::shared_ptr<const Message> old = current.object->Decode();
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<Message> object, request.change(*old));
  if (api::Meta(*object).name().empty() && request.part != Part::kMain) {
    api::MutableMeta(*object).set_name(std::string(request.name));
  }
  KEELSON_RETURN_IF_ERROR(CheckScope(info, request.ns, *object));
  bool may_be_unconditional = request.part != Part::kMain || strategy.AllowsUnconditionalUpdate();
  KEELSON_RETURN_IF_ERROR(CheckName(request, *object));
  KEELSON_RETURN_IF_ERROR(CheckUid(request, *object, *old));
  KEELSON_RETURN_IF_ERROR(CheckVersion(request, *object, *current.object, may_be_unconditional));
  std::vector<std::string> warnings;
  DedupOwners(*object, warnings);
  Effects effects;
  if (!request.coerced) strategy.SetDefaults(*object);
  KeepSystemFields(*object, *old);
  strategy.Fold(*object);
  ManagedFields::Encoded managed;
  if (request.fields_managed) {
    managed.Swap(api::MutableMeta(*object).mutable_managed_fields());
  } else {
    managed = ManageUpdate(
        {*request.requested, options.field_manager, clock.Now(), ResetFilter(info, request.part)}, old.get(),
        *object);
  }
  KEELSON_RETURN_IF_ERROR(Mutate(strategy, options, Operation::kUpdate, *request.requested, *object,
                                 old.get(), managed, warnings));
  if (request.part == Part::kMain) {
    strategy.PrepareUpdate(context, *object, *old);
  } else {
    strategy.PreparePart(context, request.part, *object, *old);
  }
  managed.Swap(api::MutableMeta(*object).mutable_managed_fields());
  api::Normalize(*object);
  // Validation requires a version; an unconditional update gets the current one.
  api::MutableMeta(*object).set_resource_version(std::to_string(current.object->revision()));
  if (request.part == Part::kMain) {
    KEELSON_RETURN_IF_ERROR(strategy.Allocate(context, *object, old.get(), effects));
  }
  k8s::FieldErrors errors =
      strategy.ValidateUpdate(request.part, SubresourceOf(*request.requested), *object, *old);
  strategy.Check(context, request.part, *object, old.get(), errors);
  CheckManagedFields(*object, errors);
  if (!errors.empty()) return k8s::ToInvalid(info.Gvk(), request.name, errors);
  if (options.admission) {
    KEELSON_RETURN_IF_ERROR(options.admission(AdmissionPhase::kValidate, Operation::kUpdate,
                                              *request.requested, object.get(), old.get()));
  }
  if (request.part == Part::kMain) {
    for (std::string& warning : k8s::WarningsOnUpdate(*object, *old)) warnings.push_back(std::move(warning));
  }
  api::MutableMeta(*object).clear_resource_version();
  if (strategy.ReadyToGo(*object)) {
    KEELSON_ASSIGN_OR_RETURN(Deleted gone, Remove(info, current, options, newer));
    return Written{storage::Object::FromMessage(info, *object, gone.object->revision()), false, {}};
  }
  if (ChangesNothing(*object, *old) &&
      (options.dry_run || !store.IsStale(info, *current.object, context.limits))) {
    return Written{current.object, false, std::move(warnings)};
  }
  if (options.dry_run) {
    return Written{storage::Object::FromMessage(info, *object, current.object->revision()), false,
                   std::move(warnings)};
  }
  storage::Conflict conflict;
  Result<ObjectPtr> stored = store.Put(info, current.object->key(), *object, current.object->revision(),
                                       TtlOf(info), conflict, context.limits);
  if (!stored) {
    if (stored.error().Is(Code::kConflict)) {
      newer = {conflict.current, false};
    } else {
      effects.Abandon();
    }
    return stored.error();
  }
  effects.Commit();
  return Written{*stored, false, std::move(warnings)};
}

}  // namespace keelson::registry
