// A list of changes to one table that the kernel makes all at once, or not at all. Order matters, as in an
// nft script: add an object before anything refers to it.
#pragma once

#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/nft/model.h"

namespace keelson::nft {

namespace op {
struct AddTable {};     // present is fine
struct DeleteTable {};  // kNotFound when absent
// exclusive: kAlreadyExists when present.
struct AddChain {
  Chain chain;
  bool exclusive;
};
// Also deletes the chain's rules. EBUSY while something refers to the chain.
struct DeleteChain {
  std::string name;
};
struct FlushChain {
  std::string name;
};
// Appends to its chain.
struct AddRule {
  Rule rule;
};
struct DeleteRule {
  std::string chain;
  uint64_t handle;  // from program.h; kNotFound when absent
};
// A set that is present with the same shape is fine.
struct AddSet {
  Set set;
};
struct DeleteSet {
  std::string name;
};
// An element that is present with the same datum is fine, with another one kAlreadyExists. kInvalid for
// keys of the wrong width.
struct AddElements {
  Set set;
  std::vector<Element> elements;
  bool exclusive = false;  // kAlreadyExists when present
};
// kNotFound when an element is absent.
struct DeleteElements {
  Set set;
  std::vector<Element> elements;
};
}  // namespace op

using Op =
    std::variant<op::AddTable, op::DeleteTable, op::AddChain, op::DeleteChain, op::FlushChain, op::AddRule,
                 op::DeleteRule, op::AddSet, op::DeleteSet, op::AddElements, op::DeleteElements>;

class Transaction {
 public:
  explicit Transaction(Table table) : table_(std::move(table)) {}

  void AddTable() { ops_.emplace_back(op::AddTable{}); }
  void DeleteTable() { ops_.emplace_back(op::DeleteTable{}); }
  void AddChain(Chain chain) { ops_.emplace_back(op::AddChain{std::move(chain), false}); }
  void CreateChain(Chain chain) { ops_.emplace_back(op::AddChain{std::move(chain), true}); }
  void DeleteChain(std::string name) { ops_.emplace_back(op::DeleteChain{std::move(name)}); }
  void FlushChain(std::string name) { ops_.emplace_back(op::FlushChain{std::move(name)}); }
  void AddRule(Rule rule) { ops_.emplace_back(op::AddRule{std::move(rule)}); }
  void DeleteRule(std::string chain, uint64_t handle) {
    ops_.emplace_back(op::DeleteRule{std::move(chain), handle});
  }
  void AddSet(Set set) { ops_.emplace_back(op::AddSet{std::move(set)}); }
  void DeleteSet(std::string name) { ops_.emplace_back(op::DeleteSet{std::move(name)}); }
  void AddElements(Set set, std::vector<Element> elements) {
    if (!elements.empty()) ops_.emplace_back(op::AddElements{std::move(set), std::move(elements), false});
  }
  void CreateElements(Set set, std::vector<Element> elements) {
    if (!elements.empty()) ops_.emplace_back(op::AddElements{std::move(set), std::move(elements), true});
  }
  void DeleteElements(Set set, std::vector<Element> elements) {
    if (!elements.empty()) ops_.emplace_back(op::DeleteElements{std::move(set), std::move(elements)});
  }

  void Add(Op op) { ops_.push_back(std::move(op)); }
  // The changes of another transaction on the same table follow.
  void Append(Transaction other) {
    ops_.insert(ops_.end(), std::make_move_iterator(other.ops_.begin()),
                std::make_move_iterator(other.ops_.end()));
  }

  const Table& table() const { return table_; }
  const std::vector<Op>& ops() const { return ops_; }
  bool empty() const { return ops_.empty(); }

 private:
  Table table_;
  std::vector<Op> ops_;
};

}  // namespace keelson::nft
