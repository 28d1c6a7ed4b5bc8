// Finds the selectors that may match labels without trying all of them: each is filed under one of its
// requirements.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cni/policy/objects.h"

namespace keelson::cni::policy {

// T: a cheap value with ==. Selectors of different scopes never meet.
template <typename T>
class SelectorIndex {
 public:
  void Add(std::string_view scope, const Selector& selector, const T& value) {
    for (std::string& key : KeysOf(scope, selector)) by_key_[std::move(key)].push_back(value);
  }
  void Remove(std::string_view scope, const Selector& selector, const T& value) {
    for (const std::string& key : KeysOf(scope, selector)) {
      auto found = by_key_.find(key);
      if (found == by_key_.end()) continue;
      std::erase(found->second, value);
      if (found->second.empty()) by_key_.erase(found);
    }
  }
  // Calls `each` once with every value whose selector may match; Selector::Matches() decides.
  template <typename Each>
  void Find(std::string_view scope, const Labels& labels, Each each) const {
    Visit(Rest(scope), each);
    for (const auto& [key, value] : labels) {
      Visit(Has(scope, key), each);
      Visit(Equals(scope, key, value), each);
    }
  }
  // Whether a selector is filed under a label; all others are candidates always.
  static bool IsSpecific(const Selector& selector) {
    return std::any_of(selector.requirements.begin(), selector.requirements.end(), [](const auto& wanted) {
      return wanted.op == Selector::Op::kIn || wanted.op == Selector::Op::kExists;
    });
  }

 private:
  // Scopes, keys and values contain none of these separators.
  static std::string Rest(std::string_view scope) { return std::string(scope) + "\1"; }
  static std::string Has(std::string_view scope, std::string_view key) {
    return std::string(scope) + "\2" + std::string(key);
  }
  static std::string Equals(std::string_view scope, std::string_view key, std::string_view value) {
    return std::string(scope) + "\3" + std::string(key) + "\4" + std::string(value);
  }

  static std::vector<std::string> KeysOf(std::string_view scope, const Selector& selector) {
    std::vector<std::string> out;
    for (const Selector::Requirement& wanted : selector.requirements) {
      if (wanted.op != Selector::Op::kIn) continue;
      for (const std::string& value : wanted.values) out.push_back(Equals(scope, wanted.key, value));
      std::sort(out.begin(), out.end());
      out.erase(std::unique(out.begin(), out.end()), out.end());
      return out;
    }
    for (const Selector::Requirement& wanted : selector.requirements) {
      if (wanted.op == Selector::Op::kExists) return {Has(scope, wanted.key)};
    }
    return {Rest(scope)};
  }

  template <typename Each>
  void Visit(const std::string& key, Each& each) const {
    auto found = by_key_.find(key);
    if (found == by_key_.end()) return;
    for (const T& value : found->second) each(value);
  }

  std::unordered_map<std::string, std::vector<T>> by_key_;
};

}  // namespace keelson::cni::policy
