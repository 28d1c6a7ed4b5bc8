// Types of CEL expressions, as the checker sees them (cel-spec, langdef.md, "Values and types").
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::cel {

class DeclType;
struct TypeNode;

// A type is a pointer to an immutable node. Nodes of simple types live as long as the process, the others as long as
// the TypePool or DeclType that made them. Two pointers may stand for one type: compare with SameType().
using Type = const TypeNode*;

enum class TypeKind : uint8_t {
  kDyn,
  kError,  // of an expression that has been reported
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kDuration,
  kTimestamp,
  kType,    // type(T), or any type without parameter
  kList,    // list(T)
  kMap,     // map(K, V)
  kObject,  // by name; `decl` has its fields
  kOpaque,  // by name, perhaps with a parameter: optional_type(T), net.IP
  kParam,   // A, B, T: bound by the checker
};

struct TypeNode {
  TypeKind kind = TypeKind::kDyn;
  uint8_t params = 0;
  int32_t variable = -1;  // of a parameter that the checker made: its number
  std::string_view name;
  Type param[2] = {nullptr, nullptr};
  const DeclType* decl = nullptr;  // of an object type with declared fields
};

namespace types {
extern const TypeNode kDyn, kError, kNull, kBool, kInt, kUint, kDouble, kString, kBytes, kDuration,
    kTimestamp, kAnyType;
// Kubernetes' own. Upstream declares the first four as objects without fields.
extern const TypeNode kUrl, kQuantity, kNamedFormat, kSemver;
extern const TypeNode kAuthorizer, kPathCheck, kGroupCheck, kResourceCheck, kDecision;
extern const TypeNode kIp, kCidr;
extern const TypeNode kListOfDyn, kMapOfDyn, kMapOfStringToDyn;

inline constexpr std::string_view kOptionalName = "optional_type";
}  // namespace types

// Makes types; owns them and their names. Not for concurrent use.
class TypePool {
 public:
  TypePool() = default;
  TypePool(const TypePool&) = delete;
  TypePool& operator=(const TypePool&) = delete;

  Type List(Type element);
  Type Map(Type key, Type value);
  Type Optional(Type value);
  Type TypeOf(Type type);
  Type Param(std::string_view name);
  Type Variable(int32_t number);  // _var0, _var1, ...

  // From the notation of the function tables: "map<string,list<A>>", "optional<V>", "kubernetes.URL". A name that is no
  // known type is a type parameter. Aborts on malformed text, which is part of the program.
  Type Parse(std::string_view text);

 private:
  const TypeNode* Add(TypeNode node);
  Type ParseOne(std::string_view text, size_t& at);

  std::deque<TypeNode> nodes_;
  std::deque<std::string> names_;
};

inline bool IsOptional(Type type) {
  return type->kind == TypeKind::kOpaque && type->name == types::kOptionalName;
}
inline bool IsDyn(Type type) { return type->kind == TypeKind::kDyn; }
inline bool IsDynOrError(Type type) { return type->kind == TypeKind::kDyn || type->kind == TypeKind::kError; }

bool SameType(Type a, Type b);

// In the form of upstream's messages: int, list(string), map(string, dyn), optional_type(int), kubernetes.Quantity.
std::string FormatType(Type type);

// The name of the type without parameters, as type() and "no such overload" give it: int, list, google.protobuf.Duration.
std::string_view RuntimeName(Type type);

}  // namespace keelson::cel
