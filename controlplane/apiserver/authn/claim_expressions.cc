#include "controlplane/apiserver/authn/claim_expressions.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/json/value.hpp>
#include <boost/json/value_from.hpp>

#include "lib/cel/env.h"
#include "lib/cel/syntax/parser.h"
#include "lib/cel/values/containers.h"
#include "lib/cel/values/json_view.h"

namespace keelson::apiserver {
namespace {

namespace json = boost::json;

constexpr char kNoStrings[] = "expression must return a string or a list of strings";

Error Refused(std::string message) { return Error(Code::kUnauthenticated, std::move(message)); }

struct Environment {
  cel::DeclTypePtr type;  // of the variable
  cel::EnvPtr env;
};

Environment MakeEnvironment(const char* variable, cel::DeclTypePtr type) {
  cel::EnvOptions options;
  options.version = cel::kStoredExpressions;  // the file is the administrator's own
  options.variables = {{variable, type}};
  options.check_cost = false;
  return {type, cel::Env::Make(std::move(options))};
}

const Environment& Claims() {
  static const Environment environment = MakeEnvironment("claims", cel::DeclType::Map(cel::DeclType::Dyn()));
  return environment;
}

const Environment& UserInfo() {
  static const Environment environment = [] {
    const cel::DeclTypePtr text = cel::DeclType::String(), texts = cel::DeclType::List(text);
    return MakeEnvironment("user", cel::DeclType::Object("kubernetes.UserInfo",
                                                         {{"username", "username", text},
                                                          {"uid", "uid", text},
                                                          {"groups", "groups", texts},
                                                          {"extra", "extra", cel::DeclType::Map(texts)}}));
  }();
  return environment;
}

Result<ExpressionPtr> Compile(const Environment& environment, std::string_view expression) {
  Result<ExpressionPtr> program = environment.env->Compile(expression);
  if (!program) return Error(Code::kInvalid, "compilation failed: " + program.error().message());
  return program;
}

Result<ExpressionPtr> CompileRule(const Environment& environment, std::string_view expression) {
  KEELSON_ASSIGN_OR_RETURN(ExpressionPtr program, Compile(environment, expression));
  if (program->result_type()->kind != cel::TypeKind::kBool) {
    return Error(Code::kInvalid, "must evaluate to bool");
  }
  return program;
}

// The variable of one environment and the memory of its evaluations.
class Evaluation {
 public:
  Evaluation(const Environment& environment, const char* variable, json::value data)
      : data_(std::move(data)), activation_(*environment.env) {
    activation_.Set(variable, cel::JsonValue(data_, environment.type.get(), arena_));
  }
  Result<cel::Value> Run(const cel::Program& program) {
    Result<cel::Value> value = program.Evaluate(activation_, arena_);
    if (value) return value;
    return Refused(
        fmt::format("expression '{}' resulted in error: {}", program.expression(), value.error().message()));
  }
  cel::Arena& arena() { return arena_; }

 private:
  cel::Arena arena_;
  const json::value data_;
  cel::Activation activation_;
};

Result<std::string> EvaluateText(const ExpressionPtr& program, const json::object& claims,
                                 std::string_view what) {
  Evaluation evaluation(Claims(), "claims", claims);
  Result<cel::Value> value = evaluation.Run(*program);
  const std::string prefix = fmt::format("error evaluating {} claim expression: ", what);
  if (!value) return Refused(prefix + value.error().message());
  if (!value->Is(cel::ValueKind::kString)) {
    return Refused(fmt::format("{}{} claim expression must return a string", prefix, what));
  }
  return std::string(value->text());
}

// A string or a list of strings; empty ones and null count as absent.
Result<std::vector<std::string>> ToStrings(const cel::Value& value, cel::Arena& arena) {
  std::vector<std::string> out;
  if (value.Is(cel::ValueKind::kNull)) return out;
  if (value.Is(cel::ValueKind::kString)) {
    if (!value.text().empty()) out.emplace_back(value.text());
    return out;
  }
  if (!value.Is(cel::ValueKind::kList)) return Refused(kNoStrings);
  for (size_t i = 0; i < value.list().Size(); ++i) {
    const cel::Value item = value.list().At(i, arena);
    if (!item.Is(cel::ValueKind::kString)) return Refused(kNoStrings);
    if (!item.text().empty()) out.emplace_back(item.text());
  }
  return out;
}

Result<> Check(Evaluation& evaluation, const std::vector<ValidationExpression>& rules,
               std::string_view prefix) {
  for (const ValidationExpression& rule : rules) {
    Result<cel::Value> value = evaluation.Run(*rule.expression);
    if (!value) return Refused(fmt::format("{}{}", prefix, value.error().message()));
    if (value->IsTrue()) continue;
    return Refused(fmt::format("{}validation expression '{}' failed: {}", prefix,
                               rule.expression->expression(), rule.message));
  }
  return {};
}

bool Selects(const cel::Expr* expr, std::string_view claim) {
  if (!expr) return false;
  auto is_claims = [](const cel::Expr* one) {
    return one && one->kind == cel::ExprKind::kIdent && one->name == "claims";
  };
  if (expr->kind == cel::ExprKind::kSelect && expr->name == claim && is_claims(expr->target)) return true;
  if (expr->kind == cel::ExprKind::kCall && expr->name == cel::operators::kOptSelect &&
      expr->args.size() == 2 && is_claims(expr->args[0]) && expr->args[1]->constant.text == claim) {
    return true;
  }
  if (Selects(expr->target, claim)) return true;
  if (std::any_of(expr->args.begin(), expr->args.end(),
                  [&](const cel::Expr* arg) { return Selects(arg, claim); })) {
    return true;
  }
  const cel::Comprehension* fold = expr->fold;
  return fold &&
         (Selects(fold->range, claim) || Selects(fold->init, claim) || Selects(fold->condition, claim) ||
          Selects(fold->step, claim) || Selects(fold->result, claim));
}

}  // namespace

Result<ExpressionPtr> CompileClaimMapping(std::string_view expression) {
  return Compile(Claims(), expression);
}
Result<ExpressionPtr> CompileClaimRule(std::string_view expression) {
  return CompileRule(Claims(), expression);
}
Result<ExpressionPtr> CompileUserRule(std::string_view expression) {
  return CompileRule(UserInfo(), expression);
}

bool SelectsClaim(std::string_view expression, std::string_view claim) {
  std::vector<cel::Issue> issues;
  const std::unique_ptr<cel::Ast> ast = cel::Parse(expression, {}, issues);
  return ast && Selects(ast->root, claim);
}

Result<std::string> EvaluateUserName(const ClaimExpressions& all, const json::object& claims) {
  KEELSON_ASSIGN_OR_RETURN(std::string name, EvaluateText(all.username, claims, "username"));
  // Without a name nothing could tell whose request it is.
  if (name.empty()) return Refused("username claim expression must not return an empty string");
  return name;
}

Result<std::vector<std::string>> EvaluateGroups(const ClaimExpressions& all, const json::object& claims) {
  Evaluation evaluation(Claims(), "claims", claims);
  const std::string prefix = "error evaluating group claim expression: ";
  Result<cel::Value> value = evaluation.Run(*all.groups);
  if (!value) return Refused(prefix + value.error().message());
  Result<std::vector<std::string>> groups = ToStrings(*value, evaluation.arena());
  if (!groups) return Refused(prefix + groups.error().message());
  return groups;
}

Result<std::string> EvaluateUid(const ClaimExpressions& all, const json::object& claims) {
  return EvaluateText(all.uid, claims, "uid");
}

Result<> EvaluateExtra(const ClaimExpressions& all, const json::object& claims, User& user) {
  if (all.extra.empty()) return {};
  Evaluation evaluation(Claims(), "claims", claims);
  for (const auto& [key, expression] : all.extra) {
    KEELSON_ASSIGN_OR_RETURN(const cel::Value value, evaluation.Run(*expression));
    Result<std::vector<std::string>> values = ToStrings(value, evaluation.arena());
    if (!values) {
      return Refused(fmt::format("error evaluating extra claim expression: {}: {}", expression->expression(),
                                 values.error().message()));
    }
    if (!values->empty()) user.extra[key] = std::move(*values);
  }
  return {};
}

Result<> EvaluateClaimRules(const ClaimExpressions& all, const json::object& claims) {
  if (all.claim_rules.empty()) return {};
  Evaluation evaluation(Claims(), "claims", claims);
  return Check(evaluation, all.claim_rules, "error evaluating claim validation expression: ");
}

Result<> EvaluateUserRules(const ClaimExpressions& all, const User& user) {
  if (all.user_rules.empty()) return {};
  json::object data{{"username", user.name}, {"uid", user.uid}};
  data["groups"] = json::value_from(user.groups);
  data["extra"] = json::value_from(user.extra);
  Evaluation evaluation(UserInfo(), "user", std::move(data));
  return Check(evaluation, all.user_rules, "error evaluating user info validation rule: ");
}

}  // namespace keelson::apiserver
