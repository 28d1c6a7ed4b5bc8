// CEL rules of schemas: compiled, and held against the limits of their estimated costs.
#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "lib/base/text.h"
#include "lib/k8s/schema/rule_programs.h"
#include "lib/k8s/schema/structural_schema.h"
#include "lib/k8s/validation/extension/schema.h"
#include "lib/k8s/validation/parts.h"

namespace keelson::k8s {

namespace {

using Props = JsonSchema;

// Nothing: no limit above a part bounds how often it can occur.
using Cardinality = std::optional<uint64_t>;

uint64_t Multiply(uint64_t a, uint64_t b) {
  if (a == 0) return 0;
  return std::numeric_limits<uint64_t>::max() / a < b ? std::numeric_limits<uint64_t>::max() : a * b;
}

// How many parts there may be below one value of the schema.
Cardinality MostParts(const Props& schema) {
  const auto limit = [](bool set, int64_t value) -> Cardinality {
    if (!set) return std::nullopt;
    return static_cast<uint64_t>(std::max<int64_t>(value, 0));
  };
  if (schema.type() == "array") return limit(schema.has_max_items(), schema.max_items());
  if (schema.type() != "object" || !schema.has_additional_properties()) return 1;
  return limit(schema.has_max_properties(), schema.max_properties());
}

std::string OverBudget(std::string_view what, uint64_t cost, uint64_t limit) {
  const double factor = static_cast<double>(cost) / static_cast<double>(limit);
  const std::string times = factor > 100   ? "more than 100x"
                            : factor < 1.5 ? fmt::format("{:f}x", factor)
                                           : fmt::format("{:.1f}x", factor);
  return fmt::format(
      "{} exceeds budget by factor of {} (try simplifying the rule, or adding maxItems, maxProperties, and "
      "maxLength "
      "where arrays, maps, and strings are declared)",
      what, times);
}

// State that changes on the way down.
struct Scope {
  Cardinality cardinality = 1;
  std::string uncorrelatable;  // the list above whose items have no old values; empty: none
  bool is_object = false;
};

class RuleChecker {
 public:
  RuleChecker(const SchemaNodes& nodes, const StoredRules& stored, FieldErrors& errors)
      : nodes_(nodes), types_(nodes), stored_(stored), errors_(errors) {}

  void Check(const Props& schema, NodeIndex index, const Scope& scope, const Path& path) {
    const SchemaNode& node = nodes_.nodes[index];
    if (!node.Is(SchemaNode::kRulesBelow)) return;
    Scope below = scope;
    const Cardinality parts = MostParts(schema);
    below.cardinality =
        scope.cardinality && parts ? Cardinality(Multiply(*scope.cardinality, *parts)) : std::nullopt;
    const auto child = [&](const Props& part, NodeIndex at, const Path& place) {
      if (at == kNoNode) return;
      below.is_object = nodes_.nodes[at].Is(SchemaNode::kEmbedded);
      Check(part, at, below, place);
    };
    if (schema.additional_properties().has_schema()) {
      child(schema.additional_properties().schema(), node.additional, path.Child("additionalProperties"));
    }
    const Path properties = path.Child("properties");
    for (const std::string& name : SortedKeys(schema.properties())) {
      child(schema.properties().at(name), nodes_.Property(node, name), properties.Key(name));
    }
    if (schema.items().has_schema()) {
      if (schema.x_kubernetes_list_type() != "map" && below.uncorrelatable.empty()) {
        below.uncorrelatable = path.ToString();
      }
      child(schema.items().schema(), node.items, path.Child("items"));
    }
    CheckRules(schema, index, scope, path.Child("x-kubernetes-validations"));
  }

  void CheckTotal(const Path& path) {
    if (total_ <= cel::kEstimatedCostLimitOfSchema) return;
    std::stable_sort(expensive_.begin(), expensive_.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    constexpr size_t kShown = 4;
    for (size_t i = 0; i < std::min(kShown, expensive_.size()); ++i) {
      errors_.push_back(
          {FieldError::Type::kForbidden, expensive_[i].first, "",
           "contributed to estimated rule & messageExpression cost total exceeding cost limit for "
           "entire OpenAPIv3 schema"});
    }
    errors_.push_back(Forbidden(
        path, OverBudget("x-kubernetes-validations estimated rule & messageExpression cost total for entire "
                         "OpenAPIv3 schema",
                         total_, cel::kEstimatedCostLimitOfSchema)));
  }

 private:
  void CheckRules(const Props& schema, NodeIndex index, const Scope& scope, const Path& list) {
    if (schema.x_kubernetes_validations().empty()) return;
    const cel::DeclTypePtr self = types_.Get(index, scope.is_object);
    if (!self) {
      constexpr char kWhy[] =
          "internal error: failed to construct type information for x-kubernetes-validations rules: unable "
          "to convert "
          "structural schema to CEL declarations";
      errors_.push_back({FieldError::Type::kInternal, list.ToString(), "", kWhy});
      return;
    }
    for (int i = 0; i < schema.x_kubernetes_validations_size(); ++i) {
      const auto& rule = schema.x_kubernetes_validations(i);
      RuleText text;
      text.rule = rule.rule();
      text.message_expression = rule.message_expression();
      text.optional_old_self = rule.optional_old_self();
      text.stored_rule = stored_.expressions.count(rule.rule()) > 0;
      text.stored_message = stored_.expressions.count(rule.message_expression()) > 0;
      const RuleProgram program = CompileRule(self, text);
      const Path item = list.Index(i);
      CheckCosts(program, *self, scope, item);
      CheckProgram(program, rule, scope, item);
    }
  }

  void CheckCosts(const RuleProgram& program, const cel::DeclType& self, const Scope& scope,
                  const Path& item) {
    if (program.rule) {
      // Without a limit, as many values as fit into a request.
      const uint64_t most = scope.cardinality.value_or(
          static_cast<uint64_t>(cel::kMaxRequestBytes / (self.min_serialized_size() + 1)));
      Observe(Multiply(program.rule->estimate().max, most), "estimated rule cost", item.Child("rule"));
    }
    if (program.message) {
      Observe(program.message->estimate().max, "estimated messageExpression cost",
              item.Child("messageExpression"));
    }
  }

  void Observe(uint64_t cost, std::string_view what, const Path& path) {
    if (cost > cel::kEstimatedCostLimit && !stored_.unchanged) {
      errors_.push_back(Forbidden(path, OverBudget(what, cost, cel::kEstimatedCostLimit)));
    }
    total_ = std::numeric_limits<uint64_t>::max() - total_ < cost ? std::numeric_limits<uint64_t>::max()
                                                                  : total_ + cost;
    if (cost >= cel::kEstimatedCostLimitOfSchema / 100) expensive_.emplace_back(path.ToString(), cost);
  }

  void CheckProgram(const RuleProgram& program, const api::apiextensions::v1::ValidationRule& rule,
                    const Scope& scope, const Path& item) {
    const Path place = item.Child("rule");
    if (!program.error.empty()) errors_.push_back(InvalidInternal(place, rule, program.error));
    if (!program.message_error.empty()) {
      errors_.push_back(InvalidInternal(item.Child("messageExpression"), rule, program.message_error));
    }
    if (program.uses_old_self) {
      if (!scope.uncorrelatable.empty()) {
        errors_.push_back(
            Invalid(place, rule.rule(),
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within " +
                        scope.uncorrelatable));
      }
    } else if (rule.has_optional_old_self()) {
      errors_.push_back(InvalidBool(item.Child("optionalOldSelf"), rule.optional_old_self(),
                                    "may not be set if oldSelf is not used in rule"));
    }
  }

  const SchemaNodes& nodes_;
  DeclTypes types_;
  const StoredRules& stored_;
  FieldErrors& errors_;
  uint64_t total_ = 0;
  std::vector<std::pair<std::string, uint64_t>> expensive_;
};

}  // namespace

void CheckCelRules(const JsonSchema& schema, const StructuralSchema& compiled, const StoredRules& stored,
                   const Path& path, FieldErrors& errors) {
  if (!compiled.has_rules()) return;
  RuleChecker checker(compiled.nodes(), stored, errors);
  Scope scope;
  scope.is_object = true;
  checker.Check(schema, compiled.nodes().root, scope, path);
  checker.CheckTotal(path);
}

}  // namespace keelson::k8s
