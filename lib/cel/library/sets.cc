// Lists as sets.
#include "lib/cel/library/library.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

bool Holds(const ListValue& list, const Value& wanted, Arena& arena) {
  for (size_t i = 0; i < list.Size(); ++i) {
    if (Equals(list.At(i, arena), wanted, arena)) return true;
  }
  return false;
}

bool HoldsAll(const ListValue& list, const ListValue& wanted, Arena& arena) {
  for (size_t i = 0; i < wanted.Size(); ++i) {
    if (!Holds(list, wanted.At(i, arena), arena)) return false;
  }
  return true;
}

Value SetContains(Args args, Arena& arena) {
  return Value::Bool(HoldsAll(args[0].list(), args[1].list(), arena));
}

Value SetEquivalent(Args args, Arena& arena) {
  return Value::Bool(HoldsAll(args[0].list(), args[1].list(), arena) &&
                     HoldsAll(args[1].list(), args[0].list(), arena));
}

Value SetIntersects(Args args, Arena& arena) {
  const ListValue& wanted = args[1].list();
  for (size_t i = 0; i < wanted.Size(); ++i) {
    if (Holds(args[0].list(), wanted.At(i, arena), arena)) return Value::Bool(true);
  }
  return Value::Bool(false);
}

const FunctionRow kSetRows[] = {
    {"sets.contains", "list_sets_contains_list", "", "list<T>,list<T>", "bool", 29, SetContains,
     CostRule::kSetsContains},
    {"sets.equivalent", "list_sets_equivalent_list", "", "list<T>,list<T>", "bool", 29, SetEquivalent,
     CostRule::kSetsEquivalent},
    {"sets.intersects", "list_sets_intersects_list", "", "list<T>,list<T>", "bool", 29, SetIntersects,
     CostRule::kSetsContains},
};

}  // namespace

std::span<const FunctionRow> SetFunctions() { return kSetRows; }

}  // namespace keelson::cel
