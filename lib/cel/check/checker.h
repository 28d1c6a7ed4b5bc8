// The type checker: gives each expression a type, each name what it refers to, and each call its overloads.
#pragma once

#include <memory>
#include <vector>

#include "lib/cel/check/declarations.h"
#include "lib/cel/functions/function.h"
#include "lib/cel/syntax/ast.h"
#include "lib/cel/syntax/source.h"

namespace keelson::cel {

enum class RefKind : uint8_t {
  kNone,
  kVariable,   // index: of the declarations
  kLocal,      // index: slot of the evaluation's frame
  kTypeValue,  // value_type
  kCall,       // overloads; `global` when a.b.c(x) is the function a.b.c
};

struct ExprInfo {
  Type type = nullptr;
  RefKind ref = RefKind::kNone;
  bool global = false;
  int32_t index = 0;  // of a comprehension: the slot of its accumulator, before those of its variables
  Type value_type = nullptr;
  const Function* function = nullptr;
  std::vector<const Overload*> overloads;
};

struct CheckOptions {
  // Of environments from 1.29 on: literals of durations, timestamps, regular expressions and formats are looked at.
  bool check_literals = true;
};

struct Checked {
  std::shared_ptr<TypePool> pool = std::make_shared<TypePool>();  // of the types in `info`
  TypePool& types = *pool;
  std::vector<DeclTypePtr> free_types;  // in `info` too
  std::vector<ExprInfo> info;           // by Expr::id
  int slots = 0;                        // of a frame
};

// Reports what is wrong, in upstream's words. The declarations and functions have to outlive the result.
std::unique_ptr<Checked> Check(const Ast& ast, const FunctionTable& functions,
                               const Declarations& declarations, const CheckOptions& options,
                               std::vector<Issue>& issues);

}  // namespace keelson::cel
