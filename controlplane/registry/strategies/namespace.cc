#include <algorithm>

#include "controlplane/registry/strategy.h"

namespace keelson::registry {
namespace {

// The life of a namespace:
//   Active --delete--> Terminating (deletionTimestamp) --spec.finalizers emptied (/finalize)--> gone
class NamespaceStrategy : public Strategy {
 public:
  using Strategy::Strategy;

  void PrepareCreate(const Context& context, Message& object) const override {
    Strategy::PrepareCreate(context, object);
    auto& ns = static_cast<corev1::Namespace&>(object);
    ns.mutable_status()->set_phase("Active");
    // Keeps the namespace until the namespace controller has emptied it.
    auto& finalizers = *ns.mutable_spec()->mutable_finalizers();
    if (std::find(finalizers.begin(), finalizers.end(), "kubernetes") == finalizers.end()) {
      *finalizers.Add() = "kubernetes";
    }
  }

  void PrepareUpdate(const Context& context, Message& object, const Message& old) const override {
    Strategy::PrepareUpdate(context, object, old);
    CopyField(old, object, "spec");  // finalizers have their own subresource
  }

  void PreparePart(const Context& context, Part part, Message& object, const Message& old) const override {
    Strategy::PreparePart(context, part, object, old);
    if (part == Part::kFinalize) CopyField(old, object, "status");
  }

  bool ReadyToGo(const Message& object) const override {
    const auto& ns = static_cast<const corev1::Namespace&>(object);
    return Strategy::ReadyToGo(object) && ns.spec().finalizers_size() == 0;
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeNamespaceStrategy(const ResourceInfo& info) {
  return std::make_unique<NamespaceStrategy>(info);
}

}  // namespace keelson::registry
