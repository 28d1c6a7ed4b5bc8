// Tables of access control, admission, flow control, scheduling classes and disruption budgets.
#include <fmt/format.h>

#include "lib/api/proto/admissionregistration_v1.pb.h"
#include "lib/api/proto/apiregistration_v1.pb.h"
#include "lib/api/proto/flowcontrol_v1.pb.h"
#include "lib/api/proto/node_v1.pb.h"
#include "lib/api/proto/policy_v1.pb.h"
#include "lib/api/proto/scheduling_v1.pb.h"
#include "lib/api/table/cells.h"

namespace keelson::api {
namespace {

template <typename Binding>
void FillBinding(const Binding& object, Cells& cells) {
  std::vector<std::string> users, groups, accounts;
  for (const auto& subject : object.subjects()) {
    if (subject.kind() == "ServiceAccount") {
      accounts.push_back(subject.namespace_() + "/" + subject.name());
    } else {
      (subject.kind() == "Group" ? groups : users).push_back(subject.name());
    }
  }
  cells.Text(object.metadata().name())
      .Text(object.role_ref().kind() + "/" + object.role_ref().name())
      .Age(object.metadata());
  cells.Text(Join(users, ", ")).Text(Join(groups, ", ")).Text(Join(accounts, ", "));
}

template <typename Webhooks>
void FillWebhooks(const Webhooks& object, Cells& cells) {
  cells.Text(object.metadata().name()).Number(object.webhooks_size()).Age(object.metadata());
}

template <typename Policy>
std::string ParamKind(const Policy& policy) {
  if (!policy.spec().has_param_kind()) return "<unset>";
  return policy.spec().param_kind().api_version() + "/" + policy.spec().param_kind().kind();
}

void FillValidatingPolicy(const admissionregistration::v1::ValidatingAdmissionPolicy& object, Cells& cells) {
  cells.Text(object.metadata().name())
      .Number(object.spec().validations_size())
      .Text(ParamKind(object))
      .Age(object.metadata());
}

void FillMutatingPolicy(const admissionregistration::v1::MutatingAdmissionPolicy& object, Cells& cells) {
  cells.Text(object.metadata().name())
      .Number(object.spec().mutations_size())
      .Text(ParamKind(object))
      .Age(object.metadata());
}

template <typename Binding>
void FillPolicyBinding(const Binding& object, Cells& cells) {
  std::string param = "<unset>";
  if (object.spec().has_param_ref()) {
    const auto& ref = object.spec().param_ref();
    if (ref.has_selector()) {
      param = FormatSelector(ref.selector());
    } else {
      param = ref.namespace_().empty() ? "*/" + ref.name() : ref.namespace_() + "/" + ref.name();
    }
  }
  cells.Text(object.metadata().name()).Text(object.spec().policy_name()).Text(param).Age(object.metadata());
}

void FillFlowSchema(const flowcontrol::v1::FlowSchema& object, Cells& cells) {
  const auto& spec = object.spec();
  std::string dangling = "?";
  for (const auto& condition : object.status().conditions()) {
    if (condition.type() == "Dangling") dangling = condition.status();
  }
  cells.Text(object.metadata().name()).Text(spec.priority_level_configuration().name());
  cells.Number(spec.matching_precedence())
      .TextOr(spec.distinguisher_method().type(), "<none>")
      .Age(object.metadata());
  cells.Text(dangling);
}

void FillPriorityLevel(const flowcontrol::v1::PriorityLevelConfiguration& object, Cells& cells) {
  const auto& spec = object.spec();
  const auto& queuing = spec.limited().limit_response().queuing();
  bool queues = spec.has_limited() && spec.limited().limit_response().has_queuing();
  // Numbers in columns of type string, as in upstream's printer.
  auto number = [&cells](bool known, int64_t value) {
    if (known) {
      cells.Number(value);
    } else {
      cells.Text("<none>");
    }
  };
  cells.Text(object.metadata().name()).Text(spec.type());
  number(spec.has_limited() || spec.has_exempt(), spec.has_limited()
                                                      ? spec.limited().nominal_concurrency_shares()
                                                      : spec.exempt().nominal_concurrency_shares());
  number(queues, queuing.queues());
  number(queues, queuing.hand_size());
  number(queues, queuing.queue_length_limit());
  cells.Age(object.metadata());
}

void FillPriorityClass(const scheduling::v1::PriorityClass& object, Cells& cells) {
  cells.Text(object.metadata().name())
      .Number(object.value())
      .Bool(object.global_default())
      .Age(object.metadata());
  cells.TextOr(object.preemption_policy(), "PreemptLowerPriority");
}

void FillRuntimeClass(const node::v1::RuntimeClass& object, Cells& cells) {
  cells.Text(object.metadata().name()).Text(object.handler()).Age(object.metadata());
}

void FillBudget(const policy::v1::PodDisruptionBudget& object, Cells& cells) {
  auto text = [](bool known, const intstr::IntOrString& value) -> std::string {
    if (!known) return "N/A";
    return value.type() == 1 ? value.str_val() : std::to_string(value.int_val());
  };
  const auto& spec = object.spec();
  cells.Text(object.metadata().name()).Text(text(spec.has_min_available(), spec.min_available()));
  cells.Text(text(spec.has_max_unavailable(), spec.max_unavailable()))
      .Number(object.status().disruptions_allowed());
  cells.Age(object.metadata());
}

void FillApiService(const apiregistration::v1::APIService& object, Cells& cells) {
  const auto& service = object.spec().service();
  std::string status = "Unknown";
  for (const auto& condition : object.status().conditions()) {
    if (condition.type() != "Available") continue;
    status = condition.status();
    if (status != "True" && !condition.reason().empty()) status += " (" + condition.reason() + ")";
    break;
  }
  cells.Text(object.metadata().name());
  cells.Text(object.spec().has_service() ? service.namespace_() + "/" + service.name() : "Local");
  cells.Text(status).Age(object.metadata());
}

}  // namespace

std::vector<TableKind> PolicyTables() {
  namespace admission = admissionregistration::v1;
  constexpr std::string_view kBinding = "Name|Role|Age|Users+|Groups+|ServiceAccounts+";
  constexpr std::string_view kPolicyBinding = "Name|PolicyName|ParamRef|Age";
  return {
      TableOf<apiregistration::v1::APIService>("Name|Service|Available|Age", FillApiService),
      TableOf<rbacv1::RoleBinding>(kBinding, FillBinding),
      TableOf<rbacv1::ClusterRoleBinding>(kBinding, FillBinding),
      TableOf<admission::MutatingWebhookConfiguration>("Name|Webhooks#|Age", FillWebhooks),
      TableOf<admission::ValidatingWebhookConfiguration>("Name|Webhooks#|Age", FillWebhooks),
      TableOf<admission::ValidatingAdmissionPolicy>("Name|Validations#|ParamKind|Age", FillValidatingPolicy),
      TableOf<admission::MutatingAdmissionPolicy>("Name|Mutations#|ParamKind|Age", FillMutatingPolicy),
      TableOf<admission::ValidatingAdmissionPolicyBinding>(kPolicyBinding, FillPolicyBinding),
      TableOf<admission::MutatingAdmissionPolicyBinding>(kPolicyBinding, FillPolicyBinding),
      TableOf<flowcontrol::v1::FlowSchema>(
          "Name|PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL", FillFlowSchema),
      TableOf<flowcontrol::v1::PriorityLevelConfiguration>(
          "Name|Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age", FillPriorityLevel),
      TableOf<scheduling::v1::PriorityClass>("Name|Value#|Global-Default?|Age|PreemptionPolicy",
                                             FillPriorityClass),
      TableOf<node::v1::RuntimeClass>("Name|Handler|Age", FillRuntimeClass),
      TableOf<policy::v1::PodDisruptionBudget>("Name|Min Available|Max Unavailable|Allowed Disruptions#|Age",
                                               FillBudget),
  };
}

}  // namespace keelson::api
