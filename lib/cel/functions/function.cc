#include "lib/cel/functions/function.h"

#include <algorithm>

namespace keelson::cel {
namespace {

// "list<A>,map<K,V>": at commas outside of brackets.
std::vector<std::string_view> SplitTypes(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] == '<') ++depth;
    if (i < text.size() && text[i] == '>') --depth;
    if (i < text.size() && (text[i] != ',' || depth > 0)) continue;
    if (i > begin) out.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  return out;
}

}  // namespace

Type NumberParameters(Type type, TypePool& pool, std::vector<std::string_view>& names) {
  if (type->kind == TypeKind::kParam) {
    auto found = std::find(names.begin(), names.end(), type->name);
    if (found == names.end()) found = names.insert(names.end(), type->name);
    return pool.Variable(static_cast<int32_t>(found - names.begin()));
  }
  if (type->params == 0) return type;
  Type first = NumberParameters(type->param[0], pool, names);
  switch (type->kind) {
    case TypeKind::kList:
      return pool.List(first);
    case TypeKind::kMap:
      return pool.Map(first, NumberParameters(type->param[1], pool, names));
    case TypeKind::kType:
      return pool.TypeOf(first);
    default:
      return pool.Optional(first);
  }
}

void FunctionTable::Add(std::span<const FunctionRow> rows, int version) {
  for (const FunctionRow& row : rows) {
    if (row.since > version) continue;
    Overload& overload = overloads_.emplace_back();
    overload.row = &row;
    overload.member = !row.receiver.empty();
    std::vector<std::string_view> names;
    if (overload.member) overload.args.push_back(NumberParameters(types_.Parse(row.receiver), types_, names));
    for (std::string_view arg : SplitTypes(row.args)) {
      overload.args.push_back(NumberParameters(types_.Parse(arg), types_, names));
    }
    overload.result = NumberParameters(types_.Parse(row.result), types_, names);
    overload.parameters = static_cast<int>(names.size());
    overload.generic = !names.empty();
    Function& function = functions_[row.name];
    function.name = row.name;
    function.overloads.push_back(&overload);
  }
}

const Function* FunctionTable::Find(std::string_view name) const {
  auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

bool FitsAtRunTime(const Value& value, Type type) {
  switch (type->kind) {
    case TypeKind::kDyn:
    case TypeKind::kParam:
      return true;
    case TypeKind::kList:
      return value.Is(ValueKind::kList);
    case TypeKind::kMap:
      return value.Is(ValueKind::kMap) || value.Is(ValueKind::kObject);
    case TypeKind::kObject:
    case TypeKind::kOpaque:
      return TypeName(value) == type->name;
    case TypeKind::kType:
      return value.Is(ValueKind::kType);
    default:
      return TypeOf(value)->kind == type->kind;
  }
}

Value NoSuchOverload(std::string_view function, std::span<const Value> args, Arena& arena) {
  std::string out = "no such overload: ";
  out.append(function).append("(");
  for (size_t i = 0; i < args.size(); ++i) out.append(i > 0 ? ", " : "").append(TypeName(args[i]));
  return Value::Error(out + ")", arena);
}

}  // namespace keelson::cel
