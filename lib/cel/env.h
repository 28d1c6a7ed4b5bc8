// CEL environments: what expressions may use, by version, and compiling them (k8s.io/apiserver/pkg/cel/environment).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/error.h"
#include "lib/cel/program.h"
#include "lib/cel/types/decl_type.h"
#include "lib/cel/types/type.h"

namespace keelson::cel {

// Minor versions of Kubernetes. New expressions may use what the release before this one knows, so that a rollback
// understands them; what is stored may use everything.
inline constexpr int kNewExpressions = 35, kStoredExpressions = 999;

struct EnvOptions {
  int version = kNewExpressions;
  // Names, perhaps with dots, and their types. For Kubernetes' own: DeclType::Native(&types::kAuthorizer).
  std::vector<std::pair<std::string, DeclTypePtr>> variables;
  // Object types that expressions name and make: Object, Object.spec, JSONPatch.
  std::vector<DeclTypePtr> constructible;
  bool bind = false;             // cel.bind, of device selectors
  bool device_includes = false;  // includes(), of device selectors with list attributes
  bool json_patch = false;       // jsonpatch.escapeKey, of mutating policies
  bool check_cost = true;        // false: no static estimate, which policies have no use for
  bool escaped_identifiers = false;
};

// Immutable and thread safe.
class Env : public std::enable_shared_from_this<Env> {
 public:
  static std::shared_ptr<const Env> Make(EnvOptions options);
  ~Env();

  // kInvalid with all problems, in upstream's form:
  //   ERROR: <input>:1:1: undeclared reference to 'x' (in container '')
  //    | x
  //    | ^
  // With `expected` types, also "must evaluate to bool" for a result that is none of them; dyn fits every one.
  Result<std::shared_ptr<const Program>> Compile(std::string_view expression,
                                                 const std::vector<Type>& expected = {}) const;

  // For Activation::Set(); -1: no such variable.
  int VariableIndex(std::string_view name) const;
  size_t variable_count() const;
  const std::string& variable_name(size_t index) const;

 private:
  friend class Program;
  struct Parts;
  explicit Env(std::unique_ptr<Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

using EnvPtr = std::shared_ptr<const Env>;

// The environments of one place where expressions stand.
struct EnvSet {
  EnvPtr new_expressions, stored_expressions;
  static EnvSet Make(EnvOptions options);  // its version is ignored
};

}  // namespace keelson::cel
