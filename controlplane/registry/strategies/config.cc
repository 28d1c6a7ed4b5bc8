// Secret, ServiceAccount, LimitRange, Lease, EndpointSlice, CSIDriver, PriorityClass.
#include <algorithm>

#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"

namespace keelson::registry {
namespace {

class SecretStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  // stringData is write-only: it is merged over data.
  void Fold(Message& object) const override {
    auto& secret = static_cast<corev1::Secret&>(object);
    for (const auto& entry : secret.string_data()) (*secret.mutable_data())[entry.first] = entry.second;
    secret.clear_string_data();
  }
};

class ServiceAccountStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    KeepNamesOnly(object);
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    KeepNamesOnly(object);
  }

 private:
  // Its secrets are in its own namespace, so only the name of a reference counts.
  static void KeepNamesOnly(Message& object) {
    for (corev1::ObjectReference& secret : *static_cast<corev1::ServiceAccount&>(object).mutable_secrets()) {
      const std::string name = secret.name();
      secret.Clear();
      if (!name.empty()) secret.set_name(name);
    }
  }
};

class LimitRangeStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    metav1::ObjectMeta& meta = api::MutableMeta(object);
    if (meta.name().empty()) meta.set_name(api::NewUid());
  }
};

// Coordinated leader election is off by default: its fields stay only where they already were.
class LeaseStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    auto& spec = *static_cast<coordinationv1::Lease&>(object).mutable_spec();
    spec.clear_strategy();
    spec.clear_preferred_holder();
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    auto& spec = *static_cast<coordinationv1::Lease&>(object).mutable_spec();
    const auto& before = static_cast<const coordinationv1::Lease&>(old).spec();
    if (!before.has_strategy()) spec.clear_strategy();
    if (!before.has_preferred_holder()) spec.clear_preferred_holder();
  }
};

class EndpointSliceStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    DropTopology(static_cast<discoveryv1::EndpointSlice&>(object), nullptr);
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    auto& slice = static_cast<discoveryv1::EndpointSlice&>(object);
    const auto& before = static_cast<const discoveryv1::EndpointSlice&>(old);
    DropTopology(slice, &before);
    Strategy::PrepareUpdate(context, object, old);
    // Labels say which Service a slice belongs to, so changing them changes the generation too.
    if (slice.metadata().generation() == before.metadata().generation() &&
        !SameLabels(slice.metadata().labels(), before.metadata().labels())) {
      slice.mutable_metadata()->set_generation(before.metadata().generation() + 1);
    }
  }

 private:
  using Labels = google::protobuf::Map<std::string, std::string>;
  static bool SameLabels(const Labels& a, const Labels& b) {
    return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& label) {
             const auto other = b.find(label.first);
             return other != b.end() && other->second == label.second;
           });
  }
  // A field of older API versions; it stays only where it already was.
  static void DropTopology(discoveryv1::EndpointSlice& slice, const discoveryv1::EndpointSlice* old) {
    if (old) {
      for (const discoveryv1::Endpoint& endpoint : old->endpoints()) {
        if (!endpoint.deprecated_topology().empty()) return;
      }
    }
    for (discoveryv1::Endpoint& endpoint : *slice.mutable_endpoints()) endpoint.clear_deprecated_topology();
  }
};

// Has no generation until a change that nodes must act on.
class CsiDriverStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    if (!SpecDiffers(object, old)) return;
    api::MutableMeta(object).set_generation(api::Meta(old).generation() + 1);
  }
};

// Its generation never changes.
class PriorityClassStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareUpdate(const Context&, Message&, const Message&) const override {}
};

}  // namespace

std::unique_ptr<Strategy> MakeConfigStrategy(const ResourceInfo& info) {
  const std::string_view group = info.group, resource = info.resource;
  if (group.empty() && resource == "secrets") return std::make_unique<SecretStrategy>(info);
  if (group.empty() && resource == "serviceaccounts") return std::make_unique<ServiceAccountStrategy>(info);
  if (group.empty() && resource == "limitranges") return std::make_unique<LimitRangeStrategy>(info);
  if (group == "coordination.k8s.io" && resource == "leases") return std::make_unique<LeaseStrategy>(info);
  if (resource == "endpointslices") return std::make_unique<EndpointSliceStrategy>(info);
  if (resource == "priorityclasses") return std::make_unique<PriorityClassStrategy>(info);
  if (resource == "csidrivers") return std::make_unique<CsiDriverStrategy>(info);
  return nullptr;
}

}  // namespace keelson::registry
