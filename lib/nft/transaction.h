// A list of changes to one table that the kernel makes all at once, or not at all. Order matters as in an nft
// script: what is referred to comes first.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lib/nft/model.h"

namespace keelson::nft {

namespace op {
struct AddTable {};     // present is fine
struct DeleteTable {};  // kNotFound when absent
struct AddChain {
  Chain chain;
  bool exclusive;
};  // exclusive: kAlreadyExists when present
struct DeleteChain {
  std::string name;
};  // with its rules; EBUSY while referred to
struct FlushChain {
  std::string name;
};
struct AddRule {
  Rule rule;
};  // at the end of its chain
struct DeleteRule {
  std::string chain;
  uint64_t handle;  // program.h tells it; kNotFound when absent
};
struct AddSet {
  Set set;
};  // present with the same shape is fine
struct DeleteSet {
  std::string name;
};
// Present with the same datum is fine, with another one kAlreadyExists. kInvalid for keys of a wrong width.
struct AddElements {
  Set set;
  std::vector<Element> elements;
  bool exclusive = false;  // kAlreadyExists when present
};
struct DeleteElements {
  Set set;
  std::vector<Element> elements;
};  // kNotFound when absent
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

  const Table& table() const { return table_; }
  const std::vector<Op>& ops() const { return ops_; }
  bool empty() const { return ops_.empty(); }

 private:
  Table table_;
  std::vector<Op> ops_;
};

}  // namespace keelson::nft
