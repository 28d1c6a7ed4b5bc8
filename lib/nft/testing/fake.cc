#include "lib/nft/testing/fake.h"

#include <cerrno>

#include "lib/nft/text.h"

namespace keelson::nft {
namespace {

// The sets and chains that a rule refers to.
void References(const Rule& rule, std::vector<std::string>& sets, std::vector<std::string>& chains) {
  for (const Expr& e : rule.exprs()) {
    if (auto* x = std::get_if<expr::Lookup>(&e)) sets.push_back(x->set);
    if (auto* x = std::get_if<expr::Map>(&e)) sets.push_back(x->set);
    if (auto* x = std::get_if<expr::VerdictMap>(&e)) sets.push_back(x->set);
    if (auto* x = std::get_if<expr::Update>(&e)) sets.push_back(x->set);
    if (auto* x = std::get_if<expr::Forget>(&e)) sets.push_back(x->set);
    if (auto* x = std::get_if<expr::Finish>(&e); x && !x->verdict.chain.empty()) {
      chains.push_back(x->verdict.chain);
    }
  }
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  for (const std::string& n : names) {
    if (n == name) return true;
  }
  return false;
}

bool UsesChain(const Ruleset& table, const std::string& name) {
  for (const auto& [chain, contents] : table.chains) {
    if (chain == name) continue;  // a chain's own rules go with it
    for (const Rule& rule : contents.rules) {
      std::vector<std::string> sets, chains;
      References(rule, sets, chains);
      if (Contains(chains, name)) return true;
    }
  }
  for (const auto& [set, contents] : table.sets) {
    for (const auto& [key, element] : contents.elements) {
      if (element.verdict && element.verdict->chain == name) return true;
    }
  }
  return false;
}

bool UsesSet(const Ruleset& table, const std::string& name) {
  for (const auto& [chain, contents] : table.chains) {
    for (const Rule& rule : contents.rules) {
      std::vector<std::string> sets, chains;
      References(rule, sets, chains);
      if (Contains(sets, name)) return true;
    }
  }
  return false;
}

// Applies one change to a copy; returns an errno value, 0 for success.
struct Applier {
  std::optional<Ruleset>& table;
  const Table& name;

  int operator()(const op::AddTable&) {
    if (!table) table = Ruleset{.table = name};
    return 0;
  }
  int operator()(const op::DeleteTable&) {
    if (!table) return ENOENT;
    table.reset();
    return 0;
  }
  int operator()(const op::AddChain& o) {
    if (!table) return ENOENT;
    auto [at, added] = table->chains.try_emplace(o.chain.name);
    if (added) {
      at->second.chain = o.chain;
      return 0;
    }
    if (o.exclusive) return EEXIST;
    return at->second.chain == o.chain ? 0 : EEXIST;
  }
  int operator()(const op::DeleteChain& o) {
    if (!table || !table->chains.contains(o.name)) return ENOENT;
    if (UsesChain(*table, o.name)) return EBUSY;
    table->chains.erase(o.name);
    return 0;
  }
  int operator()(const op::FlushChain& o) {
    if (!table || !table->chains.contains(o.name)) return ENOENT;
    table->chains[o.name].rules.clear();
    return 0;
  }
  int operator()(const op::AddRule& o) {
    if (!table || !table->chains.contains(o.rule.chain())) return ENOENT;
    std::vector<std::string> sets, chains;
    References(o.rule, sets, chains);
    for (const auto& set : sets) {
      if (!table->sets.contains(set)) return ENOENT;
    }
    for (const auto& chain : chains) {
      if (!table->chains.contains(chain)) return ENOENT;
    }
    table->chains[o.rule.chain()].rules.push_back(o.rule);
    return 0;
  }
  // Rules have no handles here: callers delete single rules only in tables of other programs.
  int operator()(const op::DeleteRule&) { return EOPNOTSUPP; }
  int operator()(const op::AddSet& o) {
    if (!table) return ENOENT;
    auto [at, added] = table->sets.try_emplace(o.set.name);
    if (!added) return at->second.set == o.set ? 0 : EEXIST;
    at->second.set = o.set;
    return 0;
  }
  int operator()(const op::DeleteSet& o) {
    if (!table || !table->sets.contains(o.name)) return ENOENT;
    if (UsesSet(*table, o.name)) return EBUSY;
    table->sets.erase(o.name);
    return 0;
  }
  int operator()(const op::AddElements& o) {
    if (!table || !table->sets.contains(o.set.name)) return ENOENT;
    auto& contents = table->sets[o.set.name];
    for (const Element& element : o.elements) {
      if (element.key.size() != WidthOf(contents.set.key) ||
          element.data.size() != WidthOf(contents.set.data) ||
          element.verdict.has_value() != contents.set.verdicts) {
        return EINVAL;
      }
      if (element.verdict && !element.verdict->chain.empty() &&
          !table->chains.contains(element.verdict->chain)) {
        return ENOENT;
      }
      auto [at, added] = contents.elements.try_emplace(element.key, element);
      bool same = at->second.data == element.data && at->second.verdict == element.verdict;
      if (!added && (o.exclusive || !same)) return EEXIST;
    }
    return 0;
  }
  int operator()(const op::DeleteElements& o) {
    if (!table || !table->sets.contains(o.set.name)) return ENOENT;
    auto& contents = table->sets[o.set.name];
    for (const Element& element : o.elements) {
      if (contents.elements.erase(element.key) == 0) return ENOENT;
    }
    return 0;
  }
};

}  // namespace

Result<> FakeKernel::Apply(const Transaction& transaction) {
  if (transaction.empty()) return {};
  const Table& name = transaction.table();
  auto key = std::make_pair(name.family, name.name);
  std::optional<Ruleset> copy;
  if (auto found = tables_.find(key); found != tables_.end()) copy = found->second;
  for (const Op& op : transaction.ops()) {
    if (int failed = std::visit(Applier{copy, name}, op); failed != 0) {
      return Error::FromErrno(failed, ToText(name) + ": " + ToText(op));
    }
  }
  tables_.erase(key);
  if (copy) tables_.emplace(key, std::move(*copy));
  ++applied_;
  return {};
}

Result<bool> FakeKernel::HasChain(const Table& table, const std::string& chain) {
  auto found = tables_.find({table.family, table.name});
  return found != tables_.end() && found->second.chains.contains(chain);
}

Result<std::optional<Ruleset>> FakeKernel::Read(const Table& table) {
  auto found = tables_.find({table.family, table.name});
  if (found == tables_.end()) return std::optional<Ruleset>();
  return std::optional<Ruleset>(found->second);
}

}  // namespace keelson::nft
