// The owners that claim one element of a set, each with its datum. The first claim wins. Nearly always there is one
// owner, which takes no memory besides the object.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "proxy/nftables/contribution.h"

namespace keelson::proxy::nftables {

class Claims {
 public:
  struct Claim {
    const void* owner = nullptr;
    Datum datum;
  };

  bool empty() const { return !first_.owner; }
  // The first owner's. Not when empty().
  const Datum& Held() const { return first_.datum; }
  // The owner's datum; null: it has no claim.
  Datum* Of(const void* owner) {
    if (first_.owner == owner) return &first_.datum;
    if (!rest_) return nullptr;
    auto found = Find(owner);
    return found == rest_->end() ? nullptr : &found->datum;
  }
  // The owner must have no claim yet.
  void Add(const void* owner, Datum datum) {
    if (empty()) {
      first_ = {owner, std::move(datum)};
      return;
    }
    if (!rest_) rest_ = std::make_unique<std::vector<Claim>>();
    rest_->push_back({owner, std::move(datum)});
  }
  // The owner must have a claim.
  void Remove(const void* owner) {
    if (rest_ && first_.owner != owner) {
      rest_->erase(Find(owner));
    } else if (rest_) {
      first_ = std::move(rest_->front());
      rest_->erase(rest_->begin());
    } else {
      first_ = {};
    }
    if (rest_ && rest_->empty()) rest_ = nullptr;
  }

 private:
  std::vector<Claim>::iterator Find(const void* owner) {
    return std::find_if(rest_->begin(), rest_->end(), [&](const Claim& c) { return c.owner == owner; });
  }

  Claim first_;
  std::unique_ptr<std::vector<Claim>> rest_;
};

}  // namespace keelson::proxy::nftables
