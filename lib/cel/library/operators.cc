// Operators, and functions that look like some.
#include <cmath>

#include "lib/cel/library/library.h"
#include "lib/cel/syntax/ast.h"
#include "lib/cel/values/containers.h"
#include "lib/cel/values/default_map.h"
#include "lib/cel/values/time.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

// Durations are integers: upstream has no word of their own for them.
constexpr std::string_view kIntOverflow = "integer overflow", kUintOverflow = "unsigned integer overflow",
                           kTimestampOverflow = "timestamp overflow";

Value NoOverload() { return Value::StaticError("no such overload"); }

// When the left side knows no such operation at all.
Value NoOperation(std::string_view function, Arena& arena) {
  return Value::Error("no such overload: " + std::string(function), arena);
}

Value CheckedTime(const Timestamp& time, int64_t nanos) {
  auto sum = AddNanos(time, nanos);
  return sum ? Value::Time(*sum) : Value::StaticError(kTimestampOverflow);
}

Value Join(const Value& a, const Value& b, Arena& arena) {
  std::string joined;
  joined.reserve(a.text().size() + b.text().size());
  joined.append(a.text()).append(b.text());
  std::string_view kept = arena.Copy(joined);
  return a.Is(ValueKind::kString) ? Value::String(kept) : Value::Bytes(kept);
}

Value Add(Args args, Arena& arena) {
  const Value &a = args[0], &b = args[1];
  if (a.Is(ValueKind::kTimestamp) && b.Is(ValueKind::kDuration)) return CheckedTime(a.time(), b.nanos());
  if (a.Is(ValueKind::kDuration) && b.Is(ValueKind::kTimestamp)) return CheckedTime(b.time(), a.nanos());
  if (a.kind() != b.kind()) {
    bool adds = a.Is(ValueKind::kInt) || a.Is(ValueKind::kUint) || a.Is(ValueKind::kDouble) ||
                a.Is(ValueKind::kString) || a.Is(ValueKind::kBytes) || a.Is(ValueKind::kList) ||
                a.Is(ValueKind::kDuration) || a.Is(ValueKind::kTimestamp);
    return adds ? NoOverload() : NoOperation(operators::kAdd, arena);
  }
  switch (a.kind()) {
    case ValueKind::kInt: {
      int64_t sum;
      return __builtin_add_overflow(a.as_int(), b.as_int(), &sum) ? Value::StaticError(kIntOverflow)
                                                                  : Value::Int(sum);
    }
    case ValueKind::kUint: {
      uint64_t sum;
      return __builtin_add_overflow(a.as_uint(), b.as_uint(), &sum) ? Value::StaticError(kUintOverflow)
                                                                    : Value::Uint(sum);
    }
    case ValueKind::kDouble:
      return Value::Double(a.as_double() + b.as_double());
    case ValueKind::kString:
    case ValueKind::kBytes:
      return Join(a, b, arena);
    case ValueKind::kList:
      return Concatenate(a, b, arena);
    case ValueKind::kDuration: {
      int64_t sum;
      return __builtin_add_overflow(a.nanos(), b.nanos(), &sum) ? Value::StaticError(kIntOverflow)
                                                                : Value::Duration(sum);
    }
    case ValueKind::kTimestamp:
      return NoOverload();
    default:
      return NoOperation(operators::kAdd, arena);
  }
}

Value Subtract(Args args, Arena& arena) {
  const Value &a = args[0], &b = args[1];
  if (a.Is(ValueKind::kTimestamp) && b.Is(ValueKind::kDuration)) {
    return b.nanos() == INT64_MIN ? Value::StaticError(kIntOverflow) : CheckedTime(a.time(), -b.nanos());
  }
  if (a.Is(ValueKind::kTimestamp) && b.Is(ValueKind::kTimestamp)) {
    auto between = NanosBetween(a.time(), b.time());
    return between ? Value::Duration(*between) : Value::StaticError(kIntOverflow);
  }
  bool subtracts = a.Is(ValueKind::kInt) || a.Is(ValueKind::kUint) || a.Is(ValueKind::kDouble) ||
                   a.Is(ValueKind::kDuration) || a.Is(ValueKind::kTimestamp);
  if (!subtracts) return NoOperation(operators::kSubtract, arena);
  if (a.kind() != b.kind()) return NoOverload();
  int64_t difference;
  uint64_t natural;
  switch (a.kind()) {
    case ValueKind::kInt:
      return __builtin_sub_overflow(a.as_int(), b.as_int(), &difference) ? Value::StaticError(kIntOverflow)
                                                                         : Value::Int(difference);
    case ValueKind::kUint:
      return __builtin_sub_overflow(a.as_uint(), b.as_uint(), &natural) ? Value::StaticError(kUintOverflow)
                                                                        : Value::Uint(natural);
    case ValueKind::kDuration:
      return __builtin_sub_overflow(a.nanos(), b.nanos(), &difference) ? Value::StaticError(kIntOverflow)
                                                                       : Value::Duration(difference);
    default:
      return Value::Double(a.as_double() - b.as_double());
  }
}

bool IsNumber(const Value& value) {
  return value.Is(ValueKind::kInt) || value.Is(ValueKind::kUint) || value.Is(ValueKind::kDouble);
}

Value Multiply(Args args, Arena& arena) {
  const Value &a = args[0], &b = args[1];
  if (!IsNumber(a)) return NoOperation(operators::kMultiply, arena);
  if (a.kind() != b.kind()) return NoOverload();
  int64_t product;
  uint64_t natural;
  if (a.Is(ValueKind::kInt)) {
    return __builtin_mul_overflow(a.as_int(), b.as_int(), &product) ? Value::StaticError(kIntOverflow)
                                                                    : Value::Int(product);
  }
  if (a.Is(ValueKind::kUint)) {
    return __builtin_mul_overflow(a.as_uint(), b.as_uint(), &natural) ? Value::StaticError(kUintOverflow)
                                                                      : Value::Uint(natural);
  }
  return Value::Double(a.as_double() * b.as_double());
}

Value Divide(Args args, Arena& arena) {
  const Value &a = args[0], &b = args[1];
  if (!IsNumber(a)) return NoOperation(operators::kDivide, arena);
  if (a.kind() != b.kind()) return NoOverload();
  if (a.Is(ValueKind::kDouble)) return Value::Double(a.as_double() / b.as_double());
  if (b.as_int() == 0) return Value::StaticError("division by zero");
  if (a.Is(ValueKind::kUint)) return Value::Uint(a.as_uint() / b.as_uint());
  if (a.as_int() == INT64_MIN && b.as_int() == -1) return Value::StaticError(kIntOverflow);
  return Value::Int(a.as_int() / b.as_int());
}

Value Modulo(Args args, Arena& arena) {
  const Value &a = args[0], &b = args[1];
  if (!a.Is(ValueKind::kInt) && !a.Is(ValueKind::kUint)) return NoOperation(operators::kModulo, arena);
  if (a.kind() != b.kind()) return NoOverload();
  if (b.as_int() == 0) return Value::StaticError("modulus by zero");
  if (a.Is(ValueKind::kUint)) return Value::Uint(a.as_uint() % b.as_uint());
  if (a.as_int() == INT64_MIN && b.as_int() == -1) return Value::StaticError(kIntOverflow);
  return Value::Int(a.as_int() % b.as_int());
}

Value Negate(Args args, Arena& arena) {
  const Value& a = args[0];
  if (a.Is(ValueKind::kDouble)) return Value::Double(-a.as_double());
  if (a.Is(ValueKind::kInt)) {
    return a.as_int() == INT64_MIN ? Value::StaticError(kIntOverflow) : Value::Int(-a.as_int());
  }
  return NoOperation(operators::kNegate, arena);
}

template <bool kLess, bool kOrEqual>
Value CompareBy(Args args, Arena&) {
  switch (Compare(args[0], args[1])) {
    case Ordering::kLess:
      return Value::Bool(kLess);
    case Ordering::kGreater:
      return Value::Bool(!kLess);
    case Ordering::kEqual:
      return Value::Bool(kOrEqual);
    case Ordering::kUnordered:
      return Value::StaticError("NaN values cannot be ordered");
    case Ordering::kIncomparable:
      break;
  }
  return NoOverload();
}

constexpr Implementation kLess = CompareBy<true, false>, kLessEquals = CompareBy<true, true>,
                         kGreater = CompareBy<false, false>, kGreaterEquals = CompareBy<false, true>;

Value Equal(Args args, Arena& arena) { return Value::Bool(Equals(args[0], args[1], arena)); }
Value NotEqual(Args args, Arena& arena) { return Value::Bool(!Equals(args[0], args[1], arena)); }

Value Not(Args args, Arena& arena) {
  return args[0].Is(ValueKind::kBool) ? Value::Bool(!args[0].as_bool()) : NoOperation(operators::kNot, arena);
}

Value In(Args args, Arena& arena) {
  const Value& container = args[1];
  if (container.Is(ValueKind::kMap)) {
    if (const auto* map = dynamic_cast<const DefaultMap*>(&container.map())) {
      return Value::Bool(map->Contains(args[0], arena));
    }
    Value found;
    return Value::Bool(container.map().Find(args[0], found, arena));
  }
  if (!container.Is(ValueKind::kList)) return NoOperation(operators::kIn, arena);
  for (size_t i = 0; i < container.list().Size(); ++i) {
    Value item = container.list().At(i, arena);
    if (item.IsError()) return item;
    if (Equals(item, args[0], arena)) return Value::Bool(true);
  }
  return Value::Bool(false);
}

constexpr CostRule kTexts = CostRule::kCompareTexts;

#define KEELSON_CEL_ORDER(NAME, WORD, CALL)                                                          \
  {NAME, WORD "_bool", "", "bool,bool", "bool", 0, CALL, CostRule::kOne, true},                      \
      {NAME, WORD "_int64", "", "int,int", "bool", 0, CALL, CostRule::kOne, true},                   \
      {NAME, WORD "_int64_double", "", "int,double", "bool", 28, CALL, CostRule::kOne, true},        \
      {NAME, WORD "_int64_uint64", "", "int,uint", "bool", 28, CALL, CostRule::kOne, true},          \
      {NAME, WORD "_uint64", "", "uint,uint", "bool", 0, CALL, CostRule::kOne, true},                \
      {NAME, WORD "_uint64_double", "", "uint,double", "bool", 28, CALL, CostRule::kOne, true},      \
      {NAME, WORD "_uint64_int64", "", "uint,int", "bool", 28, CALL, CostRule::kOne, true},          \
      {NAME, WORD "_double", "", "double,double", "bool", 0, CALL, CostRule::kOne, true},            \
      {NAME, WORD "_double_int64", "", "double,int", "bool", 28, CALL, CostRule::kOne, true},        \
      {NAME, WORD "_double_uint64", "", "double,uint", "bool", 28, CALL, CostRule::kOne, true},      \
      {NAME, WORD "_string", "", "string,string", "bool", 0, CALL, kTexts, true},                    \
      {NAME, WORD "_bytes", "", "bytes,bytes", "bool", 0, CALL, kTexts, true},                       \
      {NAME, WORD "_timestamp", "", "timestamp,timestamp", "bool", 0, CALL, CostRule::kOne, true}, { \
    NAME, WORD "_duration", "", "duration,duration", "bool", 0, CALL, CostRule::kOne, true           \
  }

const FunctionRow kRows[] = {
    {"_?_:_", "conditional", "", "bool,A,A", "A", 0, nullptr, CostRule::kConditional},
    {"_&&_", "logical_and", "", "bool,bool", "bool", 0, nullptr, CostRule::kLogical},
    {"_||_", "logical_or", "", "bool,bool", "bool", 0, nullptr, CostRule::kLogical},
    {"!_", "logical_not", "", "bool", "bool", 0, Not, CostRule::kOne, true},
    {"@not_strictly_false", "not_strictly_false", "", "bool", "bool", 0, nullptr},
    {"_==_", "equals", "", "A,A", "bool", 0, Equal, CostRule::kEqual, true},
    {"_!=_", "not_equals", "", "A,A", "bool", 0, NotEqual, CostRule::kEqual, true},
    {"_+_", "add_bytes", "", "bytes,bytes", "bytes", 0, Add, CostRule::kConcatTexts, true},
    {"_+_", "add_double", "", "double,double", "double", 0, Add, CostRule::kOne, true},
    {"_+_", "add_duration_duration", "", "duration,duration", "duration", 0, Add, CostRule::kOne, true},
    {"_+_", "add_duration_timestamp", "", "duration,timestamp", "timestamp", 0, Add, CostRule::kOne, true},
    {"_+_", "add_timestamp_duration", "", "timestamp,duration", "timestamp", 0, Add, CostRule::kOne, true},
    {"_+_", "add_int64", "", "int,int", "int", 0, Add, CostRule::kOne, true},
    {"_+_", "add_list", "", "list<A>,list<A>", "list<A>", 0, Add, CostRule::kConcatLists, true},
    {"_+_", "add_string", "", "string,string", "string", 0, Add, CostRule::kConcatTexts, true},
    {"_+_", "add_uint64", "", "uint,uint", "uint", 0, Add, CostRule::kOne, true},
    {"_/_", "divide_double", "", "double,double", "double", 0, Divide, CostRule::kOne, true},
    {"_/_", "divide_int64", "", "int,int", "int", 0, Divide, CostRule::kOne, true},
    {"_/_", "divide_uint64", "", "uint,uint", "uint", 0, Divide, CostRule::kOne, true},
    {"_%_", "modulo_int64", "", "int,int", "int", 0, Modulo, CostRule::kOne, true},
    {"_%_", "modulo_uint64", "", "uint,uint", "uint", 0, Modulo, CostRule::kOne, true},
    {"_*_", "multiply_double", "", "double,double", "double", 0, Multiply, CostRule::kOne, true},
    {"_*_", "multiply_int64", "", "int,int", "int", 0, Multiply, CostRule::kOne, true},
    {"_*_", "multiply_uint64", "", "uint,uint", "uint", 0, Multiply, CostRule::kOne, true},
    {"-_", "negate_double", "", "double", "double", 0, Negate, CostRule::kOne, true},
    {"-_", "negate_int64", "", "int", "int", 0, Negate, CostRule::kOne, true},
    {"_-_", "subtract_double", "", "double,double", "double", 0, Subtract, CostRule::kOne, true},
    {"_-_", "subtract_duration_duration", "", "duration,duration", "duration", 0, Subtract, CostRule::kOne,
     true},
    {"_-_", "subtract_int64", "", "int,int", "int", 0, Subtract, CostRule::kOne, true},
    {"_-_", "subtract_timestamp_duration", "", "timestamp,duration", "timestamp", 0, Subtract, CostRule::kOne,
     true},
    {"_-_", "subtract_timestamp_timestamp", "", "timestamp,timestamp", "duration", 0, Subtract,
     CostRule::kOne, true},
    {"_-_", "subtract_uint64", "", "uint,uint", "uint", 0, Subtract, CostRule::kOne, true},
    KEELSON_CEL_ORDER("_<_", "less", kLess),
    KEELSON_CEL_ORDER("_<=_", "less_equals", kLessEquals),
    KEELSON_CEL_ORDER("_>_", "greater", kGreater),
    KEELSON_CEL_ORDER("_>=_", "greater_equals", kGreaterEquals),
    {"_[_]", "index_list", "", "list<A>,int", "A", 0, nullptr},
    {"_[_]", "index_map", "", "map<A,B>,A", "B", 0, nullptr},
    {"@in", "in_list", "", "A,list<A>", "bool", 0, In, CostRule::kInList, true},
    {"@in", "in_map", "", "A,map<A,B>", "bool", 0, In, CostRule::kOne, true},
};

}  // namespace

std::span<const FunctionRow> StandardOperators() { return kRows; }

}  // namespace keelson::cel
