// MutatingAdmissionPolicy: changes in CEL, which bindings put into force, one after the other. When one has changed the
// object, policies with reinvocationPolicy IfNeeded that came before see it once more, after all other plugins have
// (k8s.io/apiserver/pkg/admission/plugin/policy/mutating, dispatcher.go).
#include <set>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/matching/selectors.h"
#include "controlplane/apiserver/admission/matching/versions.h"
#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/policy/mutating_policy.h"
#include "controlplane/apiserver/admission/policy/policy_metrics.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

using namespace policy;  // used by this plugin only

constexpr std::string_view kMutatingPlugin = "MutatingAdmissionPolicy";

struct MutatingTraits {
  using PolicyObject = admissionregistrationv1::MutatingAdmissionPolicy;
  using BindingObject = admissionregistrationv1::MutatingAdmissionPolicyBinding;
  using Compiled = MutatingPolicy;
  static MutatingPolicy Compile(const PolicyObject& policy) { return CompileMutatingPolicy(policy); }
  static PolicyBinding Bind(const BindingObject& object) { return BindingOf(object); }
};
using MutatingSource = PolicySource<MutatingTraits>;

// A policy, its binding and the parameter.
using InvocationKey = std::string;

// What the second run has to know of the first.
struct PolicyRounds {
  std::string output;                // the object after the last policy, as bytes
  std::set<InvocationKey> invoked;   // those that want to see later changes
  std::set<InvocationKey> reinvoke;  // those of them for which there were some

  void Changed() {
    reinvoke.merge(invoked);
    invoked.clear();
  }
};

struct Invocation {
  const MutatingPolicy* policy;
  const PolicyBinding* binding;
  const api::ResourceInfo* row;
  Param param;

  InvocationKey Key() const {
    std::string key = policy->head.name + "/" + binding->name;
    if (param.message) {
      const metav1::ObjectMeta& meta = api::Meta(*param.message);
      key += "/" + meta.namespace_() + "/" + meta.name();
    }
    return key;
  }
};

// One request on its way through all policies.
class MutatingDispatch {
 public:
  MutatingDispatch(const AdmissionRequest& request, storage::Store& store, const KindFinder& find_kind,
                   const Authorizer& authorizer)
      : request_(request),
        store_(store),
        find_kind_(find_kind),
        authorizer_(authorizer),
        versions_(request) {}

  Result<> Run(const MutatingSource::Hooks& hooks) {
    for (const MutatingSource::Hook& hook : hooks) Select(hook);
    if (!invocations_.empty()) KEELSON_RETURN_IF_ERROR(Invoke());
    return Conclude();
  }

 private:
  struct Failure {
    std::string message, reason;
  };

  // Finds out which bindings of the policy are about the request.
  void Select(const MutatingSource::Hook& hook) {
    const MutatingPolicy& policy = *hook.policy;
    const Result<const api::ResourceInfo*> row = MatchRequest(policy.head.constraints, request_, store_);
    if (!row) return Misconfigured(policy, nullptr, row.error());
    if (!*row) return;
    const api::ResourceInfo* params = nullptr;
    if (policy.head.param_kind) {
      const Result<const api::ResourceInfo*> found = ResourceOfParams(*policy.head.param_kind, find_kind_);
      if (!found) return Misconfigured(policy, nullptr, found.error());
      params = *found;
    }
    for (const auto& binding : hook.bindings) Select(policy, *binding, **row, params);
  }

  void Select(const MutatingPolicy& policy, const PolicyBinding& binding, const api::ResourceInfo& row,
              const api::ResourceInfo* param_row) {
    const Result<bool> match = BindingMatches(binding, request_, store_);
    if (!match) return Misconfigured(policy, &binding, match.error());
    if (!*match) return;
    std::vector<Param> params(1);
    if (param_row && binding.param_ref) {
      Result<std::vector<Param>> found =
          CollectParams(*param_row, *binding.param_ref, request_.ns, store_, request_.deadline);
      if (!found) return Misconfigured(policy, &binding, found.error());
      params = std::move(*found);
    }
    for (Param& param : params) invocations_.push_back({&policy, &binding, &row, std::move(param)});
  }

  Result<> Invoke() {
    const bool is_namespace = request_.info.kind == "Namespace" && request_.info.kind_group.empty();
    if (!is_namespace && !request_.ns.empty()) {
      KEELSON_ASSIGN_OR_RETURN(namespace_, NamespaceOf(request_, store_));
    }
    PolicyRounds& rounds = request_.reinvocation->StateOf<PolicyRounds>(kMutatingPlugin);
    const bool again = request_.reinvocation->again();
    if (again && request_.object && api::EncodeRaw(*request_.object) != rounds.output) rounds.Changed();
    for (const Invocation& invocation : invocations_) {
      KEELSON_RETURN_IF_ERROR(Invoke(invocation, again, rounds));
    }
    KEELSON_RETURN_IF_ERROR(versions_.Finish());
    if (request_.object) rounds.output = api::EncodeRaw(*request_.object);
    return {};
  }

  Result<> Invoke(const Invocation& invocation, bool again, PolicyRounds& rounds) {
    const MutatingPolicy& policy = *invocation.policy;
    std::optional<ExpressionObject> params;
    if (invocation.param.message) params.emplace(invocation.param.message.get(), *invocation.param.row);
    KEELSON_ASSIGN_OR_RETURN(const api::Message* object, versions_.Object(*invocation.row));
    KEELSON_ASSIGN_OR_RETURN(const api::Message* old_object, versions_.OldObject(*invocation.row));
    {
      const ExpressionInput input = Input(invocation, object, old_object);
      const Result<bool> match = policy.conditions.Match(input, params ? &*params : nullptr);
      if (!match) {
        Fail(policy, invocation.binding, match.error().message(), "Invalid");
        return {};
      }
      if (!*match) return {};
    }
    const InvocationKey key = invocation.Key();
    // The second run invokes nothing for the first time.
    if (again && !rounds.reinvoke.count(key)) return {};
    bool changed = false;
    for (const MutatingPolicy::Mutation& mutation : policy.mutations) {
      if (!object) break;
      const SteadyTime begin = SteadyTime::clock::now();
      const ExpressionInput input = Input(invocation, object, old_object);
      Result<std::unique_ptr<api::Message>> mutated =
          Mutate(policy, mutation, input, *object, params ? &*params : nullptr);
      const SteadyTime::duration took = SteadyTime::clock::now() - begin;
      CountMutation(policy.head.name, invocation.binding->name,
                    mutated ? "no_error" : ErrorTypeOf(mutated.error().message()), took);
      if (!mutated) {
        if (mutated.error().Is(Code::kInternal)) return mutated.error();
        Fail(policy, invocation.binding, mutated.error().message(), "Invalid");
        continue;
      }
      if (api::EncodeRaw(**mutated) == api::EncodeRaw(*object)) continue;
      changed = true;
      versions_.Replace(std::move(*mutated));
      KEELSON_ASSIGN_OR_RETURN(object, versions_.Object(*invocation.row));
    }
    if (changed) {
      rounds.Changed();
      request_.reinvocation->Ask();
    }
    if (policy.reinvoke) rounds.invoked.insert(key);
    return {};
  }

  ExpressionInput Input(const Invocation& invocation, const api::Message* object,
                        const api::Message* old_object) const {
    return ExpressionInput(request_, *invocation.row, object, old_object, namespace_.get(), authorizer_);
  }

  void Misconfigured(const MutatingPolicy& policy, const PolicyBinding* binding, const Error& error) {
    Fail(policy, binding,
         fmt::format("failed to configure {}: {}", binding ? "binding" : "policy", error.message()),
         "Forbidden");
  }

  void Fail(const MutatingPolicy& policy, const PolicyBinding* binding, std::string_view why,
            const char* reason) {
    if (policy.head.ignore_failures) return;
    failures_.push_back({binding
                             ? fmt::format("policy '{}' with binding '{}' denied request: {}",
                                           policy.head.name, binding->name, why)
                             : fmt::format("policy {} denied request: {}", k8s::Quote(policy.head.name), why),
                         reason});
  }

  // The first failure gives the response its message and reason; the status stays that of a forbidden request.
  Result<> Conclude() const {
    if (failures_.empty()) return {};
    const Error forbidden = NotAdmitted(request_, "admission request denied by policy");
    ErrorDetails details = forbidden.details() ? *forbidden.details() : ErrorDetails();
    metav1::Status denial;
    denial.set_status("Failure");
    denial.set_message(failures_[0].message);
    denial.set_reason(failures_[0].reason);
    denial.set_code(HttpStatus(Code::kForbidden));
    denial.mutable_details()->set_name(details.name);
    denial.mutable_details()->set_group(details.group);
    denial.mutable_details()->set_kind(details.kind);
    for (const Failure& failure : failures_) {
      denial.mutable_details()->add_causes()->set_message(failure.message);
      details.causes.push_back({"", failure.message, ""});
    }
    if (request_.notes) request_.notes->denial = std::move(denial);
    return Error(Code::kForbidden, failures_[0].message).WithDetails(std::move(details));
  }

  const AdmissionRequest& request_;
  storage::Store& store_;
  const KindFinder& find_kind_;
  const Authorizer& authorizer_;
  VersionedObject versions_;
  std::shared_ptr<const corev1::Namespace> namespace_;
  std::vector<Invocation> invocations_;
  std::vector<Failure> failures_;
};

class MutatingPolicies : public AdmissionPlugin {
 public:
  MutatingPolicies(storage::Store& store, std::shared_ptr<const Authorizer> authorizer, KindFinder find_kind)
      : store_(store), source_(store), authorizer_(std::move(authorizer)), find_kind_(std::move(find_kind)) {}
  std::string_view name() const override { return kMutatingPlugin; }
  bool HandlesConnect() const override { return true; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (request.Deletes() || IsBeyondPolicies(request)) return {};
    const auto hooks = source_.Current();
    if (hooks->empty()) return {};
    return MutatingDispatch(request, store_, find_kind_, *authorizer_).Run(*hooks);
  }

 private:
  storage::Store& store_;
  MutatingSource source_;
  const std::shared_ptr<const Authorizer> authorizer_;
  const KindFinder find_kind_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewMutatingPolicies(storage::Store& store,
                                                     std::shared_ptr<const Authorizer> authorizer,
                                                     KindFinder find_kind) {
  return std::make_unique<MutatingPolicies>(store, std::move(authorizer), std::move(find_kind));
}

}  // namespace keelson::apiserver
