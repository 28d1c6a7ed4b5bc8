// Type inference: which types may stand for which, and what type variables are bound to. The rules are cel-go's.
#pragma once

#include <vector>

#include "lib/cel/types/type.h"

namespace keelson::cel {

class Unifier {
 public:
  explicit Unifier(TypePool& pool) : pool_(pool) {}

  Type NewVariable();
  // `count` variables in a row; the number of the first.
  int32_t NewVariables(int count);
  Type Variable(int32_t number) const { return variables_[static_cast<size_t>(number)]; }

  // The type with parameter i replaced by variable base + i.
  Type Instantiate(Type type, int32_t base);

  // True when a value of type `from` may be passed as `to`; binds variables. Nothing changes when it may not.
  bool Assignable(Type from, Type to);

  // Runs `step`; what it bound is free again when it returns false.
  template <typename F>
  bool AllOrNothing(F step) {
    size_t mark = changes_.size();
    if (step()) return true;
    Undo(mark);
    return false;
  }

  // Bound variables replaced by what they are bound to; others by dyn if `to_dyn`.
  Type Substitute(Type type, bool to_dyn);

  // The more general one of two types that fit each other.
  static Type MostGeneral(Type a, Type b);

 private:
  bool Fits(Type from, Type to);
  bool FitsVariable(Type type, Type variable, bool& bound);
  bool Occurs(Type variable, Type in) const;
  void Bind(Type variable, Type type);
  void Undo(size_t mark);
  Type BoundTo(Type variable) const { return bound_[static_cast<size_t>(variable->variable)]; }

  struct Change {
    int32_t variable;
    Type before;
  };

  TypePool& pool_;
  std::vector<Type> variables_;
  std::vector<Type> bound_;  // by number; null: free
  std::vector<Change> changes_;
};

}  // namespace keelson::cel
