#include "lib/cel/program.h"

#include <array>

#include <fmt/format.h>

#include "lib/cel/env.h"
#include "lib/cel/env_parts.h"

namespace keelson::cel {
namespace {

constexpr size_t kFewSlots = 8;
// The value of an unset variable, until an error message names it.
constexpr std::string_view kUnset = "no such attribute(s)";

}  // namespace

Activation::Activation(const Env& env)
    : env_(env), values_(env.variable_count(), Value::StaticError(kUnset)) {}

void Activation::Set(int index, Value value) { values_[static_cast<size_t>(index)] = value; }

void Activation::Set(std::string_view name, Value value) {
  int index = env_.VariableIndex(name);
  if (index < 0) std::abort();
  Set(index, value);
}

Program::Program(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Program::~Program() = default;

Result<Value> Program::Evaluate(const Activation& activation, Arena& arena, const RunLimits& limits,
                                uint64_t* cost) const {
  std::array<Value, kFewSlots> few;
  std::vector<Value> many;
  std::span<Value> locals(few);
  if (parts_->slots > kFewSlots) {
    many.resize(parts_->slots);
    locals = many;
  }
  Frame frame{arena, activation.values_, locals, limits.cost, limits.deadline};
  Value value = parts_->root->Eval(frame);
  if (cost) *cost = frame.cost;
  if (frame.stopped) return Error(Code::kInvalid, std::string(frame.reason));
  if (!value.IsError()) return value;
  if (value.text().data() == kUnset.data()) {
    for (size_t i = 0; i < activation.values_.size(); ++i) {
      if (parts_->uses[i] && activation.values_[i].IsError()) {
        return Error(Code::kInvalid, fmt::format("{}: {}", kUnset, parts_->env->variable_name(i)));
      }
    }
  }
  return Error(Code::kInvalid, std::string(value.text()));
}

Result<Value> Program::Evaluate(const Activation& activation, Arena& arena, Budget& budget,
                                const RunLimits& limits) const {
  if (budget.exceeded()) return Error(Code::kInvalid, std::string(kCostExceeded));
  uint64_t cost = 0;
  auto value = Evaluate(activation, arena, limits, &cost);
  budget.Spend(cost);
  return value;
}

Type Program::result_type() const { return parts_->result_type; }
const CostEstimate& Program::estimate() const { return parts_->estimate; }
const std::string& Program::expression() const { return parts_->expression; }

bool Program::Uses(std::string_view variable) const {
  int index = parts_->env->VariableIndex(variable);
  return index >= 0 && parts_->uses[static_cast<size_t>(index)];
}

}  // namespace keelson::cel
