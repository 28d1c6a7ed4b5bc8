#include "controlplane/apiserver/admission/webhook/hook_source.h"

#include <algorithm>

namespace keelson::apiserver::webhook {
namespace {

using admissionregistrationv1::MutatingWebhookConfiguration;
using admissionregistrationv1::ValidatingWebhookConfiguration;

}  // namespace

HookSource::HookSource(storage::Store& store, HookKind kind)
    : store_(store),
      kind_(kind),
      info_(kind == HookKind::kMutating ? api::ResourceOf<MutatingWebhookConfiguration>()
                                        : api::ResourceOf<ValidatingWebhookConfiguration>()),
      compiled_(std::make_shared<Compiled>()) {}

std::shared_ptr<const HookSource::Compiled> HookSource::Current() {
  // There are few configurations, so that a look at each costs less than following their changes.
  std::vector<storage::ObjectPtr> objects;
  store_.ForEach(info_, [&](const storage::ObjectPtr& object) { objects.push_back(object); });
  std::sort(objects.begin(), objects.end(),
            [](const storage::ObjectPtr& a, const storage::ObjectPtr& b) { return a->name() < b->name(); });
  MutexLock lock(mutex_);
  if (objects != seen_) {
    compiled_ = Compile(objects);
    seen_ = std::move(objects);
  }
  return compiled_;
}

std::shared_ptr<const HookSource::Compiled> HookSource::Compile(
    const std::vector<storage::ObjectPtr>& objects) const {
  auto all = std::make_shared<Compiled>();
  for (const storage::ObjectPtr& object : objects) {
    const std::shared_ptr<const api::Message> message = object->Decode();
    Hooks hooks = kind_ == HookKind::kMutating
                      ? CompileHooks(static_cast<const MutatingWebhookConfiguration&>(*message))
                      : CompileHooks(static_cast<const ValidatingWebhookConfiguration&>(*message));
    for (Hook& hook : hooks) all->push_back(std::make_shared<const Hook>(std::move(hook)));
  }
  return all;
}

}  // namespace keelson::apiserver::webhook
