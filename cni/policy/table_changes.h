// Collects changes of one table between two transactions; what comes and goes in between leaves no trace.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "lib/nft/transaction.h"

namespace keelson::cni::policy {

class TableChanges {
 public:
  explicit TableChanges(nft::Table table) : table_(std::move(table)) {}

  // The caller knows what the table holds: an element that is put was absent, one that is erased present.
  void Put(const std::string& set, nft::Element element);
  void Erase(const std::string& set, nft::Element element);
  void AddSet(const nft::Set& set);
  void RemoveSet(const std::string& name);
  void AddChain(const std::string& name, std::vector<nft::Rule> rules);
  void RemoveChain(const std::string& name);

  // What has changed, in an order that the kernel takes. `shape` gives sets that are not new. Sets of
  // `leave_out` are passed over. Forgets all.
  template <typename ShapeOf>
  nft::Transaction Take(ShapeOf shape, const std::map<std::string, nft::Set>& leave_out) {
    nft::Transaction out(table_);
    for (const auto& [name, rules] : chains_) {
      if (!rules) out.FlushChain(name);
    }
    for (auto& [name, elements] : elements_) {
      if (IsNew(name) || IsRemoved(name) || leave_out.contains(name)) continue;
      out.DeleteElements(shape(name), Gone(elements));
    }
    for (const auto& [name, set] : sets_) {
      if (!set) out.DeleteSet(name);
    }
    for (const auto& [name, rules] : chains_) {
      if (!rules) out.DeleteChain(name);
    }
    for (const auto& [name, rules] : chains_) {
      if (rules) out.AddChain({name});
    }
    for (const auto& [name, set] : sets_) {
      if (set) out.AddSet(*set);
    }
    for (auto& [name, rules] : chains_) {
      if (!rules) continue;
      for (nft::Rule& rule : *rules) out.AddRule(std::move(rule));
    }
    for (auto& [name, elements] : elements_) {
      if (IsRemoved(name) || leave_out.contains(name)) continue;
      out.AddElements(IsNew(name) ? *sets_.at(name) : shape(name), Added(elements));
    }
    Forget();
    return out;
  }
  void Forget();

 private:
  struct Change {
    std::optional<nft::Element> before, now;
  };
  using Elements = std::unordered_map<std::string, Change>;

  bool IsNew(const std::string& set) const;
  bool IsRemoved(const std::string& set) const;
  static std::vector<nft::Element> Gone(const Elements& elements);
  static std::vector<nft::Element> Added(const Elements& elements);

  const nft::Table table_;
  std::map<std::string, Elements> elements_;
  // New ones with their contents, and nullopt for those that are removed.
  std::map<std::string, std::optional<nft::Set>> sets_;
  std::map<std::string, std::optional<std::vector<nft::Rule>>> chains_;
};

}  // namespace keelson::cni::policy
