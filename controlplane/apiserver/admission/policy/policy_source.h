// The admission policies of a kind with their bindings, as the caches have them.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controlplane/apiserver/admission/matching/resources.h"
#include "controlplane/apiserver/admission/policy/params.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver::policy {

// What policies of both kinds have.
struct PolicyHead {
  std::string name;
  MatchCriteria constraints;
  bool ignore_failures = false;  // failurePolicy
  std::optional<admissionregistrationv1::ParamKind> param_kind;
};

struct PolicyBinding {
  std::string name, policy_name;
  std::optional<MatchCriteria> resources;
  std::optional<admissionregistrationv1::ParamRef> param_ref;
  std::vector<std::string> actions;  // of validating policies: Deny, Warn, Audit
};

template <typename Object>
PolicyHead HeadOf(const Object& policy) {
  PolicyHead out;
  out.name = policy.metadata().name();
  out.constraints = CompileCriteria(policy.spec().match_constraints());
  out.ignore_failures = policy.spec().failure_policy() == "Ignore";
  if (policy.spec().has_param_kind()) out.param_kind = policy.spec().param_kind();
  return out;
}

template <typename Object>
PolicyBinding BindingOf(const Object& binding) {
  PolicyBinding out;
  out.name = binding.metadata().name();
  out.policy_name = binding.spec().policy_name();
  if (binding.spec().has_match_resources()) out.resources = CompileCriteria(binding.spec().match_resources());
  if (binding.spec().has_param_ref()) out.param_ref = binding.spec().param_ref();
  return out;
}

// The requests that a binding narrows its policy to. An error is one of configuration.
inline Result<bool> BindingMatches(const PolicyBinding& binding, const AdmissionRequest& request,
                                   storage::Store& store) {
  if (!binding.resources) return true;
  KEELSON_ASSIGN_OR_RETURN(const api::ResourceInfo* row, MatchRequest(*binding.resources, request, store));
  return row != nullptr;
}

// Compiles each policy once a revision. `Compiled` is made from a PolicyObject, `PolicyBinding` from a BindingObject by
// `Traits`. Thread safe.
template <typename Traits>
class PolicySource {
 public:
  using PolicyObject = typename Traits::PolicyObject;
  using BindingObject = typename Traits::BindingObject;
  using Compiled = typename Traits::Compiled;

  struct Hook {
    std::shared_ptr<const Compiled> policy;
    std::vector<std::shared_ptr<const PolicyBinding>> bindings;  // by name; at least one
  };
  using Hooks = std::vector<Hook>;

  explicit PolicySource(storage::Store& store) : store_(store), hooks_(std::make_shared<Hooks>()) {}

  // The policies that have bindings, by name.
  std::shared_ptr<const Hooks> Current() {
    // There are few, so that a look at each costs less than following their changes.
    std::vector<storage::ObjectPtr> bindings = All(api::ResourceOf<BindingObject>());
    std::vector<storage::ObjectPtr> policies;
    if (!bindings.empty()) policies = All(api::ResourceOf<PolicyObject>());
    MutexLock lock(mutex_);
    if (bindings.size() != bindings_.size() || policies.size() != policies_.size() ||
        !Known(policies, policies_) || !Known(bindings, bindings_)) {
      Compile(policies, bindings);
    }
    return hooks_;
  }

 private:
  template <typename T>
  struct Entry {
    int64_t revision;
    std::shared_ptr<const T> value;
  };
  template <typename T>
  using Entries = std::map<std::string, Entry<T>, std::less<>>;

  std::vector<storage::ObjectPtr> All(const api::ResourceInfo& info) const {
    std::vector<storage::ObjectPtr> out;
    store_.ForEach(info, [&](const storage::ObjectPtr& object) { out.push_back(object); });
    return out;
  }

  template <typename T>
  static bool Known(const std::vector<storage::ObjectPtr>& objects, const Entries<T>& known) {
    return std::all_of(objects.begin(), objects.end(), [&](const storage::ObjectPtr& object) {
      const auto found = known.find(object->name());
      return found != known.end() && found->second.revision == object->revision();
    });
  }

  // What has not changed stays.
  template <typename T, typename Object, typename Make>
  static void Update(const std::vector<storage::ObjectPtr>& objects, Entries<T>& known, const Make& make) {
    Entries<T> now;
    for (const storage::ObjectPtr& object : objects) {
      const auto found = known.find(object->name());
      if (found != known.end() && found->second.revision == object->revision()) {
        now.insert(*found);
        continue;
      }
      const std::shared_ptr<const api::Message> message = object->Decode();
      now[std::string(object->name())] = {
          object->revision(), std::make_shared<const T>(make(static_cast<const Object&>(*message)))};
    }
    known = std::move(now);
  }

  void Compile(const std::vector<storage::ObjectPtr>& policies,
               const std::vector<storage::ObjectPtr>& bindings) KEELSON_REQUIRES(mutex_) {
    Update<Compiled, PolicyObject>(policies, policies_, Traits::Compile);
    Update<PolicyBinding, BindingObject>(bindings, bindings_, Traits::Bind);
    auto hooks = std::make_shared<Hooks>();
    for (const auto& [name, policy] : policies_) {
      Hook hook{policy.value, {}};
      for (const auto& [_, binding] : bindings_) {
        if (binding.value->policy_name == name) hook.bindings.push_back(binding.value);
      }
      if (!hook.bindings.empty()) hooks->push_back(std::move(hook));
    }
    hooks_ = std::move(hooks);
  }

  storage::Store& store_;
  Mutex mutex_;
  Entries<Compiled> policies_ KEELSON_GUARDED_BY(mutex_);
  Entries<PolicyBinding> bindings_ KEELSON_GUARDED_BY(mutex_);
  std::shared_ptr<const Hooks> hooks_ KEELSON_GUARDED_BY(mutex_);
};

}  // namespace keelson::apiserver::policy
