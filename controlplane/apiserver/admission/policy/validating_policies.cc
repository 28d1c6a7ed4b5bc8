// ValidatingAdmissionPolicy: rules in CEL, which bindings put into force
// (k8s.io/apiserver/pkg/admission/plugin/policy/validating, dispatcher.go).
#include <map>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>

#include "controlplane/apiserver/admission/matching/selectors.h"
#include "controlplane/apiserver/admission/matching/versions.h"
#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/policy/policy_metrics.h"
#include "controlplane/apiserver/admission/policy/validating_policy.h"
#include "lib/base/log.h"

namespace keelson::apiserver {
namespace {

using namespace policy;  // used by this plugin only
namespace json = boost::json;

constexpr size_t kMaxAuditValue = 10 * 1024;

struct ValidatingTraits {
  using PolicyObject = admissionregistrationv1::ValidatingAdmissionPolicy;
  using BindingObject = admissionregistrationv1::ValidatingAdmissionPolicyBinding;
  using Compiled = ValidatingPolicy;
  static ValidatingPolicy Compile(const PolicyObject& policy) { return CompileValidatingPolicy(policy); }
  static PolicyBinding Bind(const BindingObject& object) {
    PolicyBinding out = BindingOf(object);
    out.actions.assign(object.spec().validation_actions().begin(), object.spec().validation_actions().end());
    return out;
  }
};
using ValidatingSource = PolicySource<ValidatingTraits>;

// One request on its way through all policies.
class ValidatingDispatch {
 public:
  ValidatingDispatch(const AdmissionRequest& request, storage::Store& store, const KindFinder& find_kind,
                     const Authorizer& authorizer)
      : request_(request),
        store_(store),
        find_kind_(find_kind),
        authorizer_(authorizer),
        versions_(request) {}

  Result<> Visit(const ValidatingSource::Hook& hook) {
    const ValidatingPolicy& policy = *hook.policy;
    const Result<const api::ResourceInfo*> row = MatchRequest(policy.head.constraints, request_, store_);
    if (!row) {
      Misconfigured(policy, nullptr, row.error());
      return {};
    }
    if (!*row) return {};
    const api::ResourceInfo* params = nullptr;
    if (policy.head.param_kind) {
      const Result<const api::ResourceInfo*> found = ResourceOfParams(*policy.head.param_kind, find_kind_);
      if (!found) {
        Misconfigured(policy, nullptr, found.error());
        return {};
      }
      params = *found;
    }
    annotations_.clear();
    for (const auto& binding : hook.bindings) {
      KEELSON_RETURN_IF_ERROR(Visit(policy, *binding, **row, params));
    }
    PublishAnnotations(policy);
    return {};
  }

  // The error of the first denial.
  Result<> Conclude() const {
    if (!denial_) return {};
    const Error forbidden = NotAdmitted(request_, denial_->message);
    ErrorDetails details = forbidden.details() ? *forbidden.details() : ErrorDetails();
    details.causes.push_back({"", denial_->message, ""});
    return Error(denial_->code, forbidden.message()).WithDetails(std::move(details));
  }

 private:
  struct Denial {
    std::string message;
    Code code;
  };

  static Code CodeOfReason(std::string_view reason) {
    if (reason == "Forbidden") return Code::kForbidden;
    if (reason == "Unauthorized") return Code::kUnauthenticated;
    return reason == "RequestEntityTooLarge" ? Code::kTooLarge : Code::kInvalid;
  }

  void Deny(const ValidatingPolicy& policy, const PolicyBinding* binding, std::string_view message,
            std::string_view reason) {
    if (denial_) return;
    denial_ = Denial{
        binding ? fmt::format("ValidatingAdmissionPolicy '{}' with binding '{}' denied request: {}",
                              policy.head.name, binding->name, message)
                : fmt::format("ValidatingAdmissionPolicy '{}' denied request: {}", policy.head.name, message),
        CodeOfReason(reason)};
  }

  void Misconfigured(const ValidatingPolicy& policy, const PolicyBinding* binding, const Error& error) {
    if (policy.head.ignore_failures) return;
    Deny(policy, binding,
         fmt::format("failed to configure {}: {}", binding ? "binding" : "policy", error.message()), "");
  }

  Result<> Visit(const ValidatingPolicy& policy, const PolicyBinding& binding, const api::ResourceInfo& row,
                 const api::ResourceInfo* param_row) {
    const Result<bool> match = BindingMatches(binding, request_, store_);
    if (!match) Misconfigured(policy, &binding, match.error());
    if (!match || !*match) return {};
    std::vector<Param> params(1);
    if (param_row && binding.param_ref) {
      Result<std::vector<Param>> found =
          CollectParams(*param_row, *binding.param_ref, request_.ns, store_, request_.deadline);
      if (!found) {
        Misconfigured(policy, &binding, found.error());
        return {};
      }
      params = std::move(*found);
    }
    if (params.empty()) return {};
    const Result<const api::Message*> object = versions_.Object(row);
    const Result<const api::Message*> old_object = object ? versions_.OldObject(row) : object;
    if (!old_object) {
      Misconfigured(policy, &binding, old_object.error().Wrap("failed to convert object version"));
      return {};
    }
    KEELSON_RETURN_IF_ERROR(FindNamespace());
    const ExpressionInput input(request_, row, *object, *old_object, namespace_.get(), authorizer_);
    for (const Param& param : params) {
      std::optional<ExpressionObject> value;
      if (param.message) value.emplace(param.message.get(), *param.row);
      Act(policy, binding, Judge(policy, input, value ? &*value : nullptr));
    }
    return {};
  }

  // Objects in a namespace have it as namespaceObject.
  Result<> FindNamespace() {
    const bool is_namespace = request_.info.kind == "Namespace" && request_.info.kind_group.empty();
    if (namespace_ || is_namespace || request_.ns.empty()) return {};
    KEELSON_ASSIGN_OR_RETURN(namespace_, NamespaceOf(request_, store_));
    return {};
  }

  void Act(const ValidatingPolicy& policy, const PolicyBinding& binding, const Verdict& verdict) {
    const std::string& name = policy.head.name;
    for (size_t i = 0; i < verdict.decisions.size(); ++i) {
      const PolicyDecision& decision = verdict.decisions[i];
      const std::string_view type = ErrorTypeOf(decision.message);
      if (!decision.deny) {
        if (decision.failed) CountValidation(name, binding.name, type, "allow", decision.took);
        continue;
      }
      for (const std::string& action : binding.actions) {
        if (action == "Deny") {
          Deny(policy, &binding, decision.message, decision.reason);
          CountValidation(name, binding.name, type, "deny", decision.took);
        } else if (action == "Audit") {
          PublishFailure(binding, i, decision);
          CountValidation(name, binding.name, type, "audit", decision.took);
        } else if (action == "Warn") {
          Warn(policy, binding, decision);
          CountValidation(name, binding.name, type, "warn", decision.took);
        }
      }
    }
    for (const AuditValue& value : verdict.annotations) {
      if (value.kind == AuditValue::Kind::kPublish) {
        std::vector<std::string>& values = annotations_[value.key];
        std::string text = value.text.substr(0, kMaxAuditValue);
        if (std::find(values.begin(), values.end(), text) == values.end()) values.push_back(std::move(text));
      } else if (value.kind == AuditValue::Kind::kError) {
        Deny(policy, &binding, value.text, "");
        CountValidation(name, binding.name, ErrorTypeOf(value.text), "deny", {});
      }
    }
  }

  void Warn(const ValidatingPolicy& policy, const PolicyBinding& binding, const PolicyDecision& decision) {
    if (!request_.notes) return;
    request_.notes->told.push_back(
        fmt::format("Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                    policy.head.name, binding.name, decision.message));
  }

  // The first failure of a request is the one that the audit log has.
  void PublishFailure(const PolicyBinding& binding, size_t index, const PolicyDecision& decision) {
    if (!request_.notes) return;
    json::array actions;
    for (const std::string& action : binding.actions) actions.push_back(json::string(action));
    json::object failure;
    failure["message"] = json::string(decision.message);
    failure["policy"] = json::string(binding.policy_name);
    failure["binding"] = json::string(binding.name);
    failure["expressionIndex"] = index;
    failure["validationActions"] = std::move(actions);
    json::array failures;
    failures.push_back(std::move(failure));
    const std::string text = json::serialize(failures);
    if (!request_.notes->annotations.emplace("validation.policy.admission.k8s.io/validation_failure", text)
             .second) {
      log::Warn("A failed validation is not in the audit log: another one came first",
                {{"policy", binding.policy_name}, {"binding", binding.name}});
    }
  }

  void PublishAnnotations(const ValidatingPolicy& policy) {
    if (!request_.notes) return;
    for (const auto& [key, values] : annotations_) {
      std::string all;
      for (const std::string& value : values) all += (all.empty() ? "" : ", ") + value;
      request_.notes->annotations.emplace(policy.head.name + "/" + key, std::move(all));
    }
  }

  const AdmissionRequest& request_;
  storage::Store& store_;
  const KindFinder& find_kind_;
  const Authorizer& authorizer_;
  VersionedObject versions_;
  std::shared_ptr<const corev1::Namespace> namespace_;
  std::map<std::string, std::vector<std::string>> annotations_;  // of the present policy
  std::optional<Denial> denial_;
};

class ValidatingPolicies : public AdmissionPlugin {
 public:
  ValidatingPolicies(storage::Store& store, std::shared_ptr<const Authorizer> authorizer,
                     KindFinder find_kind)
      : store_(store), source_(store), authorizer_(std::move(authorizer)), find_kind_(std::move(find_kind)) {}
  std::string_view name() const override { return "ValidatingAdmissionPolicy"; }
  bool HandlesConnect() const override { return true; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (IsBeyondPolicies(request)) return {};
    const auto hooks = source_.Current();
    if (hooks->empty()) return {};
    ValidatingDispatch dispatch(request, store_, find_kind_, *authorizer_);
    for (const ValidatingSource::Hook& hook : *hooks) KEELSON_RETURN_IF_ERROR(dispatch.Visit(hook));
    return dispatch.Conclude();
  }

 private:
  storage::Store& store_;
  ValidatingSource source_;
  const std::shared_ptr<const Authorizer> authorizer_;
  const KindFinder find_kind_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewValidatingPolicies(storage::Store& store,
                                                       std::shared_ptr<const Authorizer> authorizer,
                                                       KindFinder find_kind) {
  return std::make_unique<ValidatingPolicies>(store, std::move(authorizer), std::move(find_kind));
}

}  // namespace keelson::apiserver
