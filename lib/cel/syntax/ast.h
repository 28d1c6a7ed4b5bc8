// The syntax tree of an expression, after macros are expanded.
#pragma once

#include <cstdint>
#include <deque>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cel/syntax/source.h"

namespace keelson::cel {

enum class ExprKind : uint8_t {
  kError,  // where a problem was reported
  kConstant,
  kIdent,          // name
  kSelect,         // target.name; test_only: has(target.name)
  kCall,           // name(args), or target.name(args)
  kList,           // args; optional[i]: [?x]
  kMap,            // args: key, value, key, value, ...; optional[i]: {?k: v}
  kStruct,         // name{names[i]: args[i]}
  kComprehension,  // see Comprehension
};

enum class ConstantKind : uint8_t { kNull, kBool, kInt, kUint, kDouble, kString, kBytes };

struct Constant {
  ConstantKind kind = ConstantKind::kNull;
  union {
    bool b;
    int64_t i = 0;
    uint64_t u;
    double d;
  };
  std::string_view text;  // of strings and bytes
};

struct Expr;

// Folds a list or map: accu = init; for (var [, var2] in range) { if (!condition) break; accu = step; } result.
struct Comprehension {
  std::string_view var, var2;  // var2 is empty in the one-variable form
  Expr* range = nullptr;
  Expr* init = nullptr;
  Expr* condition = nullptr;
  Expr* step = nullptr;
  Expr* result = nullptr;
};

struct Expr {
  ExprKind kind = ExprKind::kError;
  bool test_only = false;
  uint32_t id = 0;        // dense, from 0: index of side tables
  uint32_t position = 0;  // byte offset of what upstream points at: an operator, the '(' of a call
  std::string_view name;
  Expr* target = nullptr;
  std::span<Expr*> args;
  std::span<bool> optional;  // empty, or one for each element, entry or field
  std::span<std::string_view> names;
  std::span<uint32_t> positions;  // of the fields of a struct and the entries of a map: their ':'
  Constant constant;
  Comprehension* fold = nullptr;
};

// Owns the nodes and texts of one expression. Not for concurrent use.
class Ast {
 public:
  explicit Ast(std::string_view expression) : source_(expression) {}
  Ast(const Ast&) = delete;
  Ast& operator=(const Ast&) = delete;

  const std::string& source() const { return source_; }
  size_t size() const { return next_id_; }  // ids are below

  Expr* New(ExprKind kind, uint32_t position) {
    auto* expr = new (memory_.allocate(sizeof(Expr), alignof(Expr))) Expr;
    expr->kind = kind;
    expr->id = next_id_++;
    expr->position = position;
    return expr;
  }
  Comprehension* NewFold() {
    return new (memory_.allocate(sizeof(Comprehension), alignof(Comprehension))) Comprehension;
  }

  template <typename T>
  std::span<T> Copy(const std::vector<T>& items) {
    if (items.empty()) return {};
    T* data = static_cast<T*>(memory_.allocate(std::span(items).size_bytes(), alignof(T)));
    std::uninitialized_copy(items.begin(), items.end(), data);
    return {data, items.size()};
  }
  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  Expr* root = nullptr;

 private:
  std::string source_;
  std::pmr::monotonic_buffer_resource memory_{2048};
  std::deque<std::string> texts_;
  uint32_t next_id_ = 0;
};

// The functions that operators stand for.
namespace operators {
inline constexpr std::string_view kConditional = "_?_:_", kAnd = "_&&_", kOr = "_||_", kNot = "!_",
                                  kEquals = "_==_", kNotEquals = "_!=_", kLess = "_<_", kLessEquals = "_<=_",
                                  kGreater = "_>_", kGreaterEquals = "_>=_", kAdd = "_+_", kSubtract = "_-_",
                                  kMultiply = "_*_", kDivide = "_/_", kModulo = "_%_", kNegate = "-_",
                                  kIndex = "_[_]", kOptIndex = "_[?_]", kOptSelect = "_?._", kIn = "@in",
                                  kNotStrictlyFalse = "@not_strictly_false";
}  // namespace operators

// The variable that macros accumulate in. No expression can name it.
inline constexpr std::string_view kAccumulator = "@result";

// "a.b.c" of a chain of selections that begins with an identifier; empty if it is none.
std::string QualifiedName(const Expr* expr);

}  // namespace keelson::cel
