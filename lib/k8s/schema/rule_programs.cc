#include "lib/k8s/schema/rule_programs.h"

#include "lib/base/clock.h"
#include "lib/base/text.h"
#include "lib/k8s/schema/rule_metrics.h"

namespace keelson::k8s {

namespace {

class Collector {
 public:
  explicit Collector(const SchemaNodes& nodes) : nodes_(nodes), types_(nodes) {}

  void Collect(NodeIndex index, bool is_object) {
    const SchemaNode& node = nodes_.nodes[index];
    if (!node.Is(SchemaNode::kRulesBelow)) return;
    const cel::DeclTypePtr self = types_.Get(index, is_object);
    // Expressions see nothing of a part without a type, nor of what is below.
    if (!self) return;
    auto [it, added] = rules.nodes.try_emplace({index, is_object});
    if (!added) return;
    it->second.self = self;
    for (uint32_t i = 0; i < node.rules.size; ++i) {
      Add(index, nodes_.rules[node.rules.begin + i], it->second);
    }
    const auto below = [&](NodeIndex child) {
      if (child != kNoNode) Collect(child, nodes_.nodes[child].Is(SchemaNode::kEmbedded));
    };
    below(node.items);
    below(node.additional);
    for (uint32_t i = 0; i < node.properties.size; ++i) {
      below(nodes_.properties[node.properties.begin + i].node);
    }
  }

  CompiledRules rules;

 private:
  void Add(NodeIndex index, const SchemaRule& rule, NodeRules& out) {
    RuleText text;
    text.rule = nodes_.Text(rule.rule);
    text.message_expression = nodes_.Text(rule.message_expression);
    text.optional_old_self = rule.optional_old_self;
    out.programs.push_back(CompileRule(out.self, text));
    const std::string_view path = nodes_.Text(rule.field_path);
    out.places.push_back(path.empty() ? "" : ResolveFieldPath(nodes_, index, path).value_or(""));
  }

  const SchemaNodes& nodes_;
  DeclTypes types_;
};

RuleProgram Compile(const cel::DeclTypePtr& self, const RuleText& text) {
  RuleProgram out;
  out.env = RuleEnvironment(self, text.optional_old_self, text.stored_rule);
  auto rule = out.env->Compile(text.rule);
  if (!rule) {
    out.error = "compilation failed: " + rule.error().message();
    return out;
  }
  if ((*rule)->result_type()->kind != cel::TypeKind::kBool) {
    out.error = "cel expression must evaluate to a bool";
    return out;
  }
  out.uses_old_self = (*rule)->Uses("oldSelf");
  out.rule = std::move(*rule);
  if (text.message_expression.empty()) return out;
  out.message_env = text.stored_message == text.stored_rule
                        ? out.env
                        : RuleEnvironment(self, text.optional_old_self, text.stored_message);
  auto message = out.message_env->Compile(text.message_expression);
  if (!message) {
    out.message_error = "messageExpression compilation failed: " + message.error().message();
  } else if ((*message)->result_type()->kind != cel::TypeKind::kString) {
    out.message_error = "messageExpression must evaluate to a string";
  } else {
    out.message = std::move(*message);
  }
  return out;
}

}  // namespace

RuleProgram CompileRule(const cel::DeclTypePtr& self, const RuleText& text) {
  if (Trim(text.rule).empty()) return {};
  const SteadyTime begin = SteadyTime::clock::now();
  RuleProgram out = Compile(self, text);
  ObserveRuleCompilation(SteadyTime::clock::now() - begin);
  return out;
}

CompiledRules CompileRules(const SchemaNodes& nodes) {
  Collector collector(nodes);
  collector.Collect(nodes.root, true);
  return std::move(collector.rules);
}

}  // namespace keelson::k8s
