// The apply verb: merges an applied configuration, and checks for conflicts with other managers.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "controlplane/registry/field_manager_parts.h"
#include "controlplane/registry/impl.h"
#include "controlplane/storage/convert.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::registry {
namespace {

namespace json = boost::json;

constexpr const char* kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
constexpr const char* kBeforeFirstApply = "before-first-apply";
constexpr size_t kMaxAnnotationsSize = 256 << 10;

struct Conflict {
  std::string manager;  // printed form
  api::FieldPath path;
};
using Conflicts = std::vector<Conflict>;

json::parse_options Deep() {
  json::parse_options options;
  options.max_depth = 1000;
  return options;
}

std::string TextAt(const json::value& object, std::initializer_list<const char*> path) {
  const json::value* at = &object;
  for (const char* name : path) {
    const json::object* map = at->if_object();
    at = map ? map->if_contains(name) : nullptr;
    if (!at) return "";
  }
  const json::string* text = at->if_string();
  return text ? std::string(text->data(), text->size()) : "";
}

// Prints a group, version and kind as Go does.
std::string PrintGvk(const json::value& object) {
  auto [group, version] = api::SplitApiVersion(TextAt(object, {"apiVersion"}));
  return fmt::format("{}/{}, Kind={}", group, version, TextAt(object, {"kind"}));
}

std::string PrintObject(const json::value& object) {
  return fmt::format("{}/{}; {}", TextAt(object, {"metadata", "namespace"}),
                     TextAt(object, {"metadata", "name"}), PrintGvk(object));
}

Error ConflictErrorOf(const Conflicts& conflicts) {
  ErrorDetails details;
  for (const Conflict& one : conflicts) {
    details.causes.push_back(
        {"FieldManagerConflict", "conflict with " + one.manager, api::PrintPath(one.path)});
  }
  std::string message;
  if (conflicts.size() == 1) {
    message = fmt::format("Apply failed with 1 conflict: conflict with {}: {}", conflicts[0].manager,
                          api::PrintPath(conflicts[0].path));
  } else {
    message = fmt::format("Apply failed with {} conflicts: ", conflicts.size());
    for (size_t i = 0; i < conflicts.size(); ++i) {
      if (i > 0) message += '\n';
      if (i == 0 || conflicts[i].manager != conflicts[i - 1].manager) {
        message += fmt::format("conflicts with {}:\n", conflicts[i].manager);
      }
      message += "- " + api::PrintPath(conflicts[i].path);
    }
  }
  return Error(Code::kConflict, std::move(message)).WithDetails(std::move(details));
}

class Applier {
 public:
  Applier(const FieldWrite& write, const Message* live, const json::value& config)
      : write_(write),
        config_(config),
        gvk_(write.info.Gvk()),
        version_(gvk_.ApiVersion()),
        shared_shape_(ShapeOfRow(write.info)),
        shape_(*shared_shape_),
        live_(live ? Clone(*live) : api::NewObject(write.info.descriptor())) {
    managed_.Swap(api::MutableMeta(*live_).mutable_managed_fields());
    live_json_ = ToJson(*live_, gvk_);
    exists_ = live != nullptr;
  }

  Result<std::unique_ptr<Message>> Run(bool force);

 private:
  struct Outcome {
    ManagedFields managed;
    json::value object;
    bool changed = false;
    Conflicts conflicts;
  };

  static json::value ToJson(const Message& object, const api::GroupVersionKind& gvk) {
    std::string text = api::EncodeJson(object, gvk);
    return json::parse(text, {}, Deep());
  }
  Result<> CheckConfig() const;
  Result<Outcome> Try(ManagedFields managed, bool force) const;
  Result<json::value> Prune(json::value merged, const ManagedFields& managed, const ManagedEntry& last) const;
  Result<json::value> AddBackOwned(json::value& merged, json::value pruned, std::string& at,
                                   const std::string& first, const ManagedFields& managed) const;
  Result<json::value> Converted(const json::value& object, const std::string& from,
                                const std::string& to) const;
  Result<Conflicts> TakeFromOthers(ManagedFields& managed, const json::value& object, bool force) const;
  api::FieldSet AllowedByLastApplied() const;
  void UpdateLastApplied(Message& object) const;
  std::shared_ptr<const api::Shape> ShapeAt(const std::string& version) const {
    return ShapeOfRow(*RowAtVersion(write_.info, version));
  }
  bool IsSelf(const ManagedEntry& entry) const {
    return entry.IsOf(write_.manager, true, version_, SubresourceOf(write_.info));
  }

  const FieldWrite& write_;
  const json::value& config_;
  const api::GroupVersionKind gvk_;
  const std::string version_;
  const std::shared_ptr<const api::Shape> shared_shape_;
  const api::Shape& shape_;
  std::unique_ptr<Message> live_;  // without managed fields
  ManagedFields::Encoded managed_;
  json::value live_json_;
  bool exists_ = false;
};

Result<> Applier::CheckConfig() const {
  if (TextAt(config_, {"apiVersion"}) != version_ || TextAt(config_, {"kind"}) != gvk_.kind) {
    return Error(Code::kBadRequest, "invalid object type: " + PrintGvk(config_));
  }
  const json::value* metadata = config_.get_object().if_contains("metadata");
  const json::object* fields = metadata ? metadata->if_object() : nullptr;
  const json::value* managed = fields ? fields->if_contains("managedFields") : nullptr;
  if (managed && managed->is_array()) return Error(Code::kBadRequest, "metadata.managedFields must be nil");
  std::vector<std::string> problems = api::CheckShape(shape_, config_, false);
  if (problems.empty()) return {};
  std::string text = problems[0];
  if (problems.size() > 1) text = fmt::format("errors:\n  {}", fmt::join(problems, "\n  "));
  return Error(Code::kInternal,
               fmt::format("failed to create typed patch object ({}): {}", PrintObject(config_), text));
}

// kNotFound: one of the versions no longer exists.
Result<json::value> Applier::Converted(const json::value& object, const std::string& from,
                                       const std::string& to) const {
  if (from == to) return object;
  const ResourceInfo* source = RowAtVersion(write_.info, from);
  const ResourceInfo* target = RowAtVersion(write_.info, to);
  if (!source || !target) return Error(Code::kNotFound, "no such version");
  std::unique_ptr<Message> message = api::NewObject(source->descriptor());
  Result<> decoded = api::DecodeJson(json::serialize(object), *message);
  if (!decoded) {
    return Error(Code::kInternal,
                 fmt::format("failed to convert object at version {}: {}", to, decoded.error().message()));
  }
  return ToJson(*storage::Convert(*message, *target), target->Gvk());
}

// Adds back what other managers' fields, at each of their versions, keep in the object.
Result<json::value> Applier::AddBackOwned(json::value& merged, json::value pruned, std::string& at,
                                          const std::string& first, const ManagedFields& managed) const {
  std::map<std::string, api::FieldSet> by_version;
  for (const ManagedEntry& entry : managed.entries()) by_version[entry.api_version].UnionWith(entry.fields);
  std::vector<std::string> order;
  if (by_version.count(first)) order.push_back(first);
  for (const auto& entry : by_version) {
    if (entry.first != first) order.push_back(entry.first);
  }
  for (const std::string& version : order) {
    if (!RowAtVersion(write_.info, version)) continue;
    KEELSON_ASSIGN_OR_RETURN(merged, Converted(merged, at, version));
    KEELSON_ASSIGN_OR_RETURN(pruned, Converted(pruned, at, version));
    at = version;
    const std::shared_ptr<const api::Shape> shared_shape = ShapeAt(version);
    const api::Shape& shape = *shared_shape;
    api::FieldSet gone = api::WithNamedFields(shape, api::FieldsOf(shape, merged));
    gone.Subtract(api::WithNamedFields(shape, api::FieldsOf(shape, pruned)));
    gone.Subtract(api::WithNamedFields(shape, by_version[version]));
    pruned = api::RemoveFields(shape, merged, gone);
  }
  return pruned;
}

// Removes what the manager applied last time and no longer does, unless somebody else has it.
Result<json::value> Applier::Prune(json::value merged, const ManagedFields& managed,
                                   const ManagedEntry& last) const {
  if (last.fields.Empty() || !RowAtVersion(write_.info, last.api_version)) return merged;
  std::string at = last.api_version;
  KEELSON_ASSIGN_OR_RETURN(merged, Converted(merged, version_, at));
  const std::shared_ptr<const api::Shape> shared_shape = ShapeAt(last.api_version);
  const api::Shape& shape = *shared_shape;
  const api::FieldSet mine = api::WithNamedFields(shape, last.fields);
  json::value converted = merged;
  KEELSON_ASSIGN_OR_RETURN(json::value pruned, AddBackOwned(merged, api::RemoveFields(shape, merged, mine),
                                                            at, last.api_version, managed));
  KEELSON_ASSIGN_OR_RETURN(pruned, Converted(pruned, at, last.api_version));
  // Only fields that this manager had may go.
  api::FieldSet gone = api::WithNamedFields(shape, api::FieldsOf(shape, converted));
  gone.Subtract(api::WithNamedFields(shape, api::FieldsOf(shape, pruned)));
  return Converted(api::RemoveFields(shape, converted, gone.Intersection(mine)), last.api_version, version_);
}

Result<Conflicts> Applier::TakeFromOthers(ManagedFields& managed, const json::value& object,
                                          bool force) const {
  std::map<std::string, api::Comparison> at;
  Conflicts conflicts;
  std::vector<ManagedEntry*> others;
  for (ManagedEntry& entry : managed.entries()) {
    if (!IsSelf(entry)) others.push_back(&entry);
  }
  std::sort(others.begin(), others.end(), [](const ManagedEntry* a, const ManagedEntry* b) {
    return std::make_pair(a->manager, a->Describe()) < std::make_pair(b->manager, b->Describe());
  });
  for (ManagedEntry* entry : others) {
    auto [it, missing] = at.try_emplace(entry->api_version);
    if (missing) {
      Result<json::value> before = Converted(live_json_, version_, entry->api_version);
      if (!before && before.error().Is(Code::kNotFound)) {
        entry->fields = {};
        at.erase(it);
        continue;
      }
      KEELSON_RETURN_IF_ERROR(before);
      KEELSON_ASSIGN_OR_RETURN(json::value after, Converted(object, version_, entry->api_version));
      it->second = api::CompareJson(*ShapeAt(entry->api_version), *before, after);
      it->second.Filter(write_.filter);
      it->second.modified.UnionWith(it->second.added);
    }
    api::FieldSet taken = entry->fields.Intersection(it->second.modified);
    if (!force) {
      taken.ForEach([&](const api::FieldPath& path) { conflicts.push_back({entry->Describe(), path}); });
    }
    entry->fields.Subtract(taken);
    entry->fields.Subtract(it->second.removed);
  }
  return conflicts;
}

Result<Applier::Outcome> Applier::Try(ManagedFields managed, bool force) const {
  Outcome outcome;
  json::value merged = api::MergeShaped(shape_, live_json_, config_);
  ManagedEntry last;
  ManagedEntry* self = managed.Find(write_.manager, true, version_, SubresourceOf(write_.info));
  if (self) {
    last = *self;
  } else {
    self = &managed.entries().emplace_back();
    self->manager = write_.manager;
    self->applied = true;
    self->subresource = SubresourceOf(write_.info);
  }
  self->api_version = version_;
  self->fields = api::FieldsOf(shape_, config_);
  write_.filter.Apply(self->fields);
  KEELSON_ASSIGN_OR_RETURN(merged, Prune(std::move(merged), managed, last));
  KEELSON_ASSIGN_OR_RETURN(outcome.conflicts, TakeFromOthers(managed, merged, force));
  if (!outcome.conflicts.empty()) return outcome;
  self = managed.Find(write_.manager, true, version_, SubresourceOf(write_.info));
  self->fields.Subtract(StripSet());
  outcome.changed = !api::SameJson(live_json_, merged);
  if (outcome.changed) self->time = api::ToTime(write_.now);
  managed.DropEmpty();
  outcome.managed = std::move(managed);
  outcome.object = std::move(merged);
  return outcome;
}

// Fields that `kubectl apply` (client-side) set and that are unchanged since: server-side kubectl may take
// them.
api::FieldSet Applier::AllowedByLastApplied() const {
  const auto& annotations = api::Meta(*live_).annotations();
  auto found = annotations.find(kLastApplied);
  if (found == annotations.end() || found->second.empty()) return {};
  boost::system::error_code error;
  json::value applied = json::parse(found->second, error, {}, Deep());
  if (error || !applied.is_object() || TextAt(applied, {"apiVersion"}) != version_) return {};
  if (!api::CheckShape(shape_, applied, false).empty()) return {};
  api::FieldSet fields = api::FieldsOf(shape_, applied);
  api::Comparison difference = api::CompareJson(shape_, applied, live_json_);
  fields.Subtract(difference.modified);
  fields.Subtract(difference.added);
  fields.Subtract(difference.removed);
  return fields;
}

// Go's encoder sorts the keys of maps.
json::value Sorted(const json::value& v) {
  if (const auto* list = v.if_array()) {
    json::array out;
    for (const json::value& item : *list) out.push_back(Sorted(item));
    return out;
  }
  const auto* map = v.if_object();
  if (!map) return v;
  std::map<std::string_view, const json::value*> members;
  for (const auto& member : *map) {
    members.emplace(std::string_view(member.key().data(), member.key().size()), &member.value());
  }
  json::object out;
  for (const auto& member : members) {
    out[json::string_view(member.first.data(), member.first.size())] = Sorted(*member.second);
  }
  return out;
}

// Keeps the last-applied annotation up to date, for users who return to client-side apply.
void Applier::UpdateLastApplied(Message& object) const {
  auto& annotations = *api::MutableMeta(object).mutable_annotations();
  auto found = annotations.find(kLastApplied);
  if (found == annotations.end() || found->second.empty()) return;
  json::value config = Sorted(config_);
  if (json::value* metadata = config.get_object().if_contains("metadata")) {
    json::value* own = metadata->is_object() ? metadata->get_object().if_contains("annotations") : nullptr;
    if (own && own->is_object()) own->get_object().erase(kLastApplied);
  }
  annotations[kLastApplied] = std::string(json::serialize(config)) + "\n";
  size_t size = 0;
  for (const auto& entry : annotations) size += entry.first.size() + entry.second.size();
  if (size > kMaxAnnotationsSize) annotations.erase(kLastApplied);
}

Result<std::unique_ptr<Message>> Applier::Run(bool force) {
  Result<ManagedFields> managed = ManagedFields::Decode(managed_);
  if (!managed) {
    return Error(Code::kInternal, "failed to decode managed fields: " + managed.error().message());
  }
  KEELSON_RETURN_IF_ERROR(CheckConfig());
  if (managed->empty() && exists_) {
    // No managers recorded yet: assign the whole object to one manager, which conflicts with changes.
    FieldWrite before{write_.info, kBeforeFirstApply, write_.now, write_.filter};
    TakeOver(before, nullptr, *live_, Changes(before, nullptr, *live_), *managed);
  }
  KEELSON_ASSIGN_OR_RETURN(Outcome outcome, Try(*managed, force));
  if (!outcome.conflicts.empty() && write_.manager == "kubectl") {
    const api::FieldSet allowed = AllowedByLastApplied();
    Conflicts rest;
    for (const Conflict& one : outcome.conflicts) {
      if (!allowed.Has(one.path)) rest.push_back(one);
    }
    if (!rest.empty()) return ConflictErrorOf(rest);
    KEELSON_ASSIGN_OR_RETURN(outcome, Try(std::move(*managed), true));
  }
  if (!outcome.conflicts.empty()) return ConflictErrorOf(outcome.conflicts);
  std::unique_ptr<Message> object = std::move(live_);
  if (outcome.changed) {
    Result<> decoded = api::DecodeJson(json::serialize(outcome.object), *object);
    if (!decoded) {
      return Error(Code::kInternal, fmt::format("failed to convert new object ({}) to proper version: {}",
                                                PrintObject(config_), decoded.error().message()));
    }
  }
  if (write_.manager == "kubectl") UpdateLastApplied(*object);
  *api::MutableMeta(*object).mutable_managed_fields() = outcome.managed.Encode();
  return object;
}

}  // namespace

Result<std::unique_ptr<Message>> ManageApply(const FieldWrite& write, const Message* live,
                                             const json::value& config, bool force) {
  static const json::value nothing = json::object();
  if (!config.is_object() && !config.is_null()) {
    const char* kind = config.is_array()    ? "array"
                       : config.is_string() ? "string"
                       : config.is_bool()   ? "bool"
                                            : "number";
    return Error(
        Code::kBadRequest,
        fmt::format("error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
                    "unmarshal {} into Go value of type map[string]interface {{}}",
                    kind));
  }
  return Applier(write, live, config.is_null() ? nothing : config).Run(force);
}

}  // namespace keelson::registry
