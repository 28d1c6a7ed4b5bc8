#include "lib/nft/diff.h"

namespace keelson::nft {
namespace {

bool SameRules(const std::vector<Rule>& a, const std::vector<Rule>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].Fingerprint() != b[i].Fingerprint()) return false;
  }
  return true;
}

class Differ {
 public:
  Differ(const Ruleset& found, const Ruleset& wanted, Transaction& out)
      : found_(found), wanted_(wanted), out_(out) {}

  // References decide the order: a chain or set that changes its kind or shape can be deleted only once no
  // rule refers to it.
  void Run() {
    FindStale();
    for (const auto& [name, contents] : wanted_.chains) {
      if (!Present(contents.chain)) continue;
      if (NeedsRules(name)) out_.FlushChain(name);
    }
    for (const auto& [name, contents] : found_.chains) {
      if (stale_chains_.contains(name)) out_.FlushChain(name);
    }
    DropElements();
    for (const auto& name : stale_sets_) out_.DeleteSet(name.first);
    for (const auto& name : stale_chains_) out_.DeleteChain(name.first);
    for (const auto& [name, contents] : wanted_.chains) {
      if (!Present(contents.chain)) out_.AddChain(contents.chain);
    }
    for (const auto& [name, contents] : wanted_.sets) {
      if (!SameSet(name)) out_.AddSet(contents.set);
    }
    // Rules before elements: for each new rule that reads a map the kernel walks all its elements.
    for (const auto& [name, contents] : wanted_.chains) {
      if (!NeedsRules(name)) continue;
      for (const Rule& rule : contents.rules) out_.AddRule(rule);
    }
    AddElements();
  }

 private:
  bool Present(const Chain& chain) const {
    auto found = found_.chains.find(chain.name);
    return found != found_.chains.end() && found->second.chain == chain;
  }
  bool SameSet(const std::string& name) const {
    auto found = found_.sets.find(name);
    auto wanted = wanted_.sets.find(name);
    return found != found_.sets.end() && wanted != wanted_.sets.end() &&
           found->second.set == wanted->second.set;
  }
  // A set that is replaced takes the rules that refer to it along. Rules read from the kernel do not say
  // which sets they refer to, so all rules are written again.
  bool NeedsRules(const std::string& chain) const {
    auto found = found_.chains.find(chain);
    const auto& wanted = wanted_.chains.at(chain);
    if (found == found_.chains.end() || !(found->second.chain == wanted.chain)) return true;
    return remade_ || !SameRules(found->second.rules, wanted.rules);
  }

  void FindStale() {
    for (const auto& [name, contents] : found_.sets) {
      if (SameSet(name)) continue;
      stale_sets_[name] = true;
      remade_ = remade_ || wanted_.sets.contains(name);
    }
    for (const auto& [name, contents] : found_.chains) {
      auto wanted = wanted_.chains.find(name);
      if (wanted == wanted_.chains.end() || !(wanted->second.chain == contents.chain)) {
        stale_chains_[name] = true;
      }
    }
  }

  // Elements that are gone or changed. The kernel cannot change a datum: those are deleted and added again.
  void DropElements() {
    for (const auto& [name, contents] : found_.sets) {
      if (!SameSet(name) || contents.set.dynamic) continue;
      const auto& wanted = wanted_.sets.at(name).elements;
      std::vector<Element> gone;
      for (const auto& [key, element] : contents.elements) {
        auto other = wanted.find(key);
        if (other == wanted.end() || !(other->second == element) || IsStale(element)) gone.push_back(element);
      }
      out_.DeleteElements(contents.set, std::move(gone));
    }
  }

  void AddElements() {
    for (const auto& [name, contents] : wanted_.sets) {
      if (contents.set.dynamic) continue;
      auto found = found_.sets.find(name);
      bool same = SameSet(name);
      std::vector<Element> added;
      for (const auto& [key, element] : contents.elements) {
        if (same) {
          auto other = found->second.elements.find(key);
          if (other != found->second.elements.end() && other->second == element && !IsStale(element)) {
            continue;
          }
        }
        added.push_back(element);
      }
      out_.AddElements(contents.set, std::move(added));
    }
  }

  bool IsStale(const Element& element) const {
    return element.verdict && stale_chains_.contains(element.verdict->chain);
  }

  const Ruleset& found_;
  const Ruleset& wanted_;
  Transaction& out_;
  std::map<std::string, bool> stale_sets_, stale_chains_;
  bool remade_ = false;
};

}  // namespace

Transaction Diff(const std::optional<Ruleset>& found, const Ruleset& wanted) {
  Transaction out(wanted.table);
  if (!found) out.AddTable();
  Ruleset none{.table = wanted.table};
  Differ(found ? *found : none, wanted, out).Run();
  return out;
}

}  // namespace keelson::nft
