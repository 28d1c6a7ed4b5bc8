#include "cni/policy/steps.h"

#include <set>
#include <string>
#include <utility>
#include <variant>

namespace keelson::cni::policy {
namespace {

// What the transaction makes without a trace of a former object of the name.
struct New {
  std::set<std::string> chains, sets;
  bool table = false;  // or something that has to be done at once
};

New FindNew(const nft::Transaction& transaction) {
  New out;
  std::set<std::string> gone_chains, gone_sets;
  for (const nft::Op& op : transaction.ops()) {
    if (const auto* chain = std::get_if<nft::op::AddChain>(&op)) {
      if (!chain->chain.hook) out.chains.insert(chain->chain.name);
    } else if (const auto* set = std::get_if<nft::op::AddSet>(&op)) {
      out.sets.insert(set->set.name);
    } else if (const auto* flushed = std::get_if<nft::op::FlushChain>(&op)) {
      gone_chains.insert(flushed->name);
    } else if (const auto* deleted = std::get_if<nft::op::DeleteChain>(&op)) {
      gone_chains.insert(deleted->name);
    } else if (const auto* unset = std::get_if<nft::op::DeleteSet>(&op)) {
      gone_sets.insert(unset->name);
    } else if (std::holds_alternative<nft::op::AddTable>(op) ||
               std::holds_alternative<nft::op::DeleteTable>(op)) {
      out.table = true;
    }
  }
  for (const std::string& name : gone_chains) out.chains.erase(name);
  for (const std::string& name : gone_sets) out.table = out.table || out.sets.contains(name);
  return out;
}

bool IsUnseen(const nft::Op& op, const New& made) {
  if (const auto* chain = std::get_if<nft::op::AddChain>(&op)) return made.chains.contains(chain->chain.name);
  if (const auto* rule = std::get_if<nft::op::AddRule>(&op)) return made.chains.contains(rule->rule.chain());
  if (const auto* set = std::get_if<nft::op::AddSet>(&op)) return made.sets.contains(set->set.name);
  if (const auto* elements = std::get_if<nft::op::AddElements>(&op)) {
    return made.sets.contains(elements->set.name);
  }
  return false;
}

}  // namespace

Steps InSteps(nft::Transaction transaction) {
  Steps out{nft::Transaction(transaction.table()), nft::Transaction(transaction.table())};
  const New made = FindNew(transaction);
  if (made.table || (made.chains.empty() && made.sets.empty())) {
    out.decisive = std::move(transaction);
    return out;
  }
  for (const nft::Op& op : transaction.ops()) (IsUnseen(op, made) ? out.unseen : out.decisive).Add(op);
  return out;
}

}  // namespace keelson::cni::policy
