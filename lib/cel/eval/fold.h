// Comprehensions, and what macros put into them.
#pragma once

#include "lib/cel/eval/node.h"

namespace keelson::cel {

struct FoldPlan {
  const Node* range = nullptr;
  const Node* init = nullptr;
  const Node* condition = nullptr;
  const Node* step = nullptr;
  const Node* result = nullptr;
  size_t slot = 0;  // of the accumulator; the variables' follow
  bool two_variables = false;
};

class FoldNode : public Node {
 public:
  explicit FoldNode(const FoldPlan& plan) : plan_(plan) {}
  Value Eval(Frame& frame) const override;

 private:
  bool Round(Frame& frame) const;

  FoldPlan plan_;
};

// The empty list or map that a fold fills.
class FreshNode : public Node {
 public:
  explicit FreshNode(bool map) : map_(map) {}
  Value Eval(Frame& frame) const override;

 private:
  bool map_;
};

// accumulator + [element], of an accumulator that FreshNode made.
class AppendNode : public Node {
 public:
  AppendNode(size_t slot, const Node* element, bool literal)
      : slot_(slot), element_(element), literal_(literal) {}
  Value Eval(Frame& frame) const override;

 private:
  size_t slot_;
  const Node* element_;
  bool literal_;  // the list of one element is a literal, which costs nothing
};

// cel.@mapInsert(accumulator, key, value) or (accumulator, map).
class MapInsertNode : public Node {
 public:
  MapInsertNode(size_t slot, const Node* key, const Node* value) : slot_(slot), key_(key), value_(value) {}
  Value Eval(Frame& frame) const override;

 private:
  size_t slot_;
  const Node* key_;  // null: `value` is a map
  const Node* value_;
};

}  // namespace keelson::cel
