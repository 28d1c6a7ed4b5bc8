#include "cni/policy/table_changes.h"

namespace keelson::cni::policy {

void TableChanges::Put(const std::string& set, nft::Element element) {
  std::string key = element.key;
  auto [change, is_new] = elements_[set].try_emplace(std::move(key));
  change->second.now = std::move(element);
}

void TableChanges::Erase(const std::string& set, nft::Element element) {
  std::string key = element.key;
  auto [change, is_new] = elements_[set].try_emplace(std::move(key));
  if (is_new) change->second.before = std::move(element);
  change->second.now.reset();
}

void TableChanges::AddSet(const nft::Set& set) { sets_[set.name] = set; }

void TableChanges::RemoveSet(const std::string& name) {
  elements_.erase(name);
  auto [there, is_old] = sets_.try_emplace(name);
  if (!is_old) sets_.erase(there);
}

void TableChanges::AddChain(const std::string& name, std::vector<nft::Rule> rules) {
  chains_[name] = std::move(rules);
}

void TableChanges::RemoveChain(const std::string& name) {
  auto [there, is_old] = chains_.try_emplace(name);
  if (!is_old) chains_.erase(there);
}

void TableChanges::Forget() {
  elements_.clear();
  sets_.clear();
  chains_.clear();
}

bool TableChanges::IsNew(const std::string& set) const {
  auto found = sets_.find(set);
  return found != sets_.end() && found->second;
}
bool TableChanges::IsRemoved(const std::string& set) const {
  auto found = sets_.find(set);
  return found != sets_.end() && !found->second;
}

std::vector<nft::Element> TableChanges::Gone(const Elements& elements) {
  std::vector<nft::Element> out;
  for (const auto& [key, change] : elements) {
    if (change.before && !(change.now && *change.now == *change.before)) out.push_back(*change.before);
  }
  return out;
}

std::vector<nft::Element> TableChanges::Added(const Elements& elements) {
  std::vector<nft::Element> out;
  for (const auto& [key, change] : elements) {
    if (change.now && !(change.before && *change.before == *change.now)) out.push_back(*change.now);
  }
  return out;
}

}  // namespace keelson::cni::policy
