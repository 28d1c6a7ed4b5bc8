#include "controlplane/registry/registry.h"

#include <algorithm>

#include <fmt/format.h>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/registry/impl.h"
#include "controlplane/storage/convert.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/base/log.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {
namespace {

constexpr std::chrono::seconds kLongest{30};

}  // namespace

std::string_view SubresourceOf(const ResourceInfo& info) {
  size_t slash = info.resource.find('/');
  return slash == std::string_view::npos ? std::string_view() : info.resource.substr(slash + 1);
}

const ResourceInfo& MainRow(const ResourceInfo& info) {
  if (const apiextensions::CustomRow* custom = apiextensions::CustomOf(info)) return *custom->main;
  if (!info.IsSubresource()) return info;
  return *api::FindResource(info.group, info.version, info.resource.substr(0, info.resource.find('/')));
}

Result<Part> PartOf(const ResourceInfo& info) {
  std::string_view sub = SubresourceOf(info);
  if (sub.empty()) return Part::kMain;
  if (sub == "status") return Part::kStatus;
  if (sub == "finalize") return Part::kFinalize;
  if (sub == "approval") return Part::kApproval;
  if (sub == "ephemeralcontainers") return Part::kEphemeralContainers;
  if (sub == "resize") return Part::kResize;
  return Error(Code::kMethodNotAllowed, fmt::format("{} cannot be written this way", info.resource));
}

std::unique_ptr<Message> Clone(const Message& message) {
  std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  return copy;
}

Result<> Admit(const WriteOptions& options, Operation operation, const ResourceInfo& info, Message* object,
               const Message* old_object) {
  if (!options.admission) return {};
  KEELSON_RETURN_IF_ERROR(options.admission(AdmissionPhase::kMutate, operation, info, object, old_object));
  return options.admission(AdmissionPhase::kValidate, operation, info, object, old_object);
}

Registry::Impl::Impl(storage::Store& s, Config c, Clock& k)
    : store(s),
      config(std::move(c)),
      clock(k),
      custom(store),
      allocator(store, config, clock),
      repair(allocator, clock, [this](const Message& about, std::string_view reason, std::string note) {
        Warn(about, reason, std::move(note));
      }) {
  for (const ResourceInfo& info : api::Resources()) {
    if (!info.etcd_prefix.empty()) strategies.emplace(&info, MakeStrategy(info, allocator));
  }
}

const Strategy& Registry::Impl::StrategyOf(const ResourceInfo& info) const {
  const apiextensions::CustomRow* custom = apiextensions::CustomOf(info);
  if (!custom) return *strategies.at(&info);
  MutexLock lock(custom_mutex);
  std::unique_ptr<Strategy>& strategy = custom_strategies[custom];
  if (!strategy) strategy = MakeCustomStrategy(*custom);
  return *strategy;
}

storage::Limits Registry::Impl::LimitsOf(const WriteOptions& options) const {
  return {std::min(options.deadline, std::chrono::steady_clock::now() + kLongest), options.stop};
}

storage::Limits Registry::Impl::ReadLimits(std::stop_token stop, SteadyTime deadline) const {
  return {std::min(deadline, std::chrono::steady_clock::now() + kLongest), std::move(stop)};
}

std::chrono::seconds Registry::Impl::TtlOf(const ResourceInfo& info) const {
  return info.resource == "events" ? config.event_ttl : std::chrono::seconds(0);
}

Registry::Registry(storage::Store& store, Config config, Clock& clock)
    : store_(store), impl_(std::make_unique<Impl>(store, std::move(config), clock)) {}

Registry::~Registry() = default;

Result<> Registry::Start(std::stop_token stop) {
  storage::Limits limits = impl_->ReadLimits(std::move(stop));
  KEELSON_RETURN_IF_ERROR(impl_->allocator.Start(limits));
  return impl_->repair.RunOnce(limits);
}

void Registry::Maintain(std::stop_token stop) { impl_->repair.Run(std::move(stop)); }

void Registry::Impl::Warn(const Message& about, std::string_view reason, std::string note) {
  const metav1::ObjectMeta& meta = api::Meta(about);
  const ResourceInfo& info = api::ResourceOf(about.GetDescriptor());
  log::Warn("Allocation repair", {{"object", api::KeyOf(about)}, {"reason", reason}, {"note", note}});
  auto event = std::make_unique<corev1::Event>();
  const std::string ns = meta.namespace_().empty() ? "default" : meta.namespace_();
  event->mutable_metadata()->set_namespace_(ns);
  event->mutable_metadata()->set_name(meta.name() + "." + api::RandomSuffix(16));
  corev1::ObjectReference& involved = *event->mutable_involved_object();
  involved.set_kind(std::string(info.kind));
  involved.set_api_version(info.Gvk().ApiVersion());
  involved.set_name(meta.name());
  involved.set_namespace_(meta.namespace_());
  involved.set_uid(meta.uid());
  involved.set_resource_version(meta.resource_version());
  event->set_type("Warning");
  event->set_reason(std::string(reason));
  event->set_message(std::move(note));
  event->set_count(1);
  *event->mutable_first_timestamp() = *event->mutable_last_timestamp() = api::ToTime(clock.Now());
  event->mutable_source()->set_component("service-allocation-repair");
  api::Normalize(*event);
  const ResourceInfo& events = api::ResourceOf<corev1::Event>();
  WriteOptions options;
  options.field_manager = "kube-apiserver";
  Result<Written> written = Create(events, events, ns, std::move(event), options);
  if (!written) log::Warn("Cannot record an event", {{"err", written.error()}});
}

Result<const ResourceInfo*> Registry::FindResource(std::string_view group, std::string_view version,
                                                   std::string_view resource, std::stop_token stop) {
  if (const ResourceInfo* row = api::FindResource(group, version, resource)) return row;
  if (group.empty()) return nullptr;
  const size_t slash = std::min(resource.find('/'), resource.size());
  const std::string_view plural = resource.substr(0, slash);
  const std::string_view sub = resource.substr(std::min(slash + 1, resource.size()));
  KEELSON_ASSIGN_OR_RETURN(apiextensions::CustomResource * found,
                           impl_->custom.Find(group, plural, impl_->ReadLimits(std::move(stop))));
  std::shared_ptr<const apiextensions::Definition> definition = found ? found->definition() : nullptr;
  if (!definition || !definition->served) return nullptr;
  const apiextensions::Version* one = definition->Find(version);
  if (!one || !one->served) return nullptr;
  if (slash != resource.size() && !(sub == "status" && one->has_status) && !(sub == "scale" && one->scale)) {
    return nullptr;
  }
  return &found->Row(version, sub);
}

const ResourceInfo* Registry::FindKind(std::string_view group, std::string_view version,
                                       std::string_view kind) {
  if (const ResourceInfo* row = api::FindKind(group, version, kind)) return row;
  return impl_->custom.FindKind(group, version, kind);
}

void Registry::ForEachCustom(
    const std::function<void(apiextensions::CustomResource&, const apiextensions::Definition&)>& each) {
  impl_->custom.ForEach(each);
}

Result<size_t> Registry::DeleteCustomObjects(std::string_view group, std::string_view plural,
                                             const WriteOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(apiextensions::CustomResource * resource,
                           impl_->custom.Find(group, plural, impl_->LimitsOf(options)));
  std::shared_ptr<const apiextensions::Definition> definition = resource ? resource->definition() : nullptr;
  if (!definition) return 0;
  const ResourceInfo& row = resource->Row(definition->StorageVersion().name);
  metav1::DeleteOptions background;
  background.set_propagation_policy("Background");
  KEELSON_RETURN_IF_ERROR(DeleteCollection(row, "", {}, background, options));
  KEELSON_ASSIGN_OR_RETURN(ObjectList left, List(row, "", {}, options.stop));
  return left.items.size();
}

void Registry::SetConverter(std::shared_ptr<apiextensions::Converter> converter) {
  impl_->custom.SetConverter(std::move(converter));
}

void Registry::ForgetCustom(const std::string& name) { impl_->custom.Forget(name); }

Result<ObjectPtr> Registry::Get(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                std::string_view resource_version, std::stop_token stop,
                                SteadyTime deadline) {
  const ResourceInfo& main = MainRow(info);
  KEELSON_ASSIGN_OR_RETURN(ObjectPtr object, store_.Get(main, api::KeyOf(ns, name), resource_version,
                                                        impl_->ReadLimits(stop, deadline)));
  if (!object) return NotFoundError(main, name);
  if (SubresourceOf(info) != "scale") return object;
  return impl_->ScaleOf(info, *object->Decode());
}

Result<Written> Registry::Create(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                 std::unique_ptr<Message> object, const WriteOptions& options) {
  std::string_view sub = SubresourceOf(info);
  if (sub == "binding") return impl_->Bind(info, ns, name, *object, options);
  if (sub == "eviction") return impl_->Evict(info, ns, name, *object, options);
  if (!sub.empty() || info.etcd_prefix.empty()) {
    return Error(Code::kMethodNotAllowed, fmt::format("{} cannot be created this way", info.resource));
  }
  return impl_->Create(info, info, ns, std::move(object), options);
}

Result<Written> Registry::Update(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                 std::unique_ptr<Message> object, const WriteOptions& options) {
  std::shared_ptr<const Message> body = std::move(object);
  auto change = [&body](const Message&) -> Result<std::unique_ptr<Message>> { return Clone(*body); };
  if (SubresourceOf(info) == "scale") return impl_->UpdateScale(info, ns, name, change, options);
  const ResourceInfo& main = MainRow(info);
  KEELSON_ASSIGN_OR_RETURN(Part part, PartOf(info));
  UpdateRequest request{main, ns, name, part, &info, change, {}, false};
  request.coerced = info.IsCustom() && options.coerced;
  if (part == Part::kMain && impl_->StrategyOf(main).AllowsCreateOnUpdate()) {
    request.create = [&body]() -> Result<std::unique_ptr<Message>> { return Clone(*body); };
  }
  return impl_->Update(request, options);
}

Result<Written> Registry::Modify(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                 const std::function<Result<>(Message& object)>& change,
                                 const WriteOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(Part part, PartOf(info));
  UpdateRequest request{MainRow(info), ns, name, part, &info, {}, {}, false};
  request.change = [&](const Message& current) -> Result<std::unique_ptr<Message>> {
    std::unique_ptr<Message> changed = Clone(current);
    KEELSON_RETURN_IF_ERROR(change(*changed));
    return changed;
  };
  return impl_->Update(request, options);
}

Result<Written> Registry::Patch(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                PatchType type, std::string_view patch, const WriteOptions& options) {
  std::vector<std::string> warnings;
  if (type == PatchType::kApply) return impl_->Apply(info, ns, name, patch, options);
  auto change = [&](const Message& current) {
    warnings.clear();
    return ApplyPatch(current, info, type, patch, options.field_validation, warnings);
  };
  Result<Written> written = Error(Code::kInternal, "");
  if (SubresourceOf(info) == "scale") {
    written = impl_->UpdateScale(info, ns, name, change, options);
  } else {
    KEELSON_ASSIGN_OR_RETURN(Part part, PartOf(info));
    const UpdateRequest request{MainRow(info), ns, name, part,  &info,
                                change,        {}, true, false, info.IsCustom()};
    written = impl_->Update(request, options);
  }
  if (written) {
    written->warnings.insert(written->warnings.begin(), std::make_move_iterator(warnings.begin()),
                             std::make_move_iterator(warnings.end()));
  }
  return written;
}

Result<Deleted> Registry::Delete(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                 const metav1::DeleteOptions& delete_options, const WriteOptions& options) {
  return impl_->Delete(info, ns, name, delete_options, options);
}

Result<ObjectList> Registry::DeleteCollection(const ResourceInfo& info, std::string_view ns,
                                              const ListOptions& list,
                                              const metav1::DeleteOptions& delete_options,
                                              const WriteOptions& options) {
  if (delete_options.ignore_store_read_error_with_cluster_breaking_potential()) {
    return k8s::ToInvalid(
        {"meta.k8s.io", "v1", "DeleteOptions"}, "",
        {k8s::InvalidBool(k8s::Path("ignoreStoreReadErrorWithClusterBreakingPotential"), true,
                          "is not allowed with DELETECOLLECTION, try again after removing the option")});
  }
  KEELSON_ASSIGN_OR_RETURN(ObjectList found, List(info, ns, list, options.stop));
  for (const ObjectPtr& object : found.items) {
    Result<Deleted> one = impl_->Delete(info, object->ns(), object->name(), delete_options, options);
    if (!one && !one.error().Is(Code::kNotFound)) return one.error();
  }
  return found;
}

}  // namespace keelson::registry
