#include "lib/cel/values/value.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "lib/cel/syntax/source.h"
#include "lib/cel/types/decl_type.h"
#include "lib/cel/values/containers.h"
#include "lib/cel/values/time.h"

namespace keelson::cel {
namespace {

constexpr double kIntBound = 9223372036854775808.0, kUintBound = 18446744073709551616.0;

const TypeNode kListType{TypeKind::kList, 0, -1, "list"};
const TypeNode kMapType{TypeKind::kMap, 0, -1, "map"};
const TypeNode kOptionalType{TypeKind::kOpaque, 0, -1, types::kOptionalName};

template <typename T>
Ordering Order(T a, T b) {
  return a < b ? Ordering::kLess : b < a ? Ordering::kGreater : Ordering::kEqual;
}

Ordering Reverse(Ordering ordering) {
  return ordering == Ordering::kLess      ? Ordering::kGreater
         : ordering == Ordering::kGreater ? Ordering::kLess
                                          : ordering;
}

Ordering CompareDoubles(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? Ordering::kUnordered : Order(a, b);
}

// By value, as upstream: the number as a double, but for doubles out of the other's range.
Ordering CompareIntDouble(int64_t a, double b) {
  if (std::isnan(b)) return Ordering::kUnordered;
  if (b < -kIntBound) return Ordering::kGreater;
  if (b >= kIntBound) return Ordering::kLess;
  return Order(static_cast<double>(a), b);
}

Ordering CompareUintDouble(uint64_t a, double b) {
  if (std::isnan(b)) return Ordering::kUnordered;
  if (b < 0) return Ordering::kGreater;
  if (b >= kUintBound) return Ordering::kLess;
  return Order(static_cast<double>(a), b);
}

Ordering CompareIntUint(int64_t a, uint64_t b) {
  return a < 0 ? Ordering::kLess : Order(static_cast<uint64_t>(a), b);
}

bool IsNumber(const Value& value) {
  return value.Is(ValueKind::kInt) || value.Is(ValueKind::kUint) || value.Is(ValueKind::kDouble);
}

Ordering CompareNumbers(const Value& a, const Value& b) {
  switch (a.kind()) {
    case ValueKind::kInt:
      if (b.Is(ValueKind::kInt)) return Order(a.as_int(), b.as_int());
      return b.Is(ValueKind::kUint) ? CompareIntUint(a.as_int(), b.as_uint())
                                    : CompareIntDouble(a.as_int(), b.as_double());
    case ValueKind::kUint:
      if (b.Is(ValueKind::kUint)) return Order(a.as_uint(), b.as_uint());
      return b.Is(ValueKind::kInt) ? Reverse(CompareIntUint(b.as_int(), a.as_uint()))
                                   : CompareUintDouble(a.as_uint(), b.as_double());
    default:
      if (b.Is(ValueKind::kDouble)) return CompareDoubles(a.as_double(), b.as_double());
      return b.Is(ValueKind::kInt) ? Reverse(CompareIntDouble(b.as_int(), a.as_double()))
                                   : Reverse(CompareUintDouble(b.as_uint(), a.as_double()));
  }
}

bool EqualLists(const ListValue& a, const ListValue& b, Arena& arena) {
  if (a.Size() != b.Size()) return false;
  const DeclType* declared = a.declared();
  if (declared && declared->semantics() != ListSemantics::kAtomic) {
    return EqualUnordered(a, b, *declared, arena);
  }
  for (size_t i = 0; i < a.Size(); ++i) {
    if (!Equals(a.At(i, arena), b.At(i, arena), arena)) return false;
  }
  return true;
}

bool EqualMaps(const MapValue& a, const MapValue& b, Arena& arena) {
  if (a.Size() != b.Size()) return false;
  for (size_t i = 0; i < a.Size(); ++i) {
    Value other;
    if (!b.FindEqual(a.KeyAt(i, arena), other, arena) || !Equals(a.ValueAt(i, arena), other, arena)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Type TypeOf(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kNull:
      return &types::kNull;
    case ValueKind::kBool:
      return &types::kBool;
    case ValueKind::kInt:
      return &types::kInt;
    case ValueKind::kUint:
      return &types::kUint;
    case ValueKind::kDouble:
      return &types::kDouble;
    case ValueKind::kString:
      return &types::kString;
    case ValueKind::kBytes:
      return &types::kBytes;
    case ValueKind::kDuration:
      return &types::kDuration;
    case ValueKind::kTimestamp:
      return &types::kTimestamp;
    case ValueKind::kType:
      return &types::kAnyType;
    case ValueKind::kList:
      return &kListType;
    case ValueKind::kMap:
      return &kMapType;
    case ValueKind::kObject:
      return value.map().type();
    case ValueKind::kOptional:
      return &kOptionalType;
    case ValueKind::kOpaque:
      return value.opaque().type();
    case ValueKind::kError:
      break;
  }
  return &types::kError;
}

std::string_view TypeName(const Value& value) { return RuntimeName(TypeOf(value)); }

Ordering Compare(const Value& a, const Value& b) {
  if (IsNumber(a) && IsNumber(b)) return CompareNumbers(a, b);
  if (a.kind() != b.kind()) return Ordering::kIncomparable;
  switch (a.kind()) {
    case ValueKind::kBool:
      return Order(a.as_bool(), b.as_bool());
    case ValueKind::kString:
    case ValueKind::kBytes:
      return Order(a.text(), b.text());
    case ValueKind::kDuration:
      return Order(a.nanos(), b.nanos());
    case ValueKind::kTimestamp: {
      Ordering seconds = Order(a.time().seconds, b.time().seconds);
      return seconds == Ordering::kEqual ? Order(a.time().nanos, b.time().nanos) : seconds;
    }
    default:
      return Ordering::kIncomparable;
  }
}

bool Equals(const Value& a, const Value& b, Arena& arena) {
  if (a.kind() != b.kind()) {
    // An object that an expression made and one that data holds have the same fields or not.
    bool objects = (a.Is(ValueKind::kMap) && b.Is(ValueKind::kObject)) ||
                   (a.Is(ValueKind::kObject) && b.Is(ValueKind::kMap));
    if (objects) return EqualMaps(a.map(), b.map(), arena);
    return IsNumber(a) && IsNumber(b) && CompareNumbers(a, b) == Ordering::kEqual;
  }
  switch (a.kind()) {
    case ValueKind::kNull:
      return true;
    case ValueKind::kType:
      return a.as_type()->kind == b.as_type()->kind && a.as_type()->name == b.as_type()->name;
    case ValueKind::kList:
      return EqualLists(a.list(), b.list(), arena);
    case ValueKind::kMap:
    case ValueKind::kObject:
      return EqualMaps(a.map(), b.map(), arena);
    case ValueKind::kOptional:
      return a.has_value() == b.has_value() && (!a.has_value() || Equals(a.inner(), b.inner(), arena));
    case ValueKind::kOpaque:
      return SameType(a.opaque().type(), b.opaque().type()) && a.opaque().Equals(b.opaque());
    case ValueKind::kError:
      return false;
    default:
      return Compare(a, b) == Ordering::kEqual;
  }
}

uint64_t CostSize(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kString:
      return CountCodePoints(value.text());
    case ValueKind::kBytes:
      return value.text().size();
    case ValueKind::kList:
      return value.list().Size();
    case ValueKind::kMap:
      return value.map().Size();
    case ValueKind::kOpaque:
      return value.opaque().CostSize();
    case ValueKind::kOptional:
      return value.has_value() ? CostSize(value.inner()) : 1;
    default:
      return 1;
  }
}

bool IsZero(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kNull:
      return true;
    case ValueKind::kBool:
    case ValueKind::kInt:
    case ValueKind::kUint:
    case ValueKind::kDuration:
      return value.as_int() == 0;
    case ValueKind::kDouble:
      return value.as_double() == 0;
    case ValueKind::kString:
    case ValueKind::kBytes:
      return value.text().empty();
    case ValueKind::kTimestamp:
      return value.time().seconds == kZeroTimeSeconds && value.time().nanos == 0;
    case ValueKind::kList:
      return value.list().Size() == 0;
    case ValueKind::kMap:
    case ValueKind::kObject:
      return value.map().Size() == 0;
    case ValueKind::kOptional:
      return !value.has_value();
    case ValueKind::kOpaque:
      return value.opaque().IsZero();
    default:
      return false;
  }
}

std::string FormatDouble(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[64];
  auto end = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific).ptr;
  std::string_view scientific(text, static_cast<size_t>(end - text));
  size_t e = scientific.find('e');
  int exponent = std::atoi(scientific.data() + e + 1);
  // The fewest digits that give the number; %g writes exponents outside of [-4, 6).
  if (exponent < -4 || exponent >= 6) return std::string(scientific);
  end = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed).ptr;
  return std::string(text, end);
}

std::string FormatSeconds(int64_t nanos) {
  bool negative = nanos < 0;
  uint64_t magnitude = negative ? -static_cast<uint64_t>(nanos) : static_cast<uint64_t>(nanos);
  std::string out = fmt::format("{}{}", negative ? "-" : "", magnitude / 1'000'000'000);
  if (uint64_t fraction = magnitude % 1'000'000'000) {
    out += fmt::format(".{:09}", fraction);
    out.erase(out.find_last_not_of('0') + 1);
  }
  return out + "s";
}

std::string ToText(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kNull:
      return "null";
    case ValueKind::kBool:
      return value.as_bool() ? "true" : "false";
    case ValueKind::kInt:
      return std::to_string(value.as_int());
    case ValueKind::kUint:
      return std::to_string(value.as_uint());
    case ValueKind::kDouble:
      return FormatDouble(value.as_double());
    case ValueKind::kString:
    case ValueKind::kBytes:
    case ValueKind::kError:
      return std::string(value.text());
    case ValueKind::kDuration:
      return FormatSeconds(value.nanos());
    case ValueKind::kTimestamp:
      return FormatTime(value.time());
    case ValueKind::kType:
      return std::string(RuntimeName(value.as_type()));
    default:
      return std::string(TypeName(value));
  }
}

}  // namespace keelson::cel
