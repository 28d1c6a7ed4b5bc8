#include "lib/cel/eval/fold.h"

#include <fmt/format.h>

#include "lib/cel/values/containers.h"

namespace keelson::cel {

bool FoldNode::Round(Frame& frame) const {
  if (++frame.iterations % kInterruptCheckIterations == 0 && frame.deadline != SteadyTime::max() &&
      std::chrono::steady_clock::now() > frame.deadline) {
    return frame.Stop(kInterrupted);
  }
  Value condition = plan_.condition->Eval(frame);
  if (frame.stopped || !condition.IsTrue()) return false;
  frame.locals[plan_.slot] = plan_.step->Eval(frame);
  return !frame.stopped;
}

Value FoldNode::Eval(Frame& frame) const {
  Value range = plan_.range->Eval(frame);
  if (range.IsError()) return range;
  Value init = plan_.init->Eval(frame);
  if (frame.stopped) return frame.StopError();
  frame.locals[plan_.slot] = init;
  Value &first = frame.locals[plan_.slot + 1],
        &second = frame.locals[plan_.slot + (plan_.two_variables ? 2 : 1)];
  if (range.Is(ValueKind::kList)) {
    const ListValue& list = range.list();
    for (size_t i = 0, size = list.Size(); i < size; ++i) {
      if (plan_.two_variables) first = Value::Int(static_cast<int64_t>(i));
      second = list.At(i, frame.arena);
      if (!Round(frame)) break;
    }
  } else if (range.Is(ValueKind::kMap) || range.Is(ValueKind::kObject)) {
    const MapValue& map = range.map();
    for (size_t i = 0, size = map.Size(); i < size; ++i) {
      first = map.KeyAt(i, frame.arena);
      if (plan_.two_variables) second = map.ValueAt(i, frame.arena);
      if (!Round(frame)) break;
    }
  } else {
    return Value::Error(fmt::format("got '{}', expected iterable type", TypeName(range)), frame.arena);
  }
  return frame.stopped ? frame.StopError() : plan_.result->Eval(frame);
}

Value FreshNode::Eval(Frame& frame) const {
  return map_ ? Value::Map(frame.arena.New<HashMap>()) : Value::List(frame.arena.New<GrowingList>());
}

Value AppendNode::Eval(Frame& frame) const {
  if (!frame.Charge(1)) return frame.StopError();
  Value list = frame.locals[slot_];
  if (list.IsError()) return list;
  Value element = element_->Eval(frame);
  if (element.IsError()) return element;
  if (!frame.Charge((literal_ ? 0 : kListCost) + 1)) return frame.StopError();
  const_cast<GrowingList&>(static_cast<const GrowingList&>(list.list())).Append(element);
  return list;
}

Value MapInsertNode::Eval(Frame& frame) const {
  if (!frame.Charge(1)) return frame.StopError();
  Value map = frame.locals[slot_];
  if (map.IsError()) return map;
  Value key = key_ ? key_->Eval(frame) : Value();
  if (key.IsError()) return key;
  Value value = value_->Eval(frame);
  if (value.IsError()) return value;
  if (!frame.Charge(1)) return frame.StopError();
  auto& target = const_cast<HashMap&>(static_cast<const HashMap&>(map.map()));
  auto insert = [&](const Value& k, const Value& v) {
    if (!IsMapKey(k)) return Value::Error(fmt::format("unsupported key type: {}", TypeName(k)), frame.arena);
    return target.Insert(k, v)
               ? Value()
               : Value::Error(fmt::format("insert failed: key {} already exists", ToText(k)), frame.arena);
  };
  if (key_) {
    Value error = insert(key, value);
    return error.IsError() ? error : map;
  }
  if (!value.Is(ValueKind::kMap)) return Value::StaticError("no such overload");
  for (size_t i = 0; i < value.map().Size(); ++i) {
    Value error = insert(value.map().KeyAt(i, frame.arena), value.map().ValueAt(i, frame.arena));
    if (error.IsError()) return error;
  }
  return map;
}

}  // namespace keelson::cel
