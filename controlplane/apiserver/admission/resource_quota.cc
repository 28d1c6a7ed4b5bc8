// ResourceQuota: rejects a write that would exceed a quota of its namespace. An admitted write is charged
// immediately to the quota's status by compare-and-swap, so that concurrent writes cannot share the
// remainder.
//
// Charges are serialized per namespace. The cache may lag behind the last charge, so the last written quota
// is remembered until the cache has it.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "lib/api/meta.h"
#include "lib/base/mutex.h"
#include "lib/k8s/pods/quota.h"

namespace keelson::apiserver {
namespace {

using k8s::QuotaScope;
using k8s::ResourceList;
using storage::ObjectPtr;
using Names = std::set<std::string, std::less<>>;

constexpr int kAttempts = 8;
constexpr size_t kMaxRemembered = 1024;
constexpr std::chrono::seconds kPatience{10};

const api::ResourceInfo& Quotas() {
  static const api::ResourceInfo& info = api::ResourceOf<corev1::ResourceQuota>();
  return info;
}

std::string Print(const ResourceList& list, const Names& names) {
  std::string text;
  for (const std::string& name : names) {
    auto found = list.find(name);
    if (found != list.end()) {
      text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, found->second.ToString());
    }
  }
  return text;
}

// The usage of `now` beyond `before`; never negative: the controller subtracts.
ResourceList Growth(const ResourceList& now, const ResourceList& before) {
  ResourceList out;
  for (const auto& [name, amount] : now) {
    const api::Amount old = k8s::AmountOf(before, name);
    if (amount <= old) continue;
    out[name] = amount;
    out[name] -= old;
  }
  return out;
}

bool SameScope(const QuotaScope& a, const QuotaScope& b) { return a.scope_name() == b.scope_name(); }

// A quota that applies to the object.
struct Charge {
  ObjectPtr stored;
  std::shared_ptr<const corev1::ResourceQuota> quota;
  ResourceList delta;  // the resources that the quota limits
};

class ResourceQuotaAdmission : public AdmissionPlugin {
 public:
  ResourceQuotaAdmission(storage::Store& store, const ResourceQuotaConfig& config)
      : store_(store), limited_(config.limited) {}
  std::string_view name() const override { return "ResourceQuota"; }

  Result<> Validate(const AdmissionRequest& request) override {
    const api::ResourceInfo* kind = KindOf(request);
    if (!kind) return {};
    std::vector<ObjectPtr> quotas = QuotasOf(request.ns);
    if (quotas.empty() && limited_.empty()) return {};
    NamespaceLock lock(*this, request.ns, SteadyTime::clock::now() + kPatience);
    if (!lock.held()) {
      return Error(Code::kInternal, "Internal error occurred: resource quota evaluation timed out");
    }
    std::vector<Charge> charges;
    KEELSON_RETURN_IF_ERROR(JudgeWithNewest(request, *kind, charges));
    if (request.dry_run) return {};
    for (const Charge& charge : charges) KEELSON_RETURN_IF_ERROR(Write(request, *kind, charge));
    return {};
  }

 private:
  // The kind whose usage the request changes; null when no quota counts it.
  static const api::ResourceInfo* KindOf(const AdmissionRequest& request) {
    const api::ResourceInfo& info = request.info;
    if (request.ns.empty() || !request.object || !info.namespaced) return nullptr;
    if (request.Is("", "pods/resize")) return &api::ResourceOf<corev1::Pod>();
    if (request.Is("", "persistentvolumeclaims/status")) {
      return &api::ResourceOf<corev1::PersistentVolumeClaim>();
    }
    if (info.etcd_prefix.empty() || info.IsSubresource() || info.resource == "events") return nullptr;
    if (request.Creates()) return &info;
    const bool measured = request.Is("", "services") || request.Is("", "persistentvolumeclaims");
    return request.Updates() && measured ? &info : nullptr;
  }

  // A refusal must not come from a quota that another server, or the controller, has changed meanwhile.
  Result<> JudgeWithNewest(const AdmissionRequest& request, const api::ResourceInfo& kind,
                           std::vector<Charge>& charges) {
    const std::vector<ObjectPtr> quotas = QuotasOf(request.ns);
    Result<> judged = Judge(request, kind, quotas, !limited_.empty(), charges);
    if (judged || quotas.empty()) return judged;
    // A consistent read of any quota waits until the cache has all of them.
    KEELSON_RETURN_IF_ERROR(
        store_.Get(Quotas(), quotas.front()->key(), "", {SteadyTime::clock::now() + kPatience, {}}));
    charges.clear();
    return Judge(request, kind, QuotasOf(request.ns), !limited_.empty(), charges);
  }

  // Returns the charge for each quota, or why the request is rejected. `covering`: `quotas` is complete, so
  // it must include all resources that need a quota.
  Result<> Judge(const AdmissionRequest& request, const api::ResourceInfo& kind,
                 const std::vector<ObjectPtr>& quotas, bool covering, std::vector<Charge>& charges) {
    const api::Message& object = *request.object;
    const WallTime now = Clock::Real().Now();
    const ResourceList usage = k8s::QuotaUsage(kind, object, now);
    const ResourceList before =
        request.old_object ? k8s::QuotaUsage(kind, *request.old_object, now) : ResourceList();
    Names covered;
    std::vector<QuotaScope> covered_scopes;
    for (const ObjectPtr& stored : quotas) {
      auto quota = std::static_pointer_cast<const corev1::ResourceQuota>(stored->Decode());
      const std::vector<QuotaScope> scopes = k8s::QuotaScopes(quota->spec());
      for (const QuotaScope& scope : scopes) {
        if (k8s::IsInScope(kind, object, scope)) covered_scopes.push_back(scope);
      }
      std::vector<std::string> counted;
      for (const auto& [resource, amount] : k8s::ToResourceList(quota->status().hard())) {
        if (k8s::QuotaCounts(kind, resource)) counted.push_back(resource);
      }
      if (counted.empty() || !k8s::IsInScopes(kind, object, scopes)) continue;
      KEELSON_RETURN_IF_ERROR(CheckKnown(request, kind, *quota, counted));
      covered.insert(counted.begin(), counted.end());
      const bool counted_before = request.old_object && k8s::IsInScopes(kind, *request.old_object, scopes);
      ResourceList growth = counted_before ? Growth(usage, before) : usage;
      ResourceList delta;
      for (const std::string& resource : counted) {
        auto found = growth.find(resource);
        if (found != growth.end() && !found->second.IsZero()) delta.insert(*found);
      }
      if (!delta.empty()) charges.push_back({stored, std::move(quota), std::move(delta)});
    }
    if (covering && !Growth(usage, before).empty()) {
      KEELSON_RETURN_IF_ERROR(CheckCovered(request, kind, usage, covered, covered_scopes));
    }
    for (const Charge& charge : charges) KEELSON_RETURN_IF_ERROR(CheckFits(request, charge));
    return {};
  }

  static Result<> CheckKnown(const AdmissionRequest& request, const api::ResourceInfo& kind,
                             const corev1::ResourceQuota& quota, const std::vector<std::string>& counted) {
    const std::string& name = quota.metadata().name();
    if (std::string problem = k8s::QuotaProblem(kind, *request.object, counted); !problem.empty()) {
      return NotAdmitted(request, fmt::format("failed quota: {}: {}", name, problem));
    }
    const bool known = std::all_of(counted.begin(), counted.end(), [&](const std::string& resource) {
      return quota.status().used().count(resource) > 0;
    });
    if (known) return {};
    return NotAdmitted(
        request, fmt::format("status unknown for quota: {}, resources: {}", name, fmt::join(counted, ",")));
  }

  static Result<> CheckFits(const AdmissionRequest& request, const Charge& charge) {
    const ResourceList used = k8s::ToResourceList(charge.quota->status().used());
    const ResourceList hard = k8s::ToResourceList(charge.quota->status().hard());
    Names exceeded;
    for (const auto& [resource, amount] : charge.delta) {
      api::Amount total = k8s::AmountOf(used, resource);
      total += amount;
      if (total > k8s::AmountOf(hard, resource)) exceeded.insert(resource);
    }
    // A status change of a claim is counted, never rejected.
    if (exceeded.empty() || request.Subresource() == "status") return {};
    return NotAdmitted(request, fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}",
                                            charge.quota->metadata().name(), Print(charge.delta, exceeded),
                                            Print(used, exceeded), Print(hard, exceeded)));
  }

  // Resources that the configuration allows only with a quota.
  Result<> CheckCovered(const AdmissionRequest& request, const api::ResourceInfo& kind,
                        const ResourceList& usage, const Names& covered,
                        const std::vector<QuotaScope>& covered_scopes) const {
    Names uncovered;
    std::string scopes;
    for (const ResourceQuotaConfig::Limited& limited : limited_) {
      for (const ResourceQuotaConfig::Scope& one : limited.match_scopes) {
        QuotaScope scope;
        scope.set_scope_name(one.name);
        scope.set_operator_(one.op);
        scope.mutable_values()->Assign(one.values.begin(), one.values.end());
        const bool has = std::any_of(covered_scopes.begin(), covered_scopes.end(),
                                     [&](const QuotaScope& other) { return SameScope(scope, other); });
        if (!has && k8s::IsInScope(kind, *request.object, scope)) {
          scopes += fmt::format("{}{{{} {} [{}]}}", scopes.empty() ? "" : " ", one.name, one.op,
                                fmt::join(one.values, " "));
        }
      }
      if (limited.group != kind.group || limited.resource != kind.resource) continue;
      for (const auto& [resource, amount] : usage) {
        const bool limits =
            !amount.IsZero() && std::any_of(limited.match_contains.begin(), limited.match_contains.end(),
                                            [&, &name = resource](const std::string& part) {
                                              return name.find(part) != std::string::npos;
                                            });
        if (limits && !covered.count(resource)) uncovered.insert(resource);
      }
    }
    if (!uncovered.empty()) {
      return NotAdmitted(request,
                         fmt::format("insufficient quota to consume: {}", fmt::join(uncovered, ",")));
    }
    if (!scopes.empty()) {
      return NotAdmitted(request, fmt::format("insufficient quota to match these scopes: [{}]", scopes));
    }
    return {};
  }

  // Charges one quota; retries when the controller or another server has written meanwhile.
  Result<> Write(const AdmissionRequest& request, const api::ResourceInfo& kind, Charge charge) {
    const storage::Limits limits{SteadyTime::clock::now() + kPatience, {}};
    for (int attempt = 1;; ++attempt) {
      corev1::ResourceQuota changed = *charge.quota;
      changed.mutable_metadata()->clear_resource_version();
      for (const auto& [resource, amount] : charge.delta) {
        Quantity& used = (*changed.mutable_status()->mutable_used())[resource];
        api::Amount total = api::Amount::Of(used);
        total += amount;
        used = total.ToQuantity();
      }
      storage::Conflict conflict;
      Result<ObjectPtr> written = store_.Put(Quotas(), charge.stored->key(), changed,
                                             charge.stored->revision(), {}, conflict, limits);
      if (written) {
        Remember(*written);
        return {};
      }
      if (!written.error().Is(Code::kConflict)) return written.error();
      if (!conflict.current) return {};  // the quota is deleted, and no longer applies
      if (attempt == kAttempts) {
        return registry::ConflictError(
            Quotas(), charge.quota->metadata().name(),
            "the object has been modified; please apply your changes to the latest "
            "version and try again");
      }
      Remember(conflict.current);
      std::vector<Charge> again;
      KEELSON_RETURN_IF_ERROR(Judge(request, kind, {conflict.current}, false, again));
      if (again.empty()) return {};
      charge = std::move(again.front());
    }
  }

  // By name, in the newest version that this server knows.
  std::vector<ObjectPtr> QuotasOf(std::string_view ns) {
    std::vector<ObjectPtr> quotas;
    store_.ForEachIn(Quotas(), ns, [&](const ObjectPtr& object) { quotas.push_back(object); });
    if (quotas.empty()) return quotas;
    MutexLock lock(mutex_);
    for (ObjectPtr& quota : quotas) {
      auto found = latest_.find(quota->key());
      if (found == latest_.end()) continue;
      if (found->second->revision() > quota->revision()) {
        quota = found->second;
      } else {
        latest_.erase(found);
      }
    }
    return quotas;
  }

  void Remember(const ObjectPtr& quota) {
    MutexLock lock(mutex_);
    if (latest_.size() >= kMaxRemembered) latest_.clear();  // costs one conflict each
    latest_[quota->key()] = quota;
  }

  // Locks a namespace before the deadline; other namespaces are not affected.
  class NamespaceLock {
   public:
    NamespaceLock(ResourceQuotaAdmission& owner, std::string_view ns, SteadyTime deadline)
        : owner_(owner), ns_(ns) {
      MutexLock lock(owner_.mutex_);
      while (!(held_ = owner_.busy_.insert(ns_).second)) {
        if (owner_.free_.wait_until(owner_.mutex_, deadline) == std::cv_status::timeout) return;
      }
    }
    bool held() const { return held_; }
    ~NamespaceLock() {
      if (!held_) return;
      MutexLock lock(owner_.mutex_);
      owner_.busy_.erase(ns_);
      owner_.free_.notify_all();
    }

   private:
    ResourceQuotaAdmission& owner_;
    const std::string ns_;
    bool held_ = false;
  };

  storage::Store& store_;
  const std::vector<ResourceQuotaConfig::Limited> limited_;
  Mutex mutex_;
  CondVar free_;
  std::set<std::string> busy_ KEELSON_GUARDED_BY(mutex_);
  std::map<std::string, ObjectPtr, std::less<>> latest_
      KEELSON_GUARDED_BY(mutex_);  // newer than in the cache
};

}  // namespace

PluginPtr NewResourceQuota(storage::Store& store, const ResourceQuotaConfig& config) {
  return std::make_unique<ResourceQuotaAdmission>(store, config);
}

}  // namespace keelson::apiserver
