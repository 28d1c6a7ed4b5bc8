#include "controlplane/apiserver/admission/expressions/evaluation.h"

#include <fmt/format.h>

#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

using k8s::CompiledExpression;
using k8s::CompiledVariable;

constexpr char kOutOfBudget[] =
    "validation failed due to running out of cost budget, no further validation rules will be run";

}  // namespace

// The map `variables`.
class Evaluation::Variables : public cel::MapValue {
 public:
  Variables(Evaluation& evaluation, const std::vector<CompiledVariable>& all)
      : evaluation_(evaluation), all_(all), known_(all.size()) {}

  size_t Size() const override { return all_.size(); }
  bool Find(const cel::Value& key, cel::Value& out, cel::Arena&) const override {
    if (!key.Is(cel::ValueKind::kString)) return false;
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].name != key.text()) continue;
      out = Get(i);
      return true;
    }
    return false;
  }
  cel::Value KeyAt(size_t index, cel::Arena&) const override { return cel::Value::String(all_[index].name); }
  cel::Value ValueAt(size_t index, cel::Arena&) const override { return Get(index); }

 private:
  struct Slot {
    bool begun = false;
    cel::Value value;
  };

  cel::Value Get(size_t index) const {
    Slot& slot = known_[index];
    if (slot.begun) return slot.value;
    slot.begun = true;
    // What an expression gets that reaches itself through dyn().
    slot.value = Fail(index, "evaluate", "it depends on itself");
    const CompiledExpression& expression = all_[index].expression;
    if (!expression.program) return slot.value = Fail(index, "compile", expression.error);
    uint64_t cost = 0;
    const auto value = evaluation_.Run(expression, cost);
    evaluation_.of_variables_ += cost;
    slot.value = value ? *value : Fail(index, "evaluate", value.error().message());
    return slot.value;
  }

  cel::Value Fail(size_t index, std::string_view what, std::string_view why) const {
    return cel::Value::Error(
        fmt::format("composited variable {} fails to {}: {}", k8s::Quote(all_[index].name), what, why),
        evaluation_.arena_);
  }

  Evaluation& evaluation_;
  const std::vector<CompiledVariable>& all_;
  mutable std::vector<Slot> known_;
};

Evaluation::Evaluation(const ExpressionInput& input, const EvaluationOptions& options)
    : input_(input), options_(options), left_(options.budget) {
  object_ = input.Object(arena_);
  old_object_ = input.OldObject(arena_);
  request_ = input.Request(arena_);
  if (options.ns) ns_ = input.Namespace(arena_);
  if (options.params) params_ = options.params->Value(arena_);
  if (options.authorizer) {
    authorizer_ = input.Authorizer(arena_);
    request_resource_ = input.RequestResource(arena_);
  }
  if (options.variables) variables_ = arena_.New<Variables>(*this, *options.variables);
}

Evaluation::~Evaluation() = default;

cel::Activation Evaluation::Bind(const k8s::ExpressionEnv& env) {
  cel::Activation out(*env.env);
  out.Set(env.object, object_);
  out.Set(env.old_object, old_object_);
  out.Set(env.request, request_);
  out.Set(env.ns, ns_);
  if (env.params >= 0) out.Set(env.params, params_);
  if (env.authorizer >= 0 && options_.authorizer) {
    out.Set(env.authorizer, authorizer_);
    out.Set(env.request_resource, request_resource_);
  }
  if (env.variables >= 0 && variables_) out.Set(env.variables, cel::Value::Map(variables_));
  return out;
}

Result<cel::Value> Evaluation::Run(const CompiledExpression& expression, uint64_t& cost) {
  cel::RunLimits limits;
  limits.deadline = input_.request().deadline;
  return expression.program->Evaluate(Bind(expression.env), arena_, limits, &cost);
}

bool Evaluation::Spend(uint64_t cost) {
  exhausted_ = exhausted_ || cost > left_;
  left_ = exhausted_ ? 0 : left_ - cost;
  return !exhausted_;
}

Result<cel::Value> Evaluation::Evaluate(const CompiledExpression& expression) {
  if (exhausted_) return Error(Code::kInvalid, kOutOfBudget);
  if (!expression.program) {
    return Error(Code::kInvalid, fmt::format("compilation error: {}", expression.error));
  }
  of_variables_ = 0;
  uint64_t cost = 0;
  auto value = Run(expression, cost);
  if (!Spend(of_variables_) || !Spend(cost)) return Error(Code::kInvalid, kOutOfBudget);
  if (value) return value;
  return Error(Code::kInvalid, fmt::format("expression '{}' resulted in error: {}", expression.text,
                                           value.error().message()));
}

}  // namespace keelson::apiserver
