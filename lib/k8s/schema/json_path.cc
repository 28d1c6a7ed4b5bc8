#include "lib/k8s/schema/json_path.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <variant>

#include <fmt/format.h>
#include <re2/re2.h>

#include "lib/base/text.h"
#include "lib/k8s/schema/json_path_step.h"
#include "lib/k8s/schema/nodes.h"

namespace keelson::k8s {

namespace {

namespace json = boost::json;
using Step = JsonPath::Step;
using Values = std::vector<const json::value*>;

// A path can multiply its values: ..a..b
constexpr size_t kMaxValues = 10'000;

bool Evaluate(const std::vector<Step>& steps, Values& values);

bool Take(const json::array& list, const Step& step, Values& out) {
  const auto size = static_cast<int64_t>(list.size());
  int64_t begin = step.begin.value_or(0), end = step.end.value_or(size);
  if (begin < 0) begin += size;
  if (end < 0 || (end == 0 && step.end_is_derived)) end += size;
  if (begin != end && (begin < 0 || begin >= size || end < 0 || end > size)) return false;
  if (begin > end || step.stride.value_or(1) <= 0) return false;
  for (int64_t i = begin; i < end; i += step.stride.value_or(1)) out.push_back(&list[static_cast<size_t>(i)]);
  return true;
}

// All that is in a value; text and numbers hold nothing.
void TakeAll(const json::value& value, Values& out) {
  if (const json::array* list = value.if_array()) {
    for (const json::value& item : *list) out.push_back(&item);
  } else if (const json::object* object = value.if_object()) {
    for (const auto& member : *object) out.push_back(&member.value());
  }
}

// The value and what it holds at any depth, but for values that hold nothing.
void TakeBelow(const json::value& value, Values& out) {
  Values below;
  TakeAll(value, below);
  if (below.empty() || out.size() > kMaxValues) return;
  out.push_back(&value);
  for (const json::value* one : below) TakeBelow(*one, out);
}

// -1, 0 or 1; nothing for values that do not compare: of different types, objects, lists, null.
std::optional<int> Compare(const json::value& a, const json::value& b) {
  const auto order = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.is_string() && b.is_string()) return order(a.get_string(), b.get_string());
  if (a.is_int64() && b.is_int64()) return order(a.get_int64(), b.get_int64());
  if (a.is_double() && b.is_double()) return order(a.get_double(), b.get_double());
  return std::nullopt;
}

bool IsTrue(std::string_view op, int order) {
  if (op == "==") return order == 0;
  if (op == "!=") return order != 0;
  if (op == "<") return order < 0;
  if (op == ">") return order > 0;
  return op == "<=" ? order <= 0 : order >= 0;
}

bool Filter(const json::array& list, const Step& step, Values& out) {
  for (const json::value& item : list) {
    Values left{&item}, right{&item};
    const bool found = Evaluate(step.left, left);
    if (step.op.empty()) {
      if (found && !left.empty()) out.push_back(&item);
      continue;
    }
    if (!found || left.size() != 1) return false;
    if (step.literal) {
      right = {&*step.literal};
    } else if (!Evaluate(step.right, right) || right.size() != 1) {
      return false;
    }
    const json::value &a = *left[0], &b = *right[0];
    if (a.is_bool() && b.is_bool() && (step.op == "==" || step.op == "!=")) {
      if ((a.get_bool() == b.get_bool()) == (step.op == "==")) out.push_back(&item);
      continue;
    }
    const std::optional<int> order = Compare(a, b);
    if (!order) return false;
    if (IsTrue(step.op, *order)) out.push_back(&item);
  }
  return true;
}

bool EvaluateOn(const Step& step, const json::value& value, Values& out) {
  switch (step.kind) {
    case Step::Kind::kField:
      if (const json::object* object = value.if_object()) {
        if (const json::value* found = object->if_contains(step.name)) out.push_back(found);
      }
      return true;
    case Step::Kind::kWildcard:
      TakeAll(value, out);
      return true;
    case Step::Kind::kRecursive:
      TakeBelow(value, out);
      return true;
    case Step::Kind::kSlice:
      return value.is_null() || (value.is_array() && Take(value.get_array(), step, out));
    case Step::Kind::kFilter:
      return value.is_array() && Filter(value.get_array(), step, out);
    case Step::Kind::kUnion:
      break;
  }
  return false;
}

// False when the path does not fit the object.
bool Evaluate(const std::vector<Step>& steps, Values& values) {
  for (const Step& step : steps) {
    Values next;
    if (step.kind == Step::Kind::kUnion) {
      for (const std::vector<Step>& one : step.paths) {
        Values part = values;
        if (!Evaluate(one, part)) return false;
        next.insert(next.end(), part.begin(), part.end());
      }
    } else {
      for (const json::value* value : values) {
        if (!EvaluateOn(step, *value, next)) return false;
      }
    }
    if (next.size() > kMaxValues) return false;
    values = std::move(next);
  }
  return true;
}

}  // namespace

JsonPath::JsonPath() = default;
JsonPath::JsonPath(JsonPath&&) noexcept = default;
JsonPath& JsonPath::operator=(JsonPath&&) noexcept = default;
JsonPath::~JsonPath() = default;

Result<JsonPath> JsonPath::Parse(std::string_view path) {
  JsonPath out;
  KEELSON_ASSIGN_OR_RETURN(out.steps_, ParseJsonPath(path));
  return out;
}

Values JsonPath::Find(const json::value& object) const {
  Values values{&object};
  if (!Evaluate(steps_, values)) return {};
  return values;
}

const json::value* JsonPath::First(const json::value& object) const {
  const Values values = Find(object);
  return values.empty() ? nullptr : values[0];
}

}  // namespace keelson::k8s
