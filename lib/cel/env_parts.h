// Internal to lib/cel: what environments and programs are made of.
#pragma once

#include "lib/cel/check/checker.h"
#include "lib/cel/env.h"
#include "lib/cel/eval/node.h"
#include "lib/cel/program.h"
#include "lib/cel/syntax/parser.h"

namespace keelson::cel {

struct Env::Parts {
  EnvOptions options;
  SyntaxOptions syntax;
  std::shared_ptr<const FunctionTable> functions;
  Declarations declarations;
  Arena arena;  // of constants
};

struct Program::Parts {
  std::shared_ptr<const Env> env;
  std::string expression;
  std::shared_ptr<TypePool> types;
  std::vector<DeclTypePtr> free_types;
  Type result_type = nullptr;
  CostEstimate estimate;
  std::vector<bool> uses;  // by variable
  size_t slots = 0;
  Arena arena;
  const Node* root = nullptr;
};

}  // namespace keelson::cel
