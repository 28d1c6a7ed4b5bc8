#include "lib/k8s/schema/rules.h"

#include <algorithm>

#include <fmt/format.h>

#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/cel/values/json_view.h"
#include "lib/k8s/schema/correlate.h"
#include "lib/k8s/schema/place.h"
#include "lib/k8s/schema/rule_metrics.h"
#include "lib/k8s/schema/rule_programs.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;
using Type = FieldError::Type;

constexpr size_t kMaxMessage = 5 * 1024;
constexpr char kOutOfBudget[] =
    "validation failed due to running out of cost budget, no further validation rules will be run";

// What the part was before, and the nearest part around it that can be told: if that did not change, neither did
// this one.
struct History {
  Correlation now, around;
  const json::value* around_value = nullptr;  // the new value of `around`
  bool is_root = false;
};

std::string_view TypeName(const SchemaNode& node) {
  constexpr std::string_view kNames[] = {"", "object", "array", "string", "integer", "number", "boolean", ""};
  return kNames[static_cast<size_t>(node.type)];
}

class Evaluator {
 public:
  Evaluator(const SchemaNodes& nodes, const CompiledRules& rules, bool is_update, FieldErrors& errors,
            std::vector<std::string>* warnings)
      : nodes_(nodes),
        rules_(rules),
        correlator_(nodes),
        is_update_(is_update),
        errors_(errors),
        warnings_(warnings) {}

  // False when the budget is used up.
  bool Visit(NodeIndex index, bool is_object, const json::value& value, const json::value* old,
             const History& history, const Place& place) {
    const SchemaNode& node = nodes_.nodes[index];
    if (value.is_null() || !node.Is(SchemaNode::kRulesBelow)) return true;
    const auto rules = rules_.nodes.find({index, is_object});
    if (rules == rules_.nodes.end()) return true;
    const Scope scope{node, rules->second, value, old && old->is_null() ? nullptr : old, history, place};
    if (!Evaluate(scope)) return false;
    if (value.is_array()) return VisitItems(node, value, old, history, place);
    return !value.is_object() || VisitMembers(node, value, old, history, place);
  }

 private:
  struct Scope {
    const SchemaNode& node;
    const NodeRules& rules;
    const json::value& value;
    const json::value* old;
    const History& history;
    const Place& place;
  };

  // The history of a part of `value`.
  static History Below(const History& history, const json::value& value, Correlation now) {
    if (!history.now.old) return {{}, history.around, history.around_value, false};
    return {now, history.now, &value, false};
  }

  bool VisitItems(const SchemaNode& node, const json::value& value, const json::value* old,
                  const History& history, const Place& place) {
    const json::array& list = value.get_array();
    if (node.items == kNoNode) return true;
    const bool embedded = nodes_.nodes[node.items].Is(SchemaNode::kEmbedded);
    const Correlation whole{old, static_cast<NodeIndex>(&node - nodes_.nodes.data())};
    for (size_t i = 0; i < list.size(); ++i) {
      const Correlation before = old ? correlator_.Item(whole, list[i]) : Correlation();
      const History below = Below(history, value, correlator_.Item(history.now, list[i]));
      if (!Visit(node.items, embedded, list[i], before.old, below, place.Index(i))) return false;
    }
    return true;
  }

  bool VisitMembers(const SchemaNode& node, const json::value& value, const json::value* old,
                    const History& history, const Place& place) {
    const json::object& object = value.get_object();
    const json::object* before = old ? old->if_object() : nullptr;
    for (const auto& member : object) {
      const std::string_view name = View(member.key());
      const NodeIndex named = nodes_.Property(node, name), child = named == kNoNode ? node.additional : named;
      if (child == kNoNode || !nodes_.nodes[child].Is(SchemaNode::kRulesBelow)) continue;
      History below = Below(history, value, correlator_.Member(history.now, name));
      if (history.is_root && (name == "apiVersion" || name == "kind")) below = {};
      const Place where = named == kNoNode ? place.Key(name) : place.Child(name);
      if (!Visit(child, nodes_.nodes[child].Is(SchemaNode::kEmbedded), member.value(),
                 before ? before->if_contains(member.key()) : nullptr, below, where)) {
        return false;
      }
    }
    return true;
  }

  // Evaluates the rules of one part.
  bool Evaluate(const Scope& scope) {
    if (scope.rules.programs.empty()) return true;
    if (budget_ <= 0) {
      Add(scope, kOutOfBudget);
      return false;
    }
    cel::Arena arena;
    const cel::DeclType* type = scope.rules.self.get();
    const cel::Value self = cel::JsonValue(scope.value, type, arena);
    const cel::Value old = scope.old ? cel::JsonValue(*scope.old, type, arena) : cel::Value();
    for (size_t i = 0; i < scope.rules.programs.size(); ++i) {
      const RuleProgram& program = scope.rules.programs[i];
      const SchemaRule& rule = nodes_.rules[scope.node.rules.begin + i];
      if (!program.error.empty()) {
        Add(scope, "rule compile error: " + program.error);
        continue;
      }
      if (!program.rule) continue;
      // Transition rules need something to compare with.
      if (program.uses_old_self && !scope.old && !rule.optional_old_self) continue;
      cel::Value old_self = old;
      if (rule.optional_old_self) old_self = scope.old ? cel::Value::Some(old, arena) : cel::Value::None();
      if (!EvaluateRule(scope, i, self, old_self, arena)) return false;
    }
    return true;
  }

  static cel::Activation Variables(const cel::Env& env, const cel::Value& self, const cel::Value& old_self) {
    cel::Activation activation(env);
    activation.Set("self", self);
    activation.Set("oldSelf", old_self);
    return activation;
  }

  // Takes a cost from the budget; false when it does not suffice.
  bool Spend(uint64_t cost) {
    if (cost > static_cast<uint64_t>(budget_)) return false;
    budget_ -= static_cast<int64_t>(cost);
    return true;
  }

  bool EvaluateRule(const Scope& scope, size_t i, const cel::Value& self, const cel::Value& old_self,
                    cel::Arena& arena) {
    const RuleProgram& program = scope.rules.programs[i];
    const SchemaRule& rule = nodes_.rules[scope.node.rules.begin + i];
    uint64_t cost = 0;
    const auto result = program.rule->Evaluate(Variables(*program.env, self, old_self), arena, {}, &cost);
    if (!Spend(cost)) {
      Add(scope, kOutOfBudget);
      return false;
    }
    if (!result) return AddFailure(scope, rule, result.error().message());
    if (result->IsTrue()) return true;
    const std::string& path = scope.rules.places[i];
    std::string field = scope.place.ToString();
    if (!path.empty()) field += field.empty() || path.front() == '[' ? path : "." + path;
    std::string message = DefaultMessage(rule);
    bool goes_on = true;
    const bool lacks_old = !scope.old && !rule.optional_old_self;
    if (program.message && !(lacks_old && program.message->Uses("oldSelf"))) {
      goes_on = EvaluateMessage(program, rule, self, old_self, arena, message);
    }
    const Type type = goes_on ? TypeOf(nodes_.Text(rule.reason)) : Type::kInvalid;
    AddBroken(scope, {type, field.empty() ? "<nil>" : field, "", std::move(message)}, !program.uses_old_self);
    return goes_on;
  }

  // Puts the message of the expression in place of the default. False, with the reason as the message, when no
  // more rules may be evaluated.
  bool EvaluateMessage(const RuleProgram& program, const SchemaRule& rule, const cel::Value& self,
                       const cel::Value& old_self, cel::Arena& arena, std::string& message) {
    uint64_t cost = 0;
    const auto result =
        program.message->Evaluate(Variables(*program.message_env, self, old_self), arena, {}, &cost);
    if (!Spend(cost)) {
      message =
          "messageExpression evaluation failed due to running out of cost budget, no further validation "
          "rules will be "
          "run";
      return false;
    }
    if (!result) {
      if (!IsOverLimit(result.error().message())) return true;
      message = fmt::format(
          "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
          Quote(nodes_.Text(rule.message_expression)));
      return false;
    }
    if (result->kind() != cel::ValueKind::kString) return true;
    const std::string_view text = Trim(result->text());
    if (text.empty() || text.size() > kMaxMessage || text.find('\n') != std::string_view::npos) return true;
    message = text;
    return true;
  }

  static bool IsOverLimit(std::string_view problem) {
    return problem.starts_with("operation cancelled: actual cost limit exceeded");
  }

  // An expression that failed to evaluate. False when no more rules may be evaluated.
  bool AddFailure(const Scope& scope, const SchemaRule& rule, const std::string& problem) {
    const std::string_view shown = Shown(rule);
    if (problem.starts_with("no such overload")) {
      Add(scope, fmt::format("'{}': call arguments did not match a supported operator, function or macro "
                             "signature for rule: {}",
                             problem, shown));
    } else if (IsOverLimit(problem)) {
      Add(scope,
          fmt::format(
              "'{}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
              problem, shown));
      return false;
    } else {
      Add(scope, fmt::format("{} evaluating rule: {}", problem, shown));
    }
    return true;
  }

  std::string_view Shown(const SchemaRule& rule) const {
    return Trim(nodes_.Text(rule.message.size > 0 ? rule.message : rule.rule));
  }
  std::string DefaultMessage(const SchemaRule& rule) const {
    return (rule.message.size > 0 ? "" : "failed rule: ") + std::string(Shown(rule));
  }

  static Type TypeOf(std::string_view reason) {
    if (reason == "FieldValueForbidden") return Type::kForbidden;
    if (reason == "FieldValueRequired") return Type::kRequired;
    return reason == "FieldValueDuplicate" ? Type::kDuplicate : Type::kInvalid;
  }

  void Add(const Scope& scope, std::string detail) {
    errors_.push_back(
        {Type::kInvalid, scope.place.ToField(), Quote(TypeName(scope.node)), std::move(detail)});
  }

  // `may_ratchet`: the rule is not about the change.
  void AddBroken(const Scope& scope, FieldError error, bool may_ratchet) {
    if (error.type == Type::kInvalid || error.type == Type::kDuplicate) {
      error.value = Quote(TypeName(scope.node));
    }
    if (error.type == Type::kDuplicate) error.detail.clear();
    const bool unchanged = is_update_ && may_ratchet && IsUnchanged(scope);
    if (!unchanged) {
      errors_.push_back(std::move(error));
    } else if (warnings_) {
      warnings_->push_back(error.ToString());
    }
  }

  bool IsUnchanged(const Scope& scope) {
    const History& history = scope.history;
    if (history.now.old) return correlator_.IsUnchanged(history.now, scope.value);
    return history.around.old && correlator_.IsUnchanged(history.around, *history.around_value);
  }

  const SchemaNodes& nodes_;
  const CompiledRules& rules_;
  Correlator correlator_;
  const bool is_update_;
  FieldErrors& errors_;
  std::vector<std::string>* const warnings_;
  int64_t budget_ = cel::kRuntimeBudget;
};

// Errors that keep the values of a schema's types from being told.
bool Blocks(const FieldError& error) {
  return error.type == Type::kNotSupported || error.type == Type::kRequired || error.type == Type::kTooLong ||
         error.type == Type::kTooMany || error.type == Type::kTypeInvalid;
}

const CompiledRules& RulesOf(const SchemaNodes& nodes) {
  std::call_once(nodes.rules_once,
                 [&] { nodes.rules_made = std::make_shared<CompiledRules>(CompileRules(nodes)); });
  return *nodes.rules_made;
}

}  // namespace

void ValidateRules(const StructuralSchema& schema, const json::value& object, const json::value* old,
                   FieldErrors& errors, std::vector<std::string>* warnings) {
  if (!schema.has_rules()) return;
  if (std::any_of(errors.begin(), errors.end(), Blocks)) {
    errors.push_back(
        {Type::kInvalid, "<nil>", Quote("null"),
         "some validation rules were not checked because the object was invalid; correct the existing "
         "errors to complete validation"});
    return;
  }
  const SchemaNodes& nodes = schema.nodes();
  const History history{old ? Correlation{old, nodes.root} : Correlation(), {}, nullptr, true};
  const CompiledRules& rules = RulesOf(nodes);
  const SteadyTime begin = SteadyTime::clock::now();
  Evaluator(nodes, rules, old != nullptr, errors, warnings)
      .Visit(nodes.root, true, object, old, history, Place());
  ObserveRuleEvaluation(SteadyTime::clock::now() - begin);
}

}  // namespace keelson::k8s
