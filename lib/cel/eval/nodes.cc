#include "lib/cel/eval/nodes.h"

#include <array>

#include <fmt/format.h>

#include "lib/cel/eval/access.h"
#include "lib/cel/values/containers.h"

namespace keelson::cel {
namespace {

constexpr size_t kFewArguments = 8;

Value NoOverload() { return Value::StaticError("no such overload"); }

}  // namespace

Value SelectNode::Eval(Frame& frame) const {
  Value target = target_->Eval(frame);
  if (target.IsError()) return target;
  return frame.Charge(1) ? GetElement(target, key_, frame.arena) : frame.StopError();
}

Value HasNode::Eval(Frame& frame) const {
  Value target = target_->Eval(frame);
  return target.IsError() ? target : HasField(target, key_, frame.arena);
}

Value IndexNode::Eval(Frame& frame) const {
  Value target = target_->Eval(frame);
  if (target.IsError()) return target;
  Value key = key_->Eval(frame);
  if (key.IsError()) return key;
  if (!frame.Charge(1)) return frame.StopError();
  return optional_ ? GetOptional(target, key, frame.arena) : GetElement(target, key, frame.arena);
}

Value LogicalNode::Eval(Frame& frame) const {
  Value left = left_->Eval(frame);
  if (left.Is(ValueKind::kBool) && left.as_bool() == is_or_) return left;
  if (frame.stopped) return frame.StopError();
  Value right = right_->Eval(frame);
  if (frame.stopped) return frame.StopError();
  if (right.Is(ValueKind::kBool) && right.as_bool() == is_or_) return right;
  if (left.IsError()) return left;
  if (right.IsError()) return right;
  return left.Is(ValueKind::kBool) && right.Is(ValueKind::kBool) ? Value::Bool(!is_or_) : NoOverload();
}

Value ConditionalNode::Eval(Frame& frame) const {
  Value condition = condition_->Eval(frame);
  if (condition.IsError()) return condition;
  if (!condition.Is(ValueKind::kBool)) return NoOverload();
  return (condition.as_bool() ? then_ : otherwise_)->Eval(frame);
}

Value NotStrictlyFalseNode::Eval(Frame& frame) const {
  Value operand = operand_->Eval(frame);
  if (frame.stopped || !frame.Charge(1)) return frame.StopError();
  return Value::Bool(!operand.IsFalse());
}

Value OptionalOrNode::Eval(Frame& frame) const {
  Value optional = optional_->Eval(frame);
  if (optional.IsError()) return optional;
  if (!optional.Is(ValueKind::kOptional)) return NoOverload();
  if (optional.has_value()) return value_ ? optional.inner() : optional;
  Value other = other_->Eval(frame);
  if (!value_ && !other.IsError() && !other.Is(ValueKind::kOptional)) return NoOverload();
  return other;
}

CallNode::CallNode(const Function& function, std::vector<const Overload*> overloads,
                   std::vector<const Node*> args)
    : function_(function),
      overloads_(std::move(overloads)),
      args_(std::move(args)),
      cost_(overloads_[0]->row->cost) {
  if (overloads_[0]->row->dynamic) call_ = overloads_[0]->row->call;
  // A call whose overload shows only when it runs costs one, unless all agree.
  for (const Overload* overload : overloads_) {
    if (overload->row->cost != cost_) cost_ = CostRule::kOne;
  }
}

const Overload* CallNode::Choose(std::span<const Value> args) const {
  for (const Overload* overload : overloads_) {
    bool fits = true;
    for (size_t i = 0; i < args.size() && fits; ++i) fits = FitsAtRunTime(args[i], overload->args[i]);
    if (fits) return overload;
  }
  return nullptr;
}

Value CallNode::Eval(Frame& frame) const {
  std::array<Value, kFewArguments> values;
  for (size_t i = 0; i < args_.size(); ++i) {
    values[i] = args_[i]->Eval(frame);
    if (values[i].IsError()) return values[i];
  }
  std::span<const Value> args(values.data(), args_.size());
  const Overload* overload = call_ ? overloads_[0] : Choose(args);
  if (!overload) {
    return frame.Charge(1) ? NoSuchOverload(function_.name, args, frame.arena) : frame.StopError();
  }
  // What costs too much does not begin, unless only its result says what it costs.
  bool by_result = cost_ == CostRule::kListOfResult || cost_ == CostRule::kJoin;
  auto cost = [&](const Value& result) {
    return cost_ == CostRule::kOne ? 1 : RunCost(cost_, overload->row->overload, args, result, frame.arena);
  };
  if (!by_result && !frame.Charge(cost(Value()))) return frame.StopError();
  Value result = overload->row->call(args, frame.arena);
  if (by_result && !frame.Charge(cost(result))) return frame.StopError();
  return result;
}

Value MatchesNode::Eval(Frame& frame) const {
  Value text = text_->Eval(frame);
  if (text.IsError()) return text;
  Value args[] = {text, pattern_};
  if (!text.Is(ValueKind::kString)) return NoSuchOverload("matches", args, frame.arena);
  if (!frame.Charge(RunCost(CostRule::kMatches, {}, args, text, frame.arena))) return frame.StopError();
  return Value::Bool(RE2::PartialMatch(re2::StringPiece(text.text().data(), text.text().size()), *regex_));
}

namespace {

// The value to put into a container for `[?x]` or `{?k: x}`; false: leave it out. `value` may become an error.
bool Present(Value& value, bool optional, Frame& frame) {
  if (!optional) return true;
  if (!value.Is(ValueKind::kOptional)) {
    value = Value::Error(
        fmt::format("cannot initialize optional list element from non-optional value {}", ToText(value)),
        frame.arena);
    return true;
  }
  if (!value.has_value()) return false;
  value = value.inner();
  return true;
}

bool IsMarked(const std::vector<bool>& optional, size_t index) {
  return !optional.empty() && optional[index];
}

}  // namespace

Value ListNode::Eval(Frame& frame) const {
  std::vector<Value> items;
  items.reserve(elements_.nodes.size());
  for (size_t i = 0; i < elements_.nodes.size(); ++i) {
    Value item = elements_.nodes[i]->Eval(frame);
    if (item.IsError()) return item;
    if (!Present(item, IsMarked(elements_.optional, i), frame)) continue;
    if (item.IsError()) return item;
    items.push_back(item);
  }
  return frame.Charge(kListCost) ? MakeList(items, frame.arena) : frame.StopError();
}

Value MapNode::Eval(Frame& frame) const {
  auto* map = frame.arena.New<HashMap>();
  for (size_t i = 0; i < entries_.nodes.size(); i += 2) {
    Value key = entries_.nodes[i]->Eval(frame);
    if (key.IsError()) return key;
    Value value = entries_.nodes[i + 1]->Eval(frame);
    if (value.IsError()) return value;
    if (!Present(value, IsMarked(entries_.optional, i / 2), frame)) continue;
    if (value.IsError()) return value;
    if (!IsMapKey(key)) {
      return Value::Error(fmt::format("unsupported key type: {}", TypeName(key)), frame.arena);
    }
    if (!map->Insert(key, value)) {
      return Value::Error(fmt::format("Failed with repeated key: {}", ToText(key)), frame.arena);
    }
  }
  return frame.Charge(kMapCost) ? Value::Map(map) : frame.StopError();
}

Value StructNode::Eval(Frame& frame) const {
  auto* object = frame.arena.New<StructValue>(type_);
  for (size_t i = 0; i < fields_.nodes.size(); ++i) {
    Value value = fields_.nodes[i]->Eval(frame);
    if (value.IsError()) return value;
    if (!Present(value, IsMarked(fields_.optional, i), frame)) continue;
    if (value.IsError()) return value;
    object->Insert(Value::String(names_[i]), value);
  }
  return frame.Charge(kObjectCost) ? Value::Object(object) : frame.StopError();
}

}  // namespace keelson::cel
