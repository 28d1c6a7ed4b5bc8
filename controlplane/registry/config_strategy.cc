// Secret, ServiceAccount, LimitRange, Lease, EndpointSlice, Ingress, Node, CSIDriver, PriorityClass.
#include "controlplane/registry/strategy.h"
#include "lib/api/meta.h"

namespace keelson::registry {
namespace {

class SecretStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    Fold(object);
  }
  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    Fold(object);
  }

 private:
  // stringData is for writing only: it goes into data, over what is there.
  static void Fold(Message& object) {
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
  std::vector<std::string> Warnings(const Message& object, const Message* old) const override {
    constexpr char kEnforce[] = "kubernetes.io/enforce-mountable-secrets";
    if (!api::Meta(object).annotations().contains(kEnforce) ||
        (old && api::Meta(*old).annotations().contains(kEnforce)))
      return {};
    return {
        "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer "
        "separate "
        "namespaces to isolate access to mounted secrets"};
  }

 private:
  // Its secrets are of its own namespace; of a reference only the name counts.
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

// Coordinated leader election is off by default: its fields are kept only where they have been before.
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
    // Labels tell which Service a slice is of: a new generation too.
    const auto &labels = slice.metadata().labels(), &old_labels = before.metadata().labels();
    bool differs = SpecDiffers(object, old) || labels.size() != old_labels.size();
    for (auto it = labels.begin(); !differs && it != labels.end(); ++it) {
      const auto known = old_labels.find(it->first);
      differs = known == old_labels.end() || known->second != it->second;
    }
    Strategy::PrepareUpdate(context, object, old);
    if (differs) slice.mutable_metadata()->set_generation(before.metadata().generation() + 1);
  }

 private:
  // Of older versions of the API; stays only where it is already.
  static void DropTopology(discoveryv1::EndpointSlice& slice, const discoveryv1::EndpointSlice* old) {
    if (old) {
      for (const discoveryv1::Endpoint& endpoint : old->endpoints()) {
        if (!endpoint.deprecated_topology().empty()) return;
      }
    }
    for (discoveryv1::Endpoint& endpoint : *slice.mutable_endpoints()) endpoint.clear_deprecated_topology();
  }
};

// Has no generation until something changes that nodes must act on.
class CsiDriverStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    if (!SpecDiffers(object, old)) return;
    api::MutableMeta(object).set_generation(api::Meta(old).generation() + 1);
  }
};

class IngressStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  std::vector<std::string> Warnings(const Message& object, const Message* old) const override {
    constexpr char kClass[] = "kubernetes.io/ingress.class";
    if (old || !api::Meta(object).annotations().contains(kClass)) return {};
    return {
        "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' "
        "instead"};
  }
};

class NodeStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  std::vector<std::string> Warnings(const Message& object, const Message*) const override {
    const corev1::NodeSpec& spec = static_cast<const corev1::Node&>(object).spec();
    std::vector<std::string> out;
    if (spec.has_config_source()) out.push_back("spec.configSource: the feature is removed");
    if (!spec.external_id().empty())
      out.push_back("spec.externalID: this field is deprecated, and is unused by Kubernetes");
    return out;
  }
};

// Its generation stays what it was made with.
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
  if (resource == "ingresses") return std::make_unique<IngressStrategy>(info);
  if (group.empty() && resource == "nodes") return std::make_unique<NodeStrategy>(info);
  if (resource == "priorityclasses") return std::make_unique<PriorityClassStrategy>(info);
  if (resource == "csidrivers") return std::make_unique<CsiDriverStrategy>(info);
  return nullptr;
}

}  // namespace keelson::registry
