// resource.Quantity.
#include "lib/api/quantity.h"

#include "lib/cel/library/kubernetes_values.h"
#include "lib/cel/library/library.h"
#include "lib/cel/library/opaque.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;
using api::Amount;
using QuantityValue = OpaqueOf<Amount, types::kQuantity>;

const Amount& AmountOf(const Value& value) { return static_cast<const QuantityValue&>(value.opaque()).value; }
Value Wrap(Amount amount, Arena& arena) { return Value::Opaque(arena.New<QuantityValue>(amount)); }

int Sign(std::strong_ordering order) { return order < 0 ? -1 : order > 0 ? 1 : 0; }

Value ToQuantity(Args args, Arena& arena) {
  auto amount = Amount::Parse(args[0].text());
  return amount ? Wrap(*amount, arena) : Value::Error(amount.error().message(), arena);
}

Value IsQuantity(Args args, Arena&) { return Value::Bool(Amount::Parse(args[0].text()).has_value()); }
Value QuantitySign(Args args, Arena&) { return Value::Int(Sign(AmountOf(args[0]) <=> Amount())); }
Value IsGreater(Args args, Arena&) { return Value::Bool(AmountOf(args[0]) > AmountOf(args[1])); }
Value IsLess(Args args, Arena&) { return Value::Bool(AmountOf(args[0]) < AmountOf(args[1])); }
Value CompareTo(Args args, Arena&) { return Value::Int(Sign(AmountOf(args[0]) <=> AmountOf(args[1]))); }
Value AsFloat(Args args, Arena&) { return Value::Double(AmountOf(args[0]).ToDouble()); }

bool IsWhole(const Amount& amount) { return Amount::FromInt(amount.Value()) == amount; }

Value AsInteger(Args args, Arena&) {
  const Amount& amount = AmountOf(args[0]);
  return IsWhole(amount) ? Value::Int(amount.Value()) : Value::StaticError("cannot convert value to integer");
}

Value IsInteger(Args args, Arena&) { return Value::Bool(IsWhole(AmountOf(args[0]))); }

Amount Second(Args args) {
  return args[1].Is(ValueKind::kInt) ? Amount::FromInt(args[1].as_int()) : AmountOf(args[1]);
}

Value AddQuantity(Args args, Arena& arena) {
  Amount sum = AmountOf(args[0]);
  sum += Second(args);
  return Wrap(sum, arena);
}

Value SubtractQuantity(Args args, Arena& arena) {
  Amount difference = AmountOf(args[0]);
  difference -= Second(args);
  return Wrap(difference, arena);
}

#define Q "kubernetes.Quantity"
constexpr CostRule kOneEach = CostRule::kNominal;

const FunctionRow kQuantityRows[] = {
    {"quantity", "string_to_quantity", "", "string", Q, 28, ToQuantity, CostRule::kParse},
    {"isQuantity", "is_quantity_string", "", "string", "bool", 28, IsQuantity, CostRule::kParse},
    {"sign", "quantity_sign", "", Q, "int", 28, QuantitySign, kOneEach},
    {"isGreaterThan", "quantity_is_greater_than", Q, Q, "bool", 28, IsGreater, kOneEach},
    {"isLessThan", "quantity_is_less_than", Q, Q, "bool", 28, IsLess, kOneEach},
    {"compareTo", "quantity_compare_to", Q, Q, "int", 28, CompareTo, kOneEach},
    {"asApproximateFloat", "quantity_get_float", Q, "", "double", 28, AsFloat, kOneEach},
    {"asInteger", "quantity_get_int", Q, "", "int", 28, AsInteger, kOneEach},
    {"isInteger", "quantity_is_integer", Q, "", "bool", 28, IsInteger, kOneEach},
    {"add", "quantity_add", Q, Q, Q, 28, AddQuantity, kOneEach},
    {"add", "quantity_add_int", Q, "int", Q, 28, AddQuantity, kOneEach},
    {"sub", "quantity_sub", Q, Q, Q, 28, SubtractQuantity, kOneEach},
    {"sub", "quantity_sub_int", Q, "int", Q, 28, SubtractQuantity, kOneEach},
};
#undef Q

}  // namespace

Value NewQuantity(const Amount& amount, Arena& arena) { return Wrap(amount, arena); }

std::span<const FunctionRow> QuantityFunctions() { return kQuantityRows; }

}  // namespace keelson::cel
