// Nodes of names, fields, logic and literals.
#pragma once

#include <memory>
#include <vector>

#include <re2/re2.h>

#include "lib/cel/eval/node.h"
#include "lib/cel/functions/function.h"
#include "lib/cel/types/decl_type.h"

namespace keelson::cel {

class ConstantNode : public Node {
 public:
  explicit ConstantNode(Value value) : value_(value) {}
  Value Eval(Frame&) const override { return value_; }
  const Value* constant() const override { return &value_; }

 private:
  Value value_;
};

class VariableNode : public Node {
 public:
  explicit VariableNode(size_t index) : index_(index) {}
  Value Eval(Frame& frame) const override {
    return frame.Charge(1) ? frame.variables[index_] : frame.StopError();
  }

 private:
  size_t index_;
};

class LocalNode : public Node {
 public:
  explicit LocalNode(size_t slot) : slot_(slot) {}
  Value Eval(Frame& frame) const override {
    return frame.Charge(1) ? frame.locals[slot_] : frame.StopError();
  }
  size_t slot() const { return slot_; }

 private:
  size_t slot_;
};

// target.name
class SelectNode : public Node {
 public:
  SelectNode(const Node* target, std::string_view name) : target_(target), key_(Value::String(name)) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* target_;
  Value key_;
};

// has(target.name): free, but for its target.
class HasNode : public Node {
 public:
  HasNode(const Node* target, std::string_view name) : target_(target), key_(Value::String(name)) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* target_;
  Value key_;
};

// target[key], target[?key], target.?name
class IndexNode : public Node {
 public:
  IndexNode(const Node* target, const Node* key, bool optional)
      : target_(target), key_(key), optional_(optional) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* target_;
  const Node* key_;
  bool optional_;
};

// && and ||: a side that decides hides an error of the other.
class LogicalNode : public Node {
 public:
  LogicalNode(const Node* left, const Node* right, bool is_or) : left_(left), right_(right), is_or_(is_or) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* left_;
  const Node* right_;
  bool is_or_;
};

class ConditionalNode : public Node {
 public:
  ConditionalNode(const Node* condition, const Node* then, const Node* otherwise)
      : condition_(condition), then_(then), otherwise_(otherwise) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* condition_;
  const Node* then_;
  const Node* otherwise_;
};

class NotStrictlyFalseNode : public Node {
 public:
  explicit NotStrictlyFalseNode(const Node* operand) : operand_(operand) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* operand_;
};

// optional.or(other) and optional.orValue(value): the argument is evaluated only when needed.
class OptionalOrNode : public Node {
 public:
  OptionalOrNode(const Node* optional, const Node* other, bool value)
      : optional_(optional), other_(other), value_(value) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* optional_;
  const Node* other_;
  bool value_;
};

class CallNode : public Node {
 public:
  // `overloads` are those that the checker found possible.
  CallNode(const Function& function, std::vector<const Overload*> overloads, std::vector<const Node*> args);
  Value Eval(Frame& frame) const override;

 private:
  const Overload* Choose(std::span<const Value> args) const;

  const Function& function_;
  std::vector<const Overload*> overloads_;
  std::vector<const Node*> args_;
  Implementation call_ = nullptr;  // when it needs no choice
  CostRule cost_;
};

// text.matches('literal')
class MatchesNode : public Node {
 public:
  MatchesNode(const Node* text, Value pattern, std::shared_ptr<const RE2> regex)
      : text_(text), pattern_(pattern), regex_(std::move(regex)) {}
  Value Eval(Frame& frame) const override;

 private:
  const Node* text_;
  Value pattern_;
  std::shared_ptr<const RE2> regex_;
};

struct Elements {
  std::vector<const Node*> nodes;
  std::vector<bool> optional;  // empty, or one for each element, entry or field
};

class ListNode : public Node {
 public:
  explicit ListNode(Elements elements) : elements_(std::move(elements)) {}
  Value Eval(Frame& frame) const override;

 private:
  Elements elements_;
};

class MapNode : public Node {
 public:
  explicit MapNode(Elements entries) : entries_(std::move(entries)) {}  // key, value, key, value, ...
  Value Eval(Frame& frame) const override;

 private:
  Elements entries_;
};

class StructNode : public Node {
 public:
  StructNode(Type type, std::vector<std::string_view> names, Elements fields)
      : type_(type), names_(std::move(names)), fields_(std::move(fields)) {}
  Value Eval(Frame& frame) const override;

 private:
  Type type_;
  std::vector<std::string_view> names_;
  Elements fields_;
};

}  // namespace keelson::cel
