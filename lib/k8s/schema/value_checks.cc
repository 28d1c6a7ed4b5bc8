#include "lib/k8s/schema/value_checks.h"

#include <cmath>
#include <limits>
#include <unordered_set>

#include "lib/api/apply/typed.h"
#include "lib/base/json_quote.h"
#include "lib/k8s/schema/formats.h"
#include "lib/k8s/schema/go_print.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;
using Type = FieldError::Type;

constexpr double kIntegers = 9223372036854775808.0;  // 2^63

// `what` follows the field and "in body".
void Add(Type type, const Place& place, std::string printed, std::string_view what, FieldErrors& errors) {
  errors.push_back(
      {type, place.ToField(), std::move(printed), fmt::format("{} in body {}", place.ToString(), what)});
}

// `found`: the type, or text, that is there.
void AddTypeError(std::string_view expected, std::string_view found, const Place& place,
                  FieldErrors& errors) {
  const std::string quoted = Quote(found);
  Add(Type::kTypeInvalid, place, quoted, fmt::format("must be of type {}: {}", expected, quoted), errors);
}

// Go holds a number as an integer if it is written as one and fits.
bool IsInteger(const json::value& number) { return number.is_int64(); }

double AsDouble(const json::value& number) { return number.to_number<double>(); }

// Whether a float counts as an integer: 2.0, and what is close enough (swag's rule).
bool IsWhole(double value) {
  if (std::isnan(value) || std::isinf(value) || value < -kIntegers || value > kIntegers) return false;
  constexpr double kEpsilon = 1e-9;
  const double nearest = std::trunc(value), distance = std::fabs(value - nearest),
               size = std::fabs(value) + std::fabs(nearest);
  if (value == nearest) return true;
  if (value == 0 || nearest == 0 || distance < std::numeric_limits<double>::denorm_min()) {
    return distance < kEpsilon * std::numeric_limits<double>::denorm_min();
  }
  return distance / std::fmin(size, std::numeric_limits<double>::max()) < kEpsilon;
}

std::string_view JsonTypeOf(const json::value& value) {
  if (value.is_string()) return "string";
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_bool()) return "boolean";
  return IsInteger(value) ? "integer" : "number";
}

std::string_view TypeName(SchemaType type) {
  switch (type) {
    case SchemaType::kAny:
      return "";
    case SchemaType::kObject:
      return "object";
    case SchemaType::kArray:
      return "array";
    case SchemaType::kString:
      return "string";
    case SchemaType::kInteger:
      return "integer";
    case SchemaType::kNumber:
      return "number";
    case SchemaType::kBoolean:
      return "boolean";
    case SchemaType::kIntOrString:
      return "integer,string";
  }
  return "";
}

bool Fits(SchemaType type, const json::value& value) {
  switch (type) {
    case SchemaType::kAny:
      return false;
    case SchemaType::kObject:
      return value.is_object();
    case SchemaType::kArray:
      return value.is_array();
    case SchemaType::kString:
      return value.is_string();
    case SchemaType::kBoolean:
      return value.is_bool();
    case SchemaType::kNumber:
      return value.is_number();
    case SchemaType::kIntOrString:
      if (value.is_string()) return true;
      [[fallthrough]];
    case SchemaType::kInteger:
      return value.is_number() && (IsInteger(value) || IsWhole(AsDouble(value)));
  }
  return false;
}

std::string LimitText(bool integer, double limit) {
  return integer ? std::to_string(static_cast<int64_t>(limit)) : GoFloat(limit);
}

bool FitsInteger(double value) { return value >= -kIntegers && value < kIntegers; }

void CheckMultiple(const ValueChecks& checks, const json::value& number, const Place& place,
                   FieldErrors& errors) {
  const double factor = checks.multiple_of;
  const bool integer = IsInteger(number) && factor == std::trunc(factor) && FitsInteger(factor);
  if (factor <= 0) {
    Add(Type::kInvalid, place, GoFloat(factor), "", errors);
    errors.back().detail = fmt::format("factor MultipleOf declared for {} must be positive: {}",
                                       place.ToString(), GoFloat(factor));
    return;
  }
  bool multiple = false;
  if (integer) {
    multiple = number.get_int64() % static_cast<int64_t>(factor) == 0;
  } else {
    const double value = AsDouble(number);
    multiple = IsWhole(factor < 1 ? 1 / factor * value : value / factor);
  }
  if (multiple) return;
  Add(Type::kInvalid, place, PrintBadValue(number), "should be a multiple of " + LimitText(integer, factor),
      errors);
}

// -1, 0 or 1: the value is below, at or above the limit. Integers meet the limit without its fraction.
int Compare(const json::value& number, double limit) {
  if (IsInteger(number) && FitsInteger(limit)) {
    const int64_t value = number.get_int64(), bound = static_cast<int64_t>(limit);
    return value < bound ? -1 : value > bound;
  }
  const double value = AsDouble(number);
  return value < limit ? -1 : value > limit;
}

size_t CharactersOf(std::string_view text) {
  size_t count = 0;
  while (!text.empty()) {
    text.remove_prefix(std::max<size_t>(1, Utf8SequenceLength(text)));
    ++count;
  }
  return count;
}

bool HasDuplicates(const json::array& list) {
  std::unordered_set<std::string> seen;
  for (const json::value& item : list) {
    if (!seen.insert((item.is_double() ? "f" : "") + SortedJson(item)).second) return true;
  }
  return false;
}

FieldError TooMuch(Type type, const Place& place, std::string printed, int64_t max, std::string_view unit,
                   std::string_view verb) {
  return {type, place.ToField(), std::move(printed),
          fmt::format("{} {} {}{}", verb, max, unit, max == 1 ? "" : "s")};
}

}  // namespace

bool CheckValueType(const SchemaNodes& nodes, const SchemaNode& node, const json::value& value,
                    const Place& place, FieldErrors& errors) {
  if (value.is_null()) {
    if (node.type == SchemaType::kAny || node.Is(SchemaNode::kNullable)) return true;
    AddTypeError(TypeName(node.type), "null", place, errors);
    return false;
  }
  if (Fits(node.type, value)) return true;
  const bool textual = value.is_string() || value.is_array();
  if (node.format.size > 0) {
    const std::string_view format = nodes.Text(node.format);
    if (!textual) {
      const std::string_view found = !value.is_number() ? "" : IsInteger(value) ? "int64" : "float64";
      if (found != format) {
        AddTypeError(format, found, place, errors);
        return false;
      }
    } else if (node.type == SchemaType::kAny) {
      return true;  // text is left to the format
    }
  }
  AddTypeError(TypeName(node.type), JsonTypeOf(value), place, errors);
  return false;
}

void CheckEnum(const SchemaNodes& nodes, const ValueChecks& checks, const json::value& value,
               const Place& place, FieldErrors& errors) {
  if (checks.enums.size == 0) return;
  std::string supported;
  for (uint32_t i = 0; i < checks.enums.size; ++i) {
    const json::value& allowed = nodes.values[checks.enums.begin + i];
    if (!value.is_null() && api::SameJson(allowed, value)) return;
  }
  for (uint32_t i = 0; i < checks.enums.size; ++i) {
    const json::value& allowed = nodes.values[checks.enums.begin + i];
    supported += i == 0 ? "supported values: " : ", ";
    supported += Quote(allowed.is_string() ? View(allowed.get_string()) : SortedJson(allowed));
  }
  errors.push_back({Type::kNotSupported, place.ToField(), PrintBadValue(value), std::move(supported)});
}

void CheckString(const SchemaNodes& nodes, const ValueChecks& checks, std::string_view text,
                 const Place& place, FieldErrors& errors) {
  constexpr uint32_t kLengths = ValueChecks::kMaxLength | ValueChecks::kMinLength;
  if (checks.has & kLengths) {
    const auto size = static_cast<int64_t>(CharactersOf(text));
    if ((checks.has & ValueChecks::kMaxLength) && size > checks.max_length) {
      errors.push_back(TooMuch(Type::kTooLong, place, "", checks.max_length, "byte", "may not be more than"));
      return;
    }
    if ((checks.has & ValueChecks::kMinLength) && size < checks.min_length) {
      Add(Type::kInvalid, place, Quote(text),
          fmt::format("should be at least {} chars long", checks.min_length), errors);
      return;
    }
  }
  if (checks.pattern == kNothing) return;
  const LazyPattern& pattern = nodes.patterns[checks.pattern];
  if (pattern.Matches(text)) return;
  Add(Type::kInvalid, place, Quote(text), fmt::format("should match '{}'", pattern.text()), errors);
}

void CheckFormat(std::string_view format, const json::value& text, const Place& place, FieldErrors& errors) {
  if (!HasFormat(format, View(text.get_string()))) {
    AddTypeError(format, View(text.get_string()), place, errors);
  }
}

void CheckNumber(const ValueChecks& checks, const json::value& number, const Place& place,
                 FieldErrors& errors) {
  const auto limited = [&](double limit, std::string_view what) {
    Add(Type::kInvalid, place, PrintBadValue(number),
        fmt::format("should be {} {}", what, LimitText(IsInteger(number) && FitsInteger(limit), limit)),
        errors);
  };
  if (checks.has & ValueChecks::kMultipleOf) CheckMultiple(checks, number, place, errors);
  if (checks.has & ValueChecks::kMinimum) {
    const int order = Compare(number, checks.minimum);
    const bool exclusive = checks.has & ValueChecks::kExclusiveMinimum;
    if (order < 0 || (exclusive && order == 0)) {
      limited(checks.minimum, exclusive ? "greater than" : "greater than or equal to");
    }
  }
  if (checks.has & ValueChecks::kMaximum) {
    const int order = Compare(number, checks.maximum);
    const bool exclusive = checks.has & ValueChecks::kExclusiveMaximum;
    if (order > 0 || (exclusive && order == 0)) {
      limited(checks.maximum, exclusive ? "less than" : "less than or equal to");
    }
  }
}

void CheckListSize(const ValueChecks& checks, const json::array& list, const Place& place,
                   FieldErrors& errors) {
  const auto size = static_cast<int64_t>(list.size());
  if ((checks.has & ValueChecks::kMinItems) && size < checks.min_items) {
    Add(Type::kInvalid, place, std::to_string(size),
        fmt::format("should have at least {} items", checks.min_items), errors);
  }
  if ((checks.has & ValueChecks::kMaxItems) && size > checks.max_items) {
    errors.push_back(
        TooMuch(Type::kTooMany, place, std::to_string(size), checks.max_items, "item", "must have at most"));
  }
  if ((checks.has & ValueChecks::kUniqueItems) && HasDuplicates(list)) {
    Add(Type::kInvalid, place, "\"\"", "shouldn't contain duplicates", errors);
  }
}

bool CheckObjectSize(const ValueChecks& checks, const json::object& object, const Place& place,
                     FieldErrors& errors) {
  const auto size = static_cast<int64_t>(object.size());
  if ((checks.has & ValueChecks::kMinProperties) && size < checks.min_properties) {
    Add(Type::kInvalid, place, std::to_string(size),
        fmt::format("should have at least {} properties", checks.min_properties), errors);
    return false;
  }
  if ((checks.has & ValueChecks::kMaxProperties) && size > checks.max_properties) {
    errors.push_back(TooMuch(Type::kTooMany, place, std::to_string(size), checks.max_properties, "item",
                             "must have at most"));
    return false;
  }
  return true;
}

void AddForbiddenMember(std::string_view name, const Place& place, FieldErrors& errors) {
  errors.push_back({Type::kInvalid, place.ToField(), Quote(name),
                    fmt::format("{}.{} in body is a forbidden property", place.ToString(), name)});
}

}  // namespace keelson::k8s
