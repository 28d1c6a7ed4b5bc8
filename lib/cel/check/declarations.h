// Names that an environment declares beside its functions.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lib/cel/types/decl_type.h"

namespace keelson::cel {

// Immutable once built.
class Declarations {
 public:
  struct Variable {
    std::string name;  // may have dots: authorizer.requestResource
    Type type;
  };

  Declarations();  // with the names of CEL's own types

  void AddVariable(std::string name, Type type);
  // A type that expressions name, or construct if it has fields.
  void AddType(std::string name, Type type);

  // `name` is the root of types whose fields are anything: name, name.spec, name.spec.template.
  void AddFreeRoot(std::string name);
  bool IsFree(std::string_view type) const;

  int FindVariable(std::string_view name) const;  // index, -1: none
  Type FindType(std::string_view name) const;
  const std::vector<Variable>& variables() const { return variables_; }
  // True when some declared name goes on with a dot behind `root`.
  bool HasDotted(std::string_view root) const { return dotted_.count(std::string(root)) > 0; }

 private:
  void Note(const std::string& name);

  std::vector<Variable> variables_;
  std::unordered_map<std::string, int> variable_index_;
  std::unordered_map<std::string, Type> types_;
  std::unordered_set<std::string> dotted_;
  std::vector<std::string> free_roots_;
};

}  // namespace keelson::cel
