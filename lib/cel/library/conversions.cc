// Conversions between types, and type().
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "lib/api/duration.h"
#include "lib/cel/library/library.h"
#include "lib/cel/library/utf8.h"
#include "lib/cel/values/time.h"

namespace keelson::cel {
namespace {

using Args = std::span<const Value>;

constexpr double kIntBound = 9223372036854775808.0, kUintBound = 18446744073709551616.0;

Value Failed(const Value& from, std::string_view to, Arena& arena) {
  return Value::Error(fmt::format("type conversion error from '{}' to '{}'", TypeName(from), to), arena);
}

Value Same(Args args, Arena&) { return args[0]; }

Value StringToBool(Args args, Arena& arena) {
  std::string_view text = args[0].text();
  for (std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return Value::Bool(true);
  }
  for (std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return Value::Bool(false);
  }
  return Failed(args[0], "bool", arena);
}

Value StringToBytes(Args args, Arena&) { return Value::Bytes(args[0].text()); }

Value BytesToString(Args args, Arena&) {
  if (!IsUtf8(args[0].text())) return Value::StaticError("invalid UTF-8 in bytes, cannot convert to string");
  return Value::String(args[0].text());
}

Value IntToDouble(Args args, Arena&) { return Value::Double(static_cast<double>(args[0].as_int())); }
Value UintToDouble(Args args, Arena&) { return Value::Double(static_cast<double>(args[0].as_uint())); }

Value StringToDouble(Args args, Arena& arena) {
  std::string_view text = args[0].text();
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text.starts_with('+') || error != std::errc() || end != text.data() + text.size()) {
    return Failed(args[0], "double", arena);
  }
  return Value::Double(value);
}

Value IntToDuration(Args args, Arena&) { return Value::Duration(args[0].as_int()); }

Value StringToDuration(Args args, Arena& arena) {
  auto nanos = api::ParseGoDuration(args[0].text());
  return nanos ? Value::Duration(*nanos) : Failed(args[0], types::kDuration.name, arena);
}

Value DoubleToInt(Args args, Arena&) {
  double value = args[0].as_double();
  if (!(value > -kIntBound && value < kIntBound)) return Value::StaticError("integer overflow");
  return Value::Int(static_cast<int64_t>(value));
}

Value DoubleToUint(Args args, Arena&) {
  double value = args[0].as_double();
  if (!(value >= 0 && value < kUintBound)) return Value::StaticError("unsigned integer overflow");
  return Value::Uint(static_cast<uint64_t>(value));
}

Value DurationToInt(Args args, Arena&) { return Value::Int(args[0].nanos()); }
Value TimestampToInt(Args args, Arena&) { return Value::Int(args[0].time().seconds); }

template <typename T>
bool ParseNumber(std::string_view text, T& value) {
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-' && std::is_signed_v<T>) {
    text.remove_prefix(1);
  }
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

Value StringToInt(Args args, Arena& arena) {
  int64_t value = 0;
  return ParseNumber(args[0].text(), value) ? Value::Int(value) : Failed(args[0], "int", arena);
}

Value StringToUint(Args args, Arena& arena) {
  uint64_t value = 0;
  return ParseNumber(args[0].text(), value) ? Value::Uint(value) : Failed(args[0], "uint", arena);
}

Value UintToInt(Args args, Arena&) {
  return args[0].as_uint() > INT64_MAX ? Value::StaticError("integer overflow")
                                       : Value::Int(args[0].as_int());
}

Value IntToUint(Args args, Arena&) {
  return args[0].as_int() < 0 ? Value::StaticError("unsigned integer overflow")
                              : Value::Uint(args[0].as_uint());
}

Value AnyToString(Args args, Arena& arena) { return Value::String(arena.Copy(ToText(args[0]))); }

Value IntToTimestamp(Args args, Arena&) {
  int64_t seconds = args[0].as_int();
  if (seconds < kZeroTimeSeconds || seconds > kLastTimeSeconds) {
    return Value::StaticError("timestamp overflow");
  }
  return Value::Time({seconds, 0, 0});
}

Value StringToTimestamp(Args args, Arena& arena) {
  auto time = ParseTime(args[0].text());
  if (!time) return Failed(args[0], types::kTimestamp.name, arena);
  if (time->seconds < kZeroTimeSeconds || time->seconds > kLastTimeSeconds) {
    return Value::StaticError("timestamp overflow");
  }
  return Value::Time(*time);
}

Value GetType(Args args, Arena&) { return Value::OfType(TypeOf(args[0])); }

constexpr CostRule kTraverse = CostRule::kTraverseFirst;

const FunctionRow kRows[] = {
    {"type", "type", "", "A", "type<A>", 0, GetType},
    {"bool", "bool_to_bool", "", "bool", "bool", 0, Same},
    {"bool", "string_to_bool", "", "string", "bool", 0, StringToBool},
    {"bytes", "bytes_to_bytes", "", "bytes", "bytes", 0, Same},
    {"bytes", "string_to_bytes", "", "string", "bytes", 0, StringToBytes, kTraverse},
    {"double", "double_to_double", "", "double", "double", 0, Same},
    {"double", "int64_to_double", "", "int", "double", 0, IntToDouble},
    {"double", "string_to_double", "", "string", "double", 0, StringToDouble},
    {"double", "uint64_to_double", "", "uint", "double", 0, UintToDouble},
    {"duration", "duration_to_duration", "", "duration", "duration", 0, Same},
    {"duration", "int64_to_duration", "", "int", "duration", 0, IntToDuration},
    {"duration", "string_to_duration", "", "string", "duration", 0, StringToDuration},
    {"dyn", "to_dyn", "", "A", "dyn", 0, Same, CostRule::kDyn},
    {"int", "int64_to_int64", "", "int", "int", 0, Same},
    {"int", "double_to_int64", "", "double", "int", 0, DoubleToInt},
    {"int", "duration_to_int64", "", "duration", "int", 0, DurationToInt},
    {"int", "string_to_int64", "", "string", "int", 0, StringToInt},
    {"int", "timestamp_to_int64", "", "timestamp", "int", 0, TimestampToInt},
    {"int", "uint64_to_int64", "", "uint", "int", 0, UintToInt},
    {"string", "string_to_string", "", "string", "string", 0, Same},
    {"string", "bool_to_string", "", "bool", "string", 0, AnyToString},
    {"string", "bytes_to_string", "", "bytes", "string", 0, BytesToString, kTraverse},
    {"string", "double_to_string", "", "double", "string", 0, AnyToString},
    {"string", "duration_to_string", "", "duration", "string", 0, AnyToString},
    {"string", "int64_to_string", "", "int", "string", 0, AnyToString},
    {"string", "timestamp_to_string", "", "timestamp", "string", 0, AnyToString},
    {"string", "uint64_to_string", "", "uint", "string", 0, AnyToString},
    {"timestamp", "timestamp_to_timestamp", "", "timestamp", "timestamp", 0, Same},
    {"timestamp", "int64_to_timestamp", "", "int", "timestamp", 0, IntToTimestamp},
    {"timestamp", "string_to_timestamp", "", "string", "timestamp", 0, StringToTimestamp},
    {"uint", "uint64_to_uint64", "", "uint", "uint", 0, Same},
    {"uint", "double_to_uint64", "", "double", "uint", 0, DoubleToUint},
    {"uint", "int64_to_uint64", "", "int", "uint", 0, IntToUint},
    {"uint", "string_to_uint64", "", "string", "uint", 0, StringToUint},
};

}  // namespace

std::span<const FunctionRow> StandardConversions() { return kRows; }

}  // namespace keelson::cel
