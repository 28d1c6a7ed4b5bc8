#include "lib/cel/check/unify.h"

namespace keelson::cel {
namespace {

// Types that null may be passed as.
bool Nullable(Type type) {
  switch (type->kind) {
    case TypeKind::kOpaque:
    case TypeKind::kObject:
    case TypeKind::kNull:
    case TypeKind::kDuration:
    case TypeKind::kTimestamp:
      return true;
    default:
      return false;
  }
}

bool EqualOrLessSpecific(Type a, Type b) {
  if (IsDyn(a) || a->kind == TypeKind::kParam) return true;
  if (IsDyn(b) || b->kind == TypeKind::kParam || a->kind != b->kind) return false;
  switch (a->kind) {
    case TypeKind::kType:
      return true;
    case TypeKind::kList:
    case TypeKind::kMap:
    case TypeKind::kOpaque:
      if (a->name != b->name || a->params != b->params) return false;
      for (int i = 0; i < a->params; ++i) {
        if (!EqualOrLessSpecific(a->param[i], b->param[i])) return false;
      }
      return true;
    default:
      return SameType(a, b);
  }
}

}  // namespace

Type Unifier::NewVariable() { return Variable(NewVariables(1)); }

int32_t Unifier::NewVariables(int count) {
  auto first = static_cast<int32_t>(variables_.size());
  for (int i = 0; i < count; ++i) {
    variables_.push_back(pool_.Variable(first + i));
    bound_.push_back(nullptr);
  }
  return first;
}

Type Unifier::Instantiate(Type type, int32_t base) {
  if (type->kind == TypeKind::kParam) return Variable(base + type->variable);
  if (type->params == 0) return type;
  Type first = Instantiate(type->param[0], base);
  Type second = type->params > 1 ? Instantiate(type->param[1], base) : nullptr;
  if (first == type->param[0] && (!second || second == type->param[1])) return type;
  switch (type->kind) {
    case TypeKind::kList:
      return pool_.List(first);
    case TypeKind::kMap:
      return pool_.Map(first, second);
    case TypeKind::kType:
      return pool_.TypeOf(first);
    default:
      return pool_.Optional(first);
  }
}

void Unifier::Bind(Type variable, Type type) {
  changes_.push_back({variable->variable, BoundTo(variable)});
  bound_[static_cast<size_t>(variable->variable)] = type;
}

bool Unifier::Assignable(Type from, Type to) {
  return AllOrNothing([&] { return Fits(from, to); });
}

void Unifier::Undo(size_t mark) {
  for (; changes_.size() > mark; changes_.pop_back()) {
    bound_[static_cast<size_t>(changes_.back().variable)] = changes_.back().before;
  }
}

// Whether `type` can be what the variable stands for.
bool Unifier::FitsVariable(Type type, Type variable, bool& bound) {
  Type known = BoundTo(variable);
  bound = known != nullptr;
  if (known) {
    if (SameType(type, known)) return true;
    if (!Fits(type, known)) return false;
    Type general = MostGeneral(type, known);
    if (general != variable) Bind(variable, general);
    return true;
  }
  if (Occurs(variable, type)) return false;
  Bind(variable, type);
  return true;
}

bool Unifier::Fits(Type from, Type to) {
  bool bound = false;
  if (to->kind == TypeKind::kParam) {
    if (from == to) return true;
    if (FitsVariable(from, to, bound)) return true;
    if (bound) return false;
  }
  if (from->kind == TypeKind::kParam) return FitsVariable(to, from, bound);
  if (IsDynOrError(from) || IsDynOrError(to)) return true;
  if (from->kind == TypeKind::kNull) return Nullable(to);
  if (from->kind != to->kind) return false;
  switch (from->kind) {
    case TypeKind::kType:
      return true;
    case TypeKind::kObject:
      return from->name == to->name;
    case TypeKind::kOpaque:
      if (from->name != to->name) return false;
      break;
    default:
      break;
  }
  if (from->params != to->params) return from->params == 0 || to->params == 0;
  for (int i = 0; i < from->params; ++i) {
    if (!Fits(from->param[i], to->param[i])) return false;
  }
  return true;
}

bool Unifier::Occurs(Type variable, Type in) const {
  if (in == variable || (in->kind == TypeKind::kParam && in->variable == variable->variable)) return true;
  if (in->kind == TypeKind::kParam) return BoundTo(in) && Occurs(variable, BoundTo(in));
  for (int i = 0; i < in->params; ++i) {
    if (Occurs(variable, in->param[i])) return true;
  }
  return false;
}

Type Unifier::Substitute(Type type, bool to_dyn) {
  if (type->kind == TypeKind::kParam) {
    if (Type known = BoundTo(type)) return Substitute(known, to_dyn);
    return to_dyn ? &types::kDyn : type;
  }
  if (type->params == 0) return type;
  Type first = Substitute(type->param[0], to_dyn);
  Type second = type->params > 1 ? Substitute(type->param[1], to_dyn) : nullptr;
  if (first == type->param[0] && (!second || second == type->param[1])) return type;
  switch (type->kind) {
    case TypeKind::kList:
      return pool_.List(first);
    case TypeKind::kMap:
      return pool_.Map(first, second);
    case TypeKind::kType:
      return pool_.TypeOf(first);
    default:
      return pool_.Optional(first);
  }
}

Type Unifier::MostGeneral(Type a, Type b) { return EqualOrLessSpecific(a, b) ? a : b; }

}  // namespace keelson::cel
