// Kubernetes' functions of lists, and includes() of device selectors.
#include <array>

#include "lib/cel/library/library.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

Value NoOverload() { return Value::StaticError("no such overload"); }

Value IsSorted(Args args, Arena& arena) {
  const ListValue& list = args[0].list();
  for (size_t i = 1; i < list.Size(); ++i) {
    Ordering order = Compare(list.At(i - 1, arena), list.At(i, arena));
    if (order == Ordering::kIncomparable) return NoOverload();
    if (order == Ordering::kGreater) return Value::Bool(false);
  }
  return Value::Bool(true);
}

template <Ordering kReplaces>
Value Extreme(Args args, Arena& arena) {
  const ListValue& list = args[0].list();
  if (list.Size() == 0) {
    return Value::StaticError(kReplaces == Ordering::kGreater ? "min called on empty list"
                                                              : "max called on empty list");
  }
  Value best = list.At(0, arena);
  for (size_t i = 1; i < list.Size(); ++i) {
    Value next = list.At(i, arena);
    if (next.IsError()) return next;
    Ordering order = Compare(best, next);
    if (order == Ordering::kIncomparable) return NoOverload();
    if (order == kReplaces) best = next;
  }
  return best;
}

// The sum by the operator of the standard library, which knows overflows.
template <Value (*kZero)()>
Value Sum(Args args, Arena& arena) {
  static const Implementation add = [] {
    for (const FunctionRow& row : StandardOperators()) {
      if (row.overload == "add_int64") return row.call;
    }
    return Implementation(nullptr);
  }();
  const ListValue& list = args[0].list();
  Value sum = kZero();
  for (size_t i = 0; i < list.Size(); ++i) {
    Value next = list.At(i, arena);
    if (next.IsError()) return next;
    const std::array<Value, 2> both{sum, next};
    sum = add(both, arena);
    if (sum.IsError()) return sum;
  }
  return sum;
}

Value ZeroInt() { return Value::Int(0); }
Value ZeroUint() { return Value::Uint(0); }
Value ZeroDouble() { return Value::Double(0); }
Value ZeroDuration() { return Value::Duration(0); }

Value ListIndexOf(Args args, Arena& arena) {
  const ListValue& list = args[0].list();
  for (size_t i = 0; i < list.Size(); ++i) {
    if (Equals(list.At(i, arena), args[1], arena)) return Value::Int(static_cast<int64_t>(i));
  }
  return Value::Int(-1);
}

Value ListLastIndexOf(Args args, Arena& arena) {
  const ListValue& list = args[0].list();
  for (size_t i = list.Size(); i-- > 0;) {
    if (Equals(list.At(i, arena), args[1], arena)) return Value::Int(static_cast<int64_t>(i));
  }
  return Value::Int(-1);
}

Value Includes(Args args, Arena& arena) {
  if (!args[0].Is(ValueKind::kList)) return Value::Bool(Equals(args[0], args[1], arena));
  return Value::Bool(ListIndexOf(args, arena).as_int() >= 0);
}

constexpr CostRule kTraverse = CostRule::kTraverseList;
constexpr Implementation kMin = Extreme<Ordering::kGreater>, kMax = Extreme<Ordering::kLess>;

#define KEELSON_CEL_LIST(TYPE)                                                                        \
  {"isSorted", "list_" TYPE "_is_sorted_bool", "list<" TYPE ">", "", "bool", 0, IsSorted, kTraverse}, \
      {"min", "list_" TYPE "_min_" TYPE, "list<" TYPE ">", "", TYPE, 0, kMin, kTraverse}, {           \
    "max", "list_" TYPE "_max_" TYPE, "list<" TYPE ">", "", TYPE, 0, kMax, kTraverse                  \
  }

const FunctionRow kKubernetesListRows[] = {
    KEELSON_CEL_LIST("int"),
    KEELSON_CEL_LIST("uint"),
    KEELSON_CEL_LIST("double"),
    KEELSON_CEL_LIST("bool"),
    KEELSON_CEL_LIST("duration"),
    KEELSON_CEL_LIST("timestamp"),
    KEELSON_CEL_LIST("string"),
    KEELSON_CEL_LIST("bytes"),
    {"sum", "list_int_sum_int", "list<int>", "", "int", 0, Sum<ZeroInt>, kTraverse},
    {"sum", "list_uint_sum_uint", "list<uint>", "", "uint", 0, Sum<ZeroUint>, kTraverse},
    {"sum", "list_double_sum_double", "list<double>", "", "double", 0, Sum<ZeroDouble>, kTraverse},
    {"sum", "list_duration_sum_duration", "list<duration>", "", "duration", 0, Sum<ZeroDuration>, kTraverse},
    {"indexOf", "list_a_index_of_int", "list<A>", "A", "int", 0, ListIndexOf, kTraverse},
    {"lastIndexOf", "list_a_last_index_of_int", "list<A>", "A", "int", 0, ListLastIndexOf, kTraverse},
};

const FunctionRow kDeviceRows[] = {
    {"includes", "dra_includes_dyn_dyn", "dyn", "dyn", "bool", 36, Includes},
};

}  // namespace

std::span<const FunctionRow> KubernetesListFunctions() { return kKubernetesListRows; }
std::span<const FunctionRow> DeviceFunctions() { return kDeviceRows; }

}  // namespace keelson::cel
