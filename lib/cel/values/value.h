// Values of CEL expressions. A Value is 16 bytes and free to copy; what it points at belongs to an Arena, to the program
// (literals), or to the data that the evaluation looks at.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/cel/types/type.h"
#include "lib/cel/values/arena.h"

namespace keelson::cel {

class DeclType;
class ListValue;
class MapValue;
class OpaqueValue;

enum class ValueKind : uint8_t {
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kDuration,
  kTimestamp,
  kType,
  kList,
  kMap,     // also objects that come from JSON or from API types
  kObject,  // made by the expression: T{f: v}
  kOptional,
  kOpaque,
  kError,
};

// Of Go's time.Time: from year 1 to 9999. `zone_minutes` only shows in the text form.
struct Timestamp {
  int64_t seconds = 0;
  int32_t nanos = 0;
  int16_t zone_minutes = 0;
};

class Value {
 public:
  Value() : i_(0) {}  // null

  static Value Bool(bool value) { return Value(ValueKind::kBool, static_cast<int64_t>(value)); }
  static Value Int(int64_t value) { return Value(ValueKind::kInt, value); }
  static Value Uint(uint64_t value) { return Value(ValueKind::kUint, static_cast<int64_t>(value)); }
  static Value Double(double value) {
    Value out;
    out.kind_ = ValueKind::kDouble;
    out.d_ = value;
    return out;
  }
  static Value String(std::string_view text) { return Text(ValueKind::kString, text); }  // of valid UTF-8
  static Value Bytes(std::string_view bytes) { return Text(ValueKind::kBytes, bytes); }
  static Value Duration(int64_t nanos) { return Value(ValueKind::kDuration, nanos); }
  static Value Time(const Timestamp& time) {
    Value out(ValueKind::kTimestamp, time.seconds);
    out.size_ = static_cast<uint32_t>(time.nanos);
    out.zone_ = time.zone_minutes;
    return out;
  }
  static Value OfType(Type type) { return Pointer(ValueKind::kType, type); }
  static Value List(const ListValue* list) { return Pointer(ValueKind::kList, list); }
  static Value Map(const MapValue* map) { return Pointer(ValueKind::kMap, map); }
  static Value Object(const MapValue* object) { return Pointer(ValueKind::kObject, object); }
  static Value Opaque(const OpaqueValue* opaque) { return Pointer(ValueKind::kOpaque, opaque); }
  static Value None() { return Pointer(ValueKind::kOptional, nullptr); }
  static Value Some(Value value, Arena& arena) {
    return Pointer(ValueKind::kOptional, arena.New<Value>(value));
  }

  // Errors are values: && and || may still have a result. The message is upstream's.
  static Value Error(std::string_view message, Arena& arena) {
    return Text(ValueKind::kError, arena.Copy(message));
  }
  static Value StaticError(std::string_view message) { return Text(ValueKind::kError, message); }

  ValueKind kind() const { return kind_; }
  bool Is(ValueKind kind) const { return kind_ == kind; }
  bool IsError() const { return kind_ == ValueKind::kError; }
  bool IsTrue() const { return kind_ == ValueKind::kBool && i_ != 0; }
  bool IsFalse() const { return kind_ == ValueKind::kBool && i_ == 0; }

  // Each for its own kind only.
  bool as_bool() const { return i_ != 0; }
  int64_t as_int() const { return i_; }
  uint64_t as_uint() const { return static_cast<uint64_t>(i_); }
  double as_double() const { return d_; }
  std::string_view text() const { return {s_, size_}; }  // of strings, bytes and errors
  int64_t nanos() const { return i_; }                   // of durations
  Timestamp time() const { return {i_, static_cast<int32_t>(size_), zone_}; }
  Type as_type() const { return static_cast<Type>(p_); }
  const ListValue& list() const { return *static_cast<const ListValue*>(p_); }
  const MapValue& map() const { return *static_cast<const MapValue*>(p_); }  // of maps and objects
  const OpaqueValue& opaque() const { return *static_cast<const OpaqueValue*>(p_); }
  bool has_value() const { return p_ != nullptr; }                // of optionals
  Value inner() const { return *static_cast<const Value*>(p_); }  // of optionals that have a value

 private:
  Value(ValueKind kind, int64_t value) : kind_(kind), i_(value) {}
  static Value Text(ValueKind kind, std::string_view text) {
    Value out;
    out.kind_ = kind;
    out.size_ = static_cast<uint32_t>(text.size());
    out.s_ = text.data();
    return out;
  }
  static Value Pointer(ValueKind kind, const void* pointer) {
    Value out;
    out.kind_ = kind;
    out.p_ = pointer;
    return out;
  }

  ValueKind kind_ = ValueKind::kNull;
  int16_t zone_ = 0;
  uint32_t size_ = 0;
  union {
    int64_t i_;
    double d_;
    const char* s_;
    const void* p_;
  };
};
static_assert(sizeof(Value) == 16);

// A list, as a view of whatever holds it. Elements may be errors: data that does not fit its declared type.
class ListValue {
 public:
  virtual ~ListValue() = default;
  virtual size_t Size() const = 0;
  virtual Value At(size_t index, Arena& arena) const = 0;
  // Of lists whose declaration says how they compare and add (x-kubernetes-list-type); else null.
  virtual const DeclType* declared() const { return nullptr; }
};

// A map or object, as a view of whatever holds it. Entries have an order, which says nothing.
class MapValue {
 public:
  virtual ~MapValue() = default;
  virtual size_t Size() const = 0;
  virtual bool Find(const Value& key, Value& out, Arena& arena) const = 0;
  virtual Value KeyAt(size_t index, Arena& arena) const = 0;
  virtual Value ValueAt(size_t index, Arena& arena) const = 0;
  // As Find(), for comparisons: also finds what is hidden from expressions.
  virtual bool FindEqual(const Value& key, Value& out, Arena& arena) const { return Find(key, out, arena); }
  virtual Type type() const { return nullptr; }  // of ValueKind::kObject: its type
};

// A value of a type that functions know and the evaluator does not.
class OpaqueValue {
 public:
  virtual ~OpaqueValue() = default;
  virtual Type type() const = 0;
  virtual bool Equals(const OpaqueValue& other) const = 0;  // called for values of one type
  virtual uint64_t CostSize() const { return 1; }           // what costs count it as
  virtual bool IsZero() const { return false; }             // for optional.ofNonZeroValue
};

// The value's type without parameters: what type() returns.
Type TypeOf(const Value& value);
std::string_view TypeName(const Value& value);

// CEL's ==. Values of different kinds are unequal; numbers compare by value.
bool Equals(const Value& a, const Value& b, Arena& arena);

enum class Ordering { kLess, kEqual, kGreater, kUnordered, kIncomparable };
// Unordered: NaN. Incomparable: no such overload. Numbers of different kinds compare.
Ordering Compare(const Value& a, const Value& b);

// How many characters, bytes, items or entries; 1 for the rest. What costs go by.
uint64_t CostSize(const Value& value);

// The zero value of its type, for optional.ofNonZeroValue.
bool IsZero(const Value& value);

// As messages print it: strings bare, numbers in Go's %v.
std::string ToText(const Value& value);

std::string FormatDouble(double value);    // Go's %g: 1.5, 1e+06, +Inf
std::string FormatSeconds(int64_t nanos);  // a duration as CEL's string(): 1.5s

}  // namespace keelson::cel
