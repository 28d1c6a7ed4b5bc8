#include "lib/cel/types/type.h"

#include <fmt/format.h>

namespace keelson::cel {
namespace types {

const TypeNode kDyn{TypeKind::kDyn, 0, -1, "dyn"};
const TypeNode kError{TypeKind::kError, 0, -1, "!error!"};
const TypeNode kNull{TypeKind::kNull, 0, -1, "null_type"};
const TypeNode kBool{TypeKind::kBool, 0, -1, "bool"};
const TypeNode kInt{TypeKind::kInt, 0, -1, "int"};
const TypeNode kUint{TypeKind::kUint, 0, -1, "uint"};
const TypeNode kDouble{TypeKind::kDouble, 0, -1, "double"};
const TypeNode kString{TypeKind::kString, 0, -1, "string"};
const TypeNode kBytes{TypeKind::kBytes, 0, -1, "bytes"};
const TypeNode kDuration{TypeKind::kDuration, 0, -1, "google.protobuf.Duration"};
const TypeNode kTimestamp{TypeKind::kTimestamp, 0, -1, "google.protobuf.Timestamp"};
const TypeNode kAnyType{TypeKind::kType, 0, -1, "type"};
const TypeNode kUrl{TypeKind::kObject, 0, -1, "kubernetes.URL"};
const TypeNode kQuantity{TypeKind::kObject, 0, -1, "kubernetes.Quantity"};
const TypeNode kNamedFormat{TypeKind::kObject, 0, -1, "kubernetes.NamedFormat"};
const TypeNode kSemver{TypeKind::kObject, 0, -1, "kubernetes.Semver"};
const TypeNode kAuthorizer{TypeKind::kObject, 0, -1, "kubernetes.authorization.Authorizer"};
const TypeNode kPathCheck{TypeKind::kObject, 0, -1, "kubernetes.authorization.PathCheck"};
const TypeNode kGroupCheck{TypeKind::kObject, 0, -1, "kubernetes.authorization.GroupCheck"};
const TypeNode kResourceCheck{TypeKind::kObject, 0, -1, "kubernetes.authorization.ResourceCheck"};
const TypeNode kDecision{TypeKind::kObject, 0, -1, "kubernetes.authorization.Decision"};
const TypeNode kIp{TypeKind::kOpaque, 0, -1, "net.IP"};
const TypeNode kCidr{TypeKind::kOpaque, 0, -1, "net.CIDR"};
const TypeNode kListOfDyn{TypeKind::kList, 1, -1, "list", {&kDyn, nullptr}};
const TypeNode kMapOfDyn{TypeKind::kMap, 2, -1, "map", {&kDyn, &kDyn}};
const TypeNode kMapOfStringToDyn{TypeKind::kMap, 2, -1, "map", {&kString, &kDyn}};

}  // namespace types

namespace {

const TypeNode* const kNamed[] = {
    &types::kDyn,      &types::kNull,        &types::kBool,      &types::kInt,        &types::kUint,
    &types::kDouble,   &types::kString,      &types::kBytes,     &types::kAnyType,    &types::kUrl,
    &types::kQuantity, &types::kNamedFormat, &types::kSemver,    &types::kIp,         &types::kCidr,
    &types::kDecision, &types::kAuthorizer,  &types::kPathCheck, &types::kGroupCheck, &types::kResourceCheck,
};

}  // namespace

const TypeNode* TypePool::Add(TypeNode node) { return &nodes_.emplace_back(node); }

Type TypePool::List(Type element) { return Add({TypeKind::kList, 1, -1, "list", {element, nullptr}}); }
Type TypePool::Map(Type key, Type value) { return Add({TypeKind::kMap, 2, -1, "map", {key, value}}); }
Type TypePool::Optional(Type value) {
  return Add({TypeKind::kOpaque, 1, -1, types::kOptionalName, {value, nullptr}});
}
Type TypePool::TypeOf(Type type) { return Add({TypeKind::kType, 1, -1, "type", {type, nullptr}}); }

Type TypePool::Param(std::string_view name) {
  return Add({TypeKind::kParam, 0, -1, names_.emplace_back(name)});
}

Type TypePool::Variable(int32_t number) {
  return Add({TypeKind::kParam, 0, number, names_.emplace_back(fmt::format("_var{}", number))});
}

Type TypePool::ParseOne(std::string_view text, size_t& at) {
  size_t end = text.find_first_of("<>,", at);
  if (end == std::string_view::npos) end = text.size();
  std::string_view name = text.substr(at, end - at);
  at = end;
  std::vector<Type> params;
  if (at < text.size() && text[at] == '<') {
    do {
      ++at;
      params.push_back(ParseOne(text, at));
    } while (at < text.size() && text[at] == ',');
    if (at >= text.size() || text[at] != '>') std::abort();
    ++at;
  }
  if (name == "list" && params.size() == 1) return List(params[0]);
  if (name == "map" && params.size() == 2) return Map(params[0], params[1]);
  if (name == "optional" && params.size() == 1) return Optional(params[0]);
  if (name == "type" && params.size() == 1) return TypeOf(params[0]);
  if (name.empty() || !params.empty()) std::abort();
  if (name == "duration") return &types::kDuration;
  if (name == "timestamp") return &types::kTimestamp;
  for (const TypeNode* known : kNamed) {
    if (known->name == name) return known;
  }
  return Param(name);
}

Type TypePool::Parse(std::string_view text) {
  size_t at = 0;
  Type type = ParseOne(text, at);
  if (at != text.size()) std::abort();
  return type;
}

bool SameType(Type a, Type b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->params != b->params) return false;
  switch (a->kind) {
    case TypeKind::kObject:
      return a->name == b->name;
    case TypeKind::kOpaque:
      if (a->name != b->name) return false;
      break;
    case TypeKind::kParam:
      return a->variable == b->variable && a->name == b->name;
    default:
      break;
  }
  for (int i = 0; i < a->params; ++i) {
    if (!SameType(a->param[i], b->param[i])) return false;
  }
  return true;
}

std::string FormatType(Type type) {
  switch (type->kind) {
    case TypeKind::kNull:
      return "null";
    case TypeKind::kDuration:
      return "duration";
    case TypeKind::kTimestamp:
      return "timestamp";
    default:
      break;
  }
  std::string out(type->name);
  if (type->params == 0) return out;
  out += '(';
  for (int i = 0; i < type->params; ++i) {
    if (i > 0) out += ", ";
    out += FormatType(type->param[i]);
  }
  return out + ')';
}

std::string_view RuntimeName(Type type) { return type->name; }

}  // namespace keelson::cel
