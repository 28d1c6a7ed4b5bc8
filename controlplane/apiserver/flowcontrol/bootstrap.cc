#include "controlplane/apiserver/flowcontrol/bootstrap.h"

#include <set>
#include <string_view>

#include "controlplane/apiserver/bootstrap/bootstrap.h"
#include "controlplane/apiserver/request/user.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/k8s/defaulting/defaulting.h"

namespace keelson::apiserver::flowcontrol {
namespace {

using flowcontrolv1::FlowSchema;
using flowcontrolv1::PriorityLevelConfiguration;
using Names = std::vector<std::string_view>;

constexpr const char* kAutoUpdate = "apf.kubernetes.io/autoupdate-spec";
constexpr std::string_view kManager = "system:kube-controller-manager", kScheduler = "system:kube-scheduler";

struct LevelRow {
  const char* name;
  int shares, lendable;
  int queues, hand, length;  // 0: no queueing, reject
};
constexpr LevelRow kCatchAll = {"catch-all", 5, 0, 0, 0, 0};
constexpr LevelRow kSuggestedLevels[] = {
    {"system", 30, 33, 64, 6, 50},         {"node-high", 40, 25, 64, 6, 50},
    {"leader-election", 10, 0, 16, 4, 50}, {"workload-high", 40, 50, 128, 6, 50},
    {"workload-low", 100, 90, 128, 6, 50}, {"global-default", 20, 50, 128, 6, 50},
};

PriorityLevelConfiguration Level(const LevelRow& row) {
  PriorityLevelConfiguration level;
  level.mutable_metadata()->set_name(row.name);
  level.mutable_spec()->set_type("Limited");
  auto& limited = *level.mutable_spec()->mutable_limited();
  limited.set_nominal_concurrency_shares(row.shares);
  limited.set_lendable_percent(row.lendable);
  auto& response = *limited.mutable_limit_response();
  response.set_type(row.queues > 0 ? "Queue" : "Reject");
  if (row.queues > 0) {
    response.mutable_queuing()->set_queues(row.queues);
    response.mutable_queuing()->set_hand_size(row.hand);
    response.mutable_queuing()->set_queue_length_limit(row.length);
  }
  return level;
}

PriorityLevelConfiguration ExemptLevel() {
  PriorityLevelConfiguration level;
  level.mutable_metadata()->set_name("exempt");
  level.mutable_spec()->set_type("Exempt");
  level.mutable_spec()->mutable_exempt()->set_nominal_concurrency_shares(0);
  level.mutable_spec()->mutable_exempt()->set_lendable_percent(0);
  return level;
}

void Fill(google::protobuf::RepeatedPtrField<std::string>* to, const Names& from) {
  for (std::string_view one : from) to->Add(std::string(one));
}

// A FlowSchema, part by part.
class Schema {
 public:
  Schema(const char* name, const char* level, int precedence, const char* distinguisher) {
    object_.mutable_metadata()->set_name(name);
    auto& spec = *object_.mutable_spec();
    spec.mutable_priority_level_configuration()->set_name(level);
    spec.set_matching_precedence(precedence);
    if (*distinguisher != '\0') spec.mutable_distinguisher_method()->set_type(distinguisher);
    rules_ = spec.add_rules();
  }
  Schema& Users(const Names& names) {
    for (std::string_view name : names) {
      auto* subject = rules_->add_subjects();
      subject->set_kind("User");
      subject->mutable_user()->set_name(std::string(name));
    }
    return *this;
  }
  Schema& Groups(const Names& names) {
    for (std::string_view name : names) {
      auto* subject = rules_->add_subjects();
      subject->set_kind("Group");
      subject->mutable_group()->set_name(std::string(name));
    }
    return *this;
  }
  Schema& SystemAccounts(const Names& names) {
    for (std::string_view name : names) {
      auto* subject = rules_->add_subjects();
      subject->set_kind("ServiceAccount");
      subject->mutable_service_account()->set_namespace_("kube-system");
      subject->mutable_service_account()->set_name(std::string(name));
    }
    return *this;
  }
  Schema& Resources(const Names& verbs, std::string_view group, const Names& resources, bool namespaced,
                    bool cluster_scope) {
    auto* rule = rules_->add_resource_rules();
    Fill(rule->mutable_verbs(), verbs);
    Fill(rule->mutable_api_groups(), {group});
    Fill(rule->mutable_resources(), resources);
    if (namespaced) Fill(rule->mutable_namespaces(), {"*"});
    if (cluster_scope) rule->set_cluster_scope(true);
    return *this;
  }
  Schema& Paths(const Names& verbs, const Names& urls) {
    auto* rule = rules_->add_non_resource_rules();
    Fill(rule->mutable_verbs(), verbs);
    Fill(rule->mutable_non_resource_urls(), urls);
    return *this;
  }
  FlowSchema All() {
    Resources({"*"}, "*", {"*"}, true, true);
    Paths({"*"}, {"*"});
    return object_;
  }
  FlowSchema Done() { return object_; }

 private:
  FlowSchema object_;
  flowcontrolv1::PolicyRulesWithSubjects* rules_;
};

BootstrapObjects Make() {
  BootstrapObjects out;
  out.mandatory_levels = {ExemptLevel(), Level(kCatchAll)};
  for (const LevelRow& row : kSuggestedLevels) out.suggested_levels.push_back(Level(row));
  const Names everybody = {kGroupUnauthenticated, kGroupAuthenticated}, write = {"get", "create", "update"};
  const char *by_user = "ByUser", *by_namespace = "ByNamespace", *coordination = "coordination.k8s.io";
  out.mandatory_schemas = {
      Schema("exempt", "exempt", 1, "").Groups({kGroupMasters}).All(),
      Schema("catch-all", "catch-all", 10000, by_user).Groups(everybody).All(),
  };
  out.suggested_schemas = {
      Schema("probes", "exempt", 2, "")
          .Groups(everybody)
          .Paths({"get"}, {"/healthz", "/readyz", "/livez"})
          .Done(),
      Schema("system-leader-election", "leader-election", 100, by_user)
          .Users({kManager, kScheduler})
          .SystemAccounts({"*"})
          .Resources(write, coordination, {"leases"}, true, false)
          .Done(),
      Schema("system-node-high", "node-high", 400, by_user)
          .Groups({kGroupNodes})
          .Resources({"*"}, "", {"nodes", "nodes/status"}, true, true)
          .Resources({"*"}, coordination, {"leases"}, true, false)
          .Done(),
      Schema("system-nodes", "system", 500, by_user).Groups({kGroupNodes}).All(),
      Schema("kube-controller-manager", "workload-high", 800, by_namespace).Users({kManager}).All(),
      Schema("kube-scheduler", "workload-high", 800, by_namespace).Users({kScheduler}).All(),
      Schema("kube-system-service-accounts", "workload-high", 900, by_namespace).SystemAccounts({"*"}).All(),
      Schema("service-accounts", "workload-low", 9000, by_user).Groups({kGroupServiceAccounts}).All(),
      Schema("global-default", "global-default", 9900, by_user).Groups(everybody).All(),
  };
  auto finish = [](auto& objects, bool automatic) {
    for (auto& object : objects) {
      (*object.mutable_metadata()->mutable_annotations())[kAutoUpdate] = automatic ? "true" : "false";
      k8s::SetDefaults(object);
      api::Normalize(object);
    }
  };
  finish(out.mandatory_levels, true);
  finish(out.mandatory_schemas, true);
  finish(out.suggested_levels, true);
  finish(out.suggested_schemas, true);
  return out;
}

// True when this server may update the object: the annotation allows it, or, without an annotation, no user
// has changed its spec (generation 1).
bool MayUpdate(const metav1::ObjectMeta& meta) {
  auto found = meta.annotations().find(kAutoUpdate);
  if (found == meta.annotations().end()) return meta.generation() == 1;
  return found->second != "false";
}

template <typename T>
Result<> Ensure(registry::Registry& registry, const T& wanted, bool mandatory, std::stop_token stop) {
  const api::ResourceInfo& info = api::ResourceOf<T>();
  const std::string& name = wanted.metadata().name();
  Result<registry::ObjectPtr> there = registry.Get(info, "", name, "0", stop);
  if (!there) {
    if (!there.error().Is(Code::kNotFound)) return there.error();
    return CreateIfAbsent(registry, wanted, stop);
  }
  auto object = std::static_pointer_cast<const T>((*there)->Decode());
  if (api::EncodeRaw(object->spec()) == api::EncodeRaw(wanted.spec())) return {};
  // Of the level "exempt" users may change the shares, but not the type.
  if (mandatory && name == "exempt" && !MayUpdate(object->metadata())) return {};
  if (!mandatory && !MayUpdate(object->metadata())) return {};
  auto changed = std::make_unique<T>(*object);
  *changed->mutable_spec() = wanted.spec();
  Result<registry::Written> written =
      registry.Update(info, "", name, std::move(changed), BootstrapWrite(stop));
  if (!written && !written.error().Is(Code::kConflict)) return written.error();
  return {};
}

// Objects of another version that no user has changed.
template <typename T>
Result<> RemoveUnknown(registry::Registry& registry, const std::set<std::string>& known,
                       std::stop_token stop) {
  const api::ResourceInfo& info = api::ResourceOf<T>();
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectList list, registry.List(info, "", {}, stop));
  for (const registry::ObjectPtr& item : list.items) {
    const auto object = std::static_pointer_cast<const T>(item->Decode());
    const metav1::ObjectMeta& meta = object->metadata();
    const auto annotation = meta.annotations().find(kAutoUpdate);
    if (known.count(meta.name()) || annotation == meta.annotations().end() || annotation->second != "true") {
      continue;
    }
    metav1::DeleteOptions same;
    same.mutable_preconditions()->set_uid(meta.uid());
    same.mutable_preconditions()->set_resource_version(meta.resource_version());
    auto deleted = registry.Delete(info, "", meta.name(), same, BootstrapWrite(stop));
    if (!deleted && !deleted.error().Is(Code::kNotFound) && !deleted.error().Is(Code::kConflict)) {
      return deleted.error();
    }
  }
  return {};
}

template <typename List>
std::set<std::string> NamesOf(const List& mandatory, const List& suggested) {
  std::set<std::string> names;
  for (const auto* list : {&mandatory, &suggested}) {
    for (const auto& object : *list) names.insert(object.metadata().name());
  }
  return names;
}

// Returns false when nothing needs to change.
bool SetDangling(FlowSchema& schema, bool dangling, WallTime now) {
  const char* status = dangling ? "True" : "False";
  flowcontrolv1::FlowSchemaCondition* condition = nullptr;
  for (auto& one : *schema.mutable_status()->mutable_conditions()) {
    if (one.type() == "Dangling") condition = &one;
  }
  const std::string message = "This FlowSchema references the PriorityLevelConfiguration object named \"" +
                              schema.spec().priority_level_configuration().name() + "\" " +
                              (dangling ? "but there is no such object" : "and it exists");
  if (condition && condition->status() == status && condition->message() == message) return false;
  if (!condition) condition = schema.mutable_status()->add_conditions();
  if (condition->status() != status) *condition->mutable_last_transition_time() = api::ToTime(now);
  condition->set_type("Dangling");
  condition->set_status(status);
  condition->set_reason(dangling ? "NotFound" : "Found");
  condition->set_message(message);
  return true;
}

}  // namespace

const BootstrapObjects& Bootstrap() {
  static const BootstrapObjects objects = Make();
  return objects;
}

Result<> EnsureBootstrapObjects(registry::Registry& registry, std::stop_token stop) {
  const BootstrapObjects& all = Bootstrap();
  for (const auto& level : all.mandatory_levels) KEELSON_RETURN_IF_ERROR(Ensure(registry, level, true, stop));
  for (const auto& level : all.suggested_levels) {
    KEELSON_RETURN_IF_ERROR(Ensure(registry, level, false, stop));
  }
  for (const auto& schema : all.mandatory_schemas) {
    KEELSON_RETURN_IF_ERROR(Ensure(registry, schema, true, stop));
  }
  for (const auto& schema : all.suggested_schemas) {
    KEELSON_RETURN_IF_ERROR(Ensure(registry, schema, false, stop));
  }
  KEELSON_RETURN_IF_ERROR(
      RemoveUnknown<FlowSchema>(registry, NamesOf(all.mandatory_schemas, all.suggested_schemas), stop));
  return RemoveUnknown<PriorityLevelConfiguration>(registry,
                                                   NamesOf(all.mandatory_levels, all.suggested_levels), stop);
}

Result<> UpdateDangling(registry::Registry& registry, WallTime now, std::stop_token stop) {
  const api::ResourceInfo& levels = api::ResourceOf<PriorityLevelConfiguration>();
  const api::ResourceInfo& schemas = api::ResourceOf<FlowSchema>();
  const api::ResourceInfo* status = api::FindResource(schemas.group, schemas.version, "flowschemas/status");
  registry::ListOptions options;
  options.resource_version = "0";
  KEELSON_ASSIGN_OR_RETURN(registry::ObjectList list, registry.List(schemas, "", options, stop));
  for (const registry::ObjectPtr& item : list.items) {
    auto schema = std::make_unique<FlowSchema>(static_cast<const FlowSchema&>(*item->Decode()));
    const std::string& level = schema->spec().priority_level_configuration().name();
    Result<registry::ObjectPtr> found = registry.Get(levels, "", level, "0", stop);
    if (!found && !found.error().Is(Code::kNotFound)) return found.error();
    if (!SetDangling(*schema, !found, now)) continue;
    const std::string name = schema->metadata().name();
    Result<registry::Written> written =
        registry.Update(*status, "", name, std::move(schema), BootstrapWrite(stop));
    if (!written && !written.error().Is(Code::kConflict) && !written.error().Is(Code::kNotFound)) {
      return written.error();
    }
  }
  return {};
}

}  // namespace keelson::apiserver::flowcontrol
