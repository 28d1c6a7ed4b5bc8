#include "controlplane/controllers/resourcequota/controller.h"

#include <algorithm>

#include "controlplane/controllers/common/deletable_resources.h"
#include "lib/api/meta.h"
#include "lib/api/proto/resource_v1.pb.h"
#include "lib/k8s/pods/quota.h"

namespace keelson::controllers {
namespace {

constexpr char kIndex[] = "quota-namespace";
constexpr std::string_view kCount = "count/";
// How soon to look again for objects of a custom resource that has just come.
constexpr std::chrono::seconds kNotKnown{1};
// Begins the queue's key of a quota whose recount may only raise its values. Names of objects never begin so.
constexpr char kRaise = '+';
// How long after a quota's creation admission may still not know it.
constexpr int64_t kAdmissionLagSeconds = 5;

bool Same(const k8s::ResourceList& a, const k8s::ResourceList& b) { return a == b; }

}  // namespace

ResourceQuotaController::ResourceQuotaController(client::RestClient api, client::InformerFactory& informers,
                                                 client::EventRecorder&, Clock& clock,
                                                 client::DiscoveredInformers& discovered,
                                                 std::chrono::nanoseconds sync_period)
    : Controller("resourcequota_primary", clock, 2),
      api_(std::move(api)),
      discovered_(discovered),
      sync_period_(sync_period),
      quotas_(informers.Get<corev1::ResourceQuota>()) {
  quotas_.AddIndex(
      kIndex, [](const corev1::ResourceQuota& quota) { return std::vector{quota.metadata().namespace_()}; });
  quotas_.AddHandler([this](const client::Change<corev1::ResourceQuota>& change) {
    if (!change.new_object) {
      return Enqueue(change.old_object->metadata().namespace_());  // quotas count themselves
    }
    // An object that admission charged needs no recount.
    const bool changed = !change.old_object || !Same(k8s::ToResourceList(change.old_object->spec().hard()),
                                                     k8s::ToResourceList(change.new_object->spec().hard()));
    if (changed) queue().Add(change.key);
  });
  Measure<corev1::Pod>(informers);
  Measure<corev1::Service>(informers);
  Measure<corev1::PersistentVolumeClaim>(informers);
  Measure<api::resource::v1::ResourceClaim>(informers);
  for (const api::ResourceInfo* info : DeletableResources()) {
    if (info->namespaced && info->resource != "events" && !k8s::QuotaMeasures(*info)) Count(informers, *info);
  }
  discovered_.AddHandler([this](const api::ResourceInfo& info, const auto& change) {
    if (!info.namespaced) return;
    if (!change.new_object) return Enqueue(change.old_object->metadata().namespace_());
    if (!change.old_object) NoteCame(change.new_object->metadata());
  });
  // Quotas may name resources that were not there before.
  discovered_.AddDiscoveryHandler([this] {
    for (const auto& quota : quotas_.List()) {
      const auto& hard = quota->spec().hard();
      if (std::any_of(hard.begin(), hard.end(),
                      [](const auto& limit) { return limit.first.starts_with(kCount); })) {
        queue().Add(api::KeyOf(*quota));
      }
    }
  });
}

template <typename T>
void ResourceQuotaController::Measure(client::InformerFactory& informers) {
  client::Informer<T>& objects = informers.Get<T>();
  const api::ResourceInfo& info = api::ResourceOf<T>();
  objects.AddIndex(kIndex, [](const T& object) { return std::vector{object.metadata().namespace_()}; });
  objects.AddHandler([this, &info](const client::Change<T>& change) {
    if (!change.old_object) return NoteCame(change.new_object->metadata());
    const WallTime now = clock().Now();
    const bool changed = !change.new_object || !Same(k8s::QuotaUsage(info, *change.old_object, now),
                                                     k8s::QuotaUsage(info, *change.new_object, now));
    if (changed) Enqueue(change.old_object->metadata().namespace_());
  });
  counted_.push_back({&info, &objects, true});
}

void ResourceQuotaController::Count(client::InformerFactory& informers, const api::ResourceInfo& info) {
  client::Informer<metav1::PartialObjectMetadata>& objects = informers.GetMetadata(info);
  objects.AddIndex(kIndex, [](const metav1::PartialObjectMetadata& object) {
    return std::vector{object.metadata().namespace_()};
  });
  objects.AddHandler([this](const client::Change<metav1::PartialObjectMetadata>& change) {
    if (!change.new_object) return Enqueue(change.old_object->metadata().namespace_());
    if (!change.old_object) NoteCame(change.new_object->metadata());
  });
  counted_.push_back({&info, &objects, false});
}

void ResourceQuotaController::Enqueue(std::string_view ns) {
  for (const auto& quota : quotas_.ByIndex(kIndex, ns)) queue().Add(api::KeyOf(*quota));
}

void ResourceQuotaController::NoteCame(const metav1::ObjectMeta& meta) {
  for (const auto& quota : quotas_.ByIndex(kIndex, meta.namespace_())) {
    const int64_t charged = quota->metadata().creation_timestamp().seconds() + kAdmissionLagSeconds;
    if (meta.creation_timestamp().seconds() <= charged) queue().Add(kRaise + api::KeyOf(*quota));
  }
}

bool ResourceQuotaController::CountDiscovered(const std::string& ns, const k8s::ResourceList& hard,
                                              bool scoped, k8s::ResourceList& used) const {
  bool known = true;
  for (const auto& [name, limit] : hard) {
    if (!name.starts_with(kCount) || used.contains(name)) continue;
    const Result<std::optional<size_t>> count = discovered_.CountIn(name.substr(kCount.size()), ns);
    if (!count) {
      known = false;
    } else if (*count) {
      used[name] = api::Amount::FromInt(scoped ? 0 : static_cast<int64_t>(**count));
    }
  }
  return known;
}

bool ResourceQuotaController::FillStatus(const corev1::ResourceQuota& quota,
                                         corev1::ResourceQuotaStatus& status) {
  const k8s::ResourceList hard = k8s::ToResourceList(quota.spec().hard());
  const std::vector<k8s::QuotaScope> scopes = k8s::QuotaScopes(quota.spec());
  const std::string& ns = quota.metadata().namespace_();
  const WallTime now = clock().Now();
  k8s::ResourceList used;
  for (const Counted& kind : counted_) {
    std::vector<std::string> names;
    for (const auto& [name, limit] : hard) {
      if (k8s::QuotaCounts(*kind.info, name)) names.push_back(name);
    }
    if (names.empty()) continue;
    k8s::ResourceList usage;
    const auto objects = kind.objects->RawByIndex(kIndex, ns);
    if (kind.measured) {
      for (const auto& object : objects) {
        if (k8s::IsInScopes(*kind.info, *object, scopes)) {
          k8s::Add(usage, k8s::QuotaUsage(*kind.info, *object, now));
        }
      }
    } else if (scopes.empty()) {
      const auto number = api::Amount::FromInt(static_cast<int64_t>(objects.size()));
      usage[k8s::QuotaCountName(*kind.info)] = usage[std::string(kind.info->resource)] = number;
    }
    for (const std::string& name : names) used[name] = k8s::AmountOf(usage, name);
  }
  const bool known = CountDiscovered(ns, hard, !scopes.empty(), used);
  // Resources without an evaluator keep their values.
  for (const auto& [name, amount] : k8s::ToResourceList(quota.status().used())) {
    if (hard.count(name)) used.insert({name, amount});
  }
  status.Clear();
  k8s::FromResourceList(hard, *status.mutable_hard());
  k8s::FromResourceList(used, *status.mutable_used());
  return known;
}

Result<Requeue> ResourceQuotaController::Reconcile(const std::string& key, std::stop_token stop) {
  const bool only_raise = key.front() == kRaise;
  auto quota = quotas_.Get(only_raise ? key.substr(1) : key);
  if (!quota) return Requeue{};
  corev1::ResourceQuota changed = *quota;
  Requeue again;
  if (!FillStatus(*quota, *changed.mutable_status())) {
    again.after = kNotKnown;
  } else if (!only_raise) {
    again.after = sync_period_;
  }
  const k8s::ResourceList before = k8s::ToResourceList(quota->status().used());
  k8s::ResourceList used = k8s::ToResourceList(changed.status().used());
  if (only_raise) {
    for (const auto& [name, amount] : before) {
      if (auto now = used.find(name); now != used.end()) now->second = std::max(now->second, amount);
    }
    changed.mutable_status()->clear_used();
    k8s::FromResourceList(used, *changed.mutable_status()->mutable_used());
  }
  if (Same(k8s::ToResourceList(quota->status().hard()), k8s::ToResourceList(changed.status().hard())) &&
      Same(before, used)) {
    return again;
  }
  // The write has the resourceVersion of the count: a charge by admission meanwhile makes it a conflict.
  Result<corev1::ResourceQuota> stored = api_.With(stop).UpdateStatus(changed);
  if (!stored && !stored.error().Is(Code::kNotFound)) return stored.error();
  return again;
}

}  // namespace keelson::controllers
