// Optional values, and the insertion that two-variable comprehensions stand on.
#include "lib/cel/library/library.h"
#include "lib/cel/values/containers.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

Value Of(Args args, Arena& arena) { return Value::Some(args[0], arena); }
Value OfNonZero(Args args, Arena& arena) {
  return IsZero(args[0]) ? Value::None() : Value::Some(args[0], arena);
}
Value None(Args, Arena&) { return Value::None(); }

Value Get(Args args, Arena&) {
  return args[0].has_value() ? args[0].inner() : Value::StaticError("optional.none() dereference");
}

Value HasValue(Args args, Arena&) { return Value::Bool(args[0].has_value()); }

Value First(Args args, Arena& arena) {
  const ListValue& list = args[0].list();
  return list.Size() == 0 ? Value::None() : Value::Some(list.At(0, arena), arena);
}

Value Last(Args args, Arena& arena) {
  const ListValue& list = args[0].list();
  return list.Size() == 0 ? Value::None() : Value::Some(list.At(list.Size() - 1, arena), arena);
}

Value Unwrap(Args args, Arena& arena) {
  const ListValue& list = args[0].list();
  std::vector<Value> present;
  for (size_t i = 0; i < list.Size(); ++i) {
    Value item = list.At(i, arena);
    if (!item.Is(ValueKind::kOptional)) return Value::StaticError("no such overload");
    if (item.has_value()) present.push_back(item.inner());
  }
  return MakeList(present, arena);
}

const FunctionRow kOptionalRows[] = {
    {"optional.of", "optional_of", "", "V", "optional<V>", 28, Of},
    {"optional.ofNonZeroValue", "optional_ofNonZeroValue", "", "V", "optional<V>", 28, OfNonZero},
    {"optional.none", "optional_none", "", "", "optional<V>", 28, None},
    {"value", "optional_value", "optional<V>", "", "V", 28, Get},
    {"hasValue", "optional_hasValue", "optional<V>", "", "bool", 28, HasValue},
    {"or", "optional_or_optional", "optional<V>", "optional<V>", "optional<V>", 28, nullptr},
    {"orValue", "optional_orValue_value", "optional<V>", "V", "V", 28, nullptr},
    {"_?._", "select_optional_field", "", "dyn,string", "optional<V>", 28, nullptr},
    {"_[?_]", "list_optindex_optional_int", "", "list<V>,int", "optional<V>", 28, nullptr},
    {"_[?_]", "optional_list_optindex_optional_int", "", "optional<list<V>>,int", "optional<V>", 28, nullptr},
    {"_[?_]", "map_optindex_optional_value", "", "map<K,V>,K", "optional<V>", 28, nullptr},
    {"_[?_]", "optional_map_optindex_optional_value", "", "optional<map<K,V>>,K", "optional<V>", 28, nullptr},
    {"_[_]", "optional_list_index_int", "", "optional<list<V>>,int", "optional<V>", 28, nullptr},
    {"_[_]", "optional_map_index_value", "", "optional<map<K,V>>,K", "optional<V>", 28, nullptr},
    {"last", "list_last", "list<V>", "", "optional<V>", 28, Last},
    {"first", "list_first", "list<V>", "", "optional<V>", 28, First},
    {"optional.unwrap", "optional_unwrap", "", "list<optional<V>>", "list<V>", 28, Unwrap},
    {"unwrapOpt", "optional_unwrapOpt", "list<optional<V>>", "", "list<V>", 28, Unwrap},
};

const FunctionRow kMapInsertRows[] = {
    {"cel.@mapInsert", "@mapInsert_map_key_value", "", "map<K,V>,K,V", "map<K,V>", 32, nullptr},
    {"cel.@mapInsert", "@mapInsert_map_map", "", "map<K,V>,map<K,V>", "map<K,V>", 32, nullptr},
};

}  // namespace

std::span<const FunctionRow> OptionalFunctions() { return kOptionalRows; }
std::span<const FunctionRow> MapInsertFunctions() { return kMapInsertRows; }

}  // namespace keelson::cel
