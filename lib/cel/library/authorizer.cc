#include "lib/cel/library/authorizer.h"

#include "lib/api/names.h"
#include "lib/cel/library/library.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

// An authorizer or a check in the making.
class CheckValue : public OpaqueValue {
 public:
  CheckValue(Type type, const Authorizer& authorizer, AuthorizationQuestion question)
      : type_(type), authorizer(authorizer), question(std::move(question)) {}
  Type type() const override { return type_; }
  bool Equals(const OpaqueValue& other) const override { return this == &other; }

 private:
  Type type_;

 public:
  const Authorizer& authorizer;
  const AuthorizationQuestion question;
};

class DecisionValue : public OpaqueValue {
 public:
  explicit DecisionValue(AuthorizationAnswer result) : answer(std::move(result)) {}
  Type type() const override { return &types::kDecision; }
  bool Equals(const OpaqueValue& other) const override { return this == &other; }

  const AuthorizationAnswer answer;
};

const CheckValue& CheckOf(const Value& value) { return static_cast<const CheckValue&>(value.opaque()); }
const AuthorizationAnswer& AnswerOf(const Value& value) {
  return static_cast<const DecisionValue&>(value.opaque()).answer;
}

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\n\v\f\r") == std::string_view::npos;
}

// The check with one more thing known.
Value With(Args args, Type type, std::string AuthorizationQuestion::*member, Arena& arena) {
  const CheckValue& check = CheckOf(args[0]);
  AuthorizationQuestion question = check.question;
  question.*member = std::string(args[1].text());
  return Value::Opaque(arena.New<CheckValue>(type, check.authorizer, std::move(question)));
}

Value Path(Args args, Arena& arena) {
  if (IsBlank(args[1].text())) return Value::StaticError("path must not be empty");
  return With(args, &types::kPathCheck, &AuthorizationQuestion::path, arena);
}

Value Group(Args args, Arena& arena) {
  return With(args, &types::kGroupCheck, &AuthorizationQuestion::group, arena);
}

Value ServiceAccount(Args args, Arena& arena) {
  const CheckValue& check = CheckOf(args[0]);
  AuthorizationQuestion question = check.question;
  question.service_account_namespace = std::string(args[1].text());
  question.service_account_name = std::string(args[2].text());
  if (!api::CheckDns1123Subdomain(args[2].text()).empty()) {
    return Value::StaticError("Invalid service account name");
  }
  if (!api::CheckDns1123Label(args[1].text()).empty()) {
    return Value::StaticError("Invalid service account namespace");
  }
  return Value::Opaque(arena.New<CheckValue>(&types::kAuthorizer, check.authorizer, std::move(question)));
}

Value Resource(Args args, Arena& arena) {
  if (IsBlank(args[1].text())) return Value::StaticError("resource must not be empty");
  return With(args, &types::kResourceCheck, &AuthorizationQuestion::resource, arena);
}

template <std::string AuthorizationQuestion::*kMember>
Value Narrow(Args args, Arena& arena) {
  return With(args, &types::kResourceCheck, kMember, arena);
}

Value Check(Args args, Arena& arena) {
  const CheckValue& check = CheckOf(args[0]);
  AuthorizationQuestion question = check.question;
  question.verb = std::string(args[1].text());
  return Value::Opaque(arena.New<DecisionValue>(check.authorizer.Check(question)));
}

Value Errored(Args args, Arena&) { return Value::Bool(AnswerOf(args[0]).errored); }
Value ErrorText(Args args, Arena&) { return Value::String(AnswerOf(args[0]).error); }
Value Allowed(Args args, Arena&) { return Value::Bool(AnswerOf(args[0]).allowed); }
Value Reason(Args args, Arena&) { return Value::String(AnswerOf(args[0]).reason); }

#define A "kubernetes.authorization."
constexpr CostRule kOneEach = CostRule::kNominal, kCheck = CostRule::kAuthorizerCheck;

const FunctionRow kAuthorizerRows[] = {
    {"path", "authorizer_path", A "Authorizer", "string", A "PathCheck", 27, Path, kOneEach},
    {"group", "authorizer_group", A "Authorizer", "string", A "GroupCheck", 27, Group, kOneEach},
    {"serviceAccount", "authorizer_serviceaccount", A "Authorizer", "string,string", A "Authorizer", 27,
     ServiceAccount, kOneEach},
    {"resource", "groupcheck_resource", A "GroupCheck", "string", A "ResourceCheck", 27, Resource, kOneEach},
    {"subresource", "resourcecheck_subresource", A "ResourceCheck", "string", A "ResourceCheck", 27,
     Narrow<&AuthorizationQuestion::subresource>, kOneEach},
    {"namespace", "resourcecheck_namespace", A "ResourceCheck", "string", A "ResourceCheck", 27,
     Narrow<&AuthorizationQuestion::namespace_name>, kOneEach},
    {"name", "resourcecheck_name", A "ResourceCheck", "string", A "ResourceCheck", 27,
     Narrow<&AuthorizationQuestion::name>, kOneEach},
    {"check", "pathcheck_check", A "PathCheck", "string", A "Decision", 27, Check, kCheck},
    {"check", "resourcecheck_check", A "ResourceCheck", "string", A "Decision", 27, Check, kCheck},
    {"errored", "decision_errored", A "Decision", "", "bool", 27, Errored, kOneEach},
    {"error", "decision_error", A "Decision", "", "string", 27, ErrorText, kOneEach},
    {"allowed", "decision_allowed", A "Decision", "", "bool", 27, Allowed, kOneEach},
    {"reason", "decision_reason", A "Decision", "", "string", 27, Reason, kOneEach},
    {"fieldSelector", "authorizer_fieldselector", A "ResourceCheck", "string", A "ResourceCheck", 31,
     Narrow<&AuthorizationQuestion::field_selector>, CostRule::kSelector},
    {"labelSelector", "authorizer_labelselector", A "ResourceCheck", "string", A "ResourceCheck", 31,
     Narrow<&AuthorizationQuestion::label_selector>, CostRule::kSelector},
};
#undef A

}  // namespace

Value AuthorizerVariable(const Authorizer& authorizer, Arena& arena) {
  return Value::Opaque(arena.New<CheckValue>(&types::kAuthorizer, authorizer, AuthorizationQuestion()));
}

Value ResourceCheckVariable(const Authorizer& authorizer, AuthorizationQuestion question, Arena& arena) {
  return Value::Opaque(arena.New<CheckValue>(&types::kResourceCheck, authorizer, std::move(question)));
}

std::span<const FunctionRow> AuthorizerFunctions() { return kAuthorizerRows; }

}  // namespace keelson::cel
