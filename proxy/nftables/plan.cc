#include "proxy/nftables/plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace keelson::proxy::nftables {
namespace {

// Each costs the first packet of a flow one lookup.
constexpr size_t kIdlePicks = 4;

}  // namespace

Plan::Plan(Options options) : options_(std::move(options)) {}

void Plan::SetService(const std::string& key, const std::vector<ResolvedPort>& ports) {
  held_.erase(key);
  if (ports.empty()) {
    auto found = owners_.find(key);
    if (found == owners_.end()) return;
    Replace(found->second, {});
    owners_.erase(found);
    unsettled_.erase(key);
    return;
  }
  Owner& owner = owners_[key];
  Replace(owner, ContributionOf(ports, node_ips_, options_.ipvs, owner.slots));
  unsettled_.insert(key);
}

void Plan::ForgetServices() {
  held_.clear();
  unsettled_.clear();
  for (auto& [key, owner] : owners_) Replace(owner, {});
  owners_.clear();
}

void Plan::SetNodeIps(const std::vector<IpAddress>& ips) {
  node_ips_ = ips;
  Contribution now;
  for (const IpAddress& ip : ips) {
    if (ip.is_v4() == options_.v4) now.items.push_back({kNodePortIps, nft::Key().Ip(ip).bytes(), {}});
  }
  Replace(node_, std::move(now));
}

void Plan::Guard(const IpAddress& ip, bool on) {
  Contribution now;
  if (on) now.items.push_back({kClusterIps, nft::Key().Ip(ip).bytes(), {}});
  Replace(guarded_[ip], std::move(now));
  if (!on) guarded_.erase(ip);
}

void Plan::SetServiceCidrs(const std::vector<IpPrefix>& cidrs) {
  service_cidrs_changed_ = service_cidrs_changed_ || cidrs != service_cidrs_;
  service_cidrs_ = cidrs;
}

Contribution Plan::Present(const Owner& owner) {
  Contribution out{.picks = owner.picks};
  for (const auto& [set, key] : owner.keys) {
    out.items.push_back({set, *key, *claims_[set].at(*key).Of(&owner)});
  }
  return out;
}

void Plan::Hold(const std::string& key) {
  auto owner = owners_.find(key);
  if (owner == owners_.end() || held_.contains(key)) return;
  held_[key] = Present(owner->second);
  Replace(owner->second, {});
}

void Plan::Release(const std::string& key) {
  auto held = held_.find(key);
  if (held == held_.end()) return;
  Contribution contribution = std::move(held->second);
  held_.erase(held);
  Replace(owners_.at(key), std::move(contribution));
  unsettled_.insert(key);
}

std::vector<std::string> Plan::Held() const {
  std::vector<std::string> out;
  for (const auto& [key, contribution] : held_) out.push_back(key);
  std::sort(out.begin(), out.end());
  return out;
}

void Plan::Touch(SetId set, const std::string& key) {
  if (!noting_) return;
  auto [at, added] = before_[set].try_emplace(key);
  if (!added) return;
  auto found = claims_[set].find(key);
  if (found != claims_[set].end()) at->second = found->second.Held();
}

void Plan::Replace(Owner& owner, Contribution now) {
  auto& [items, picks] = now;
  // One owner claims a key once, however many of its ports ask for it.
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tie(a.set, a.key) < std::tie(b.set, b.key);
  });
  items.erase(std::unique(items.begin(), items.end(),
                          [](const Item& a, const Item& b) { return a.set == b.set && a.key == b.key; }),
              items.end());
  std::sort(picks.begin(), picks.end());
  picks.erase(std::unique(picks.begin(), picks.end()), picks.end());
  for (const PickSpec& spec : picks) ++picks_[spec];
  for (const PickSpec& spec : owner.picks) --picks_[spec];

  auto old = owner.keys.begin();
  auto drop = [&](const std::pair<SetId, const std::string*>& gone) {
    Touch(gone.first, *gone.second);
    auto found = claims_[gone.first].find(*gone.second);
    found->second.Remove(&owner);
    if (found->second.empty()) claims_[gone.first].erase(found);
  };
  std::vector<std::pair<SetId, const std::string*>> keys;
  keys.reserve(items.size());
  for (Item& item : items) {
    while (old != owner.keys.end() && std::tie(old->first, *old->second) < std::tie(item.set, item.key)) {
      drop(*old++);
    }
    if (old != owner.keys.end() && old->first == item.set && *old->second == item.key) ++old;
    auto claimed = claims_[item.set].try_emplace(std::move(item.key)).first;
    auto& [key, claims] = *claimed;
    Datum* mine = claims.Of(&owner);
    if (!mine || *mine != item.datum) {
      // Touch looks at the claims as they were, so an entry made just now must not show.
      if (claims.empty()) {
        if (noting_) before_[item.set].try_emplace(key);
      } else {
        Touch(item.set, key);
      }
      if (mine) {
        *mine = std::move(item.datum);
      } else {
        claims.Add(&owner, std::move(item.datum));
      }
    }
    keys.emplace_back(item.set, &key);
  }
  while (old != owner.keys.end()) drop(*old++);
  owner.keys = std::move(keys);
  owner.picks = std::move(picks);
}

nft::Element Plan::ElementOf(SetId set, const std::string& key, const Datum& datum) {
  if (SetOf(set, true).interval) return {.key = key, .key_end = datum};
  return {.key = key, .data = datum};
}

bool Plan::IsIdle(const PickSpec& spec) const {
  return std::find(idle_picks_.begin(), idle_picks_.end(), spec) != idle_picks_.end();
}

std::vector<PickSpec> Plan::Specs(bool node_port) const {
  std::vector<PickSpec> out;
  for (const auto& [spec, users] : picks_) {
    if ((users > 0 || IsIdle(spec)) && spec.node_port == node_port) out.push_back(spec);
  }
  return out;
}

void Plan::StartOver() {
  noting_ = true;
  for (Before& before : before_) before = Before();
  service_cidrs_changed_ = false;
  idle_picks_.clear();
  std::erase_if(picks_, [](const auto& pick) { return pick.second == 0; });
  for (bool node_port : {false, true}) dispatched_[node_port] = Specs(node_port);
  installed_picks_.clear();
  for (const auto& [spec, users] : picks_) installed_picks_.insert(spec);
  for (const PickSpec& spec : StockPicks(options_)) installed_picks_.insert(spec);
}

// One call's worth of TakeChanges.
class Plan::Changes {
 public:
  explicit Changes(Plan& plan) : plan_(plan), v4_(plan.options_.v4), out_(plan.options_.Table()) {}

  nft::Transaction Run() {
    RestPicks();
    AddPicks();
    for (int i = 0; i < kSetCount; ++i) {
      auto id = static_cast<SetId>(i);
      if (id == kServices || id == kNodePorts) {
        Uses(id);
      } else {
        Elements(id);
      }
    }
    for (bool node_port : {false, true}) {
      std::vector<PickSpec> specs = plan_.Specs(node_port);
      if (specs == plan_.dispatched_[node_port]) continue;
      out_.FlushChain(DispatchChain(node_port));
      for (const nft::Rule& rule : DispatchRules(node_port, specs, plan_.options_)) out_.AddRule(rule);
      plan_.dispatched_[node_port] = std::move(specs);
    }
    RemovePicks();
    if (std::exchange(plan_.service_cidrs_changed_, false)) {
      out_.FlushChain(dataplane::kServiceCidrsChain);
      for (const nft::Rule& rule : ServiceCidrRules(plan_.service_cidrs_, plan_.options_)) out_.AddRule(rule);
    }
    return std::move(out_);
  }

 private:
  using Sorted = std::map<std::string, std::vector<nft::Element>>;

  // Those that have lost their last user rest; those that have rested long go.
  void RestPicks() {
    std::vector<PickSpec>& idle = plan_.idle_picks_;
    std::erase_if(idle, [&](const PickSpec& spec) { return plan_.picks_.at(spec) > 0; });
    for (const auto& [spec, users] : plan_.picks_) {
      if (users == 0 && plan_.installed_picks_.contains(spec) && !plan_.IsIdle(spec)) idle.push_back(spec);
    }
    while (idle.size() > kIdlePicks) {
      if (!IsStock(idle.front())) leaving_.push_back(idle.front());
      idle.erase(idle.begin());
    }
    std::erase_if(plan_.picks_,
                  [&](const auto& pick) { return pick.second == 0 && !plan_.IsIdle(pick.first); });
  }

  void AddPicks() {
    for (const auto& [spec, users] : plan_.picks_) {
      if (users == 0 || plan_.installed_picks_.contains(spec)) continue;
      out_.AddChain({.name = spec.ChainName()});
      for (const nft::Rule& rule : PickChainRules(spec, plan_.options_)) out_.AddRule(rule);
      out_.AddSet(UseSet(spec, v4_));
      plan_.installed_picks_.insert(spec);
    }
  }

  // Calls each(key, before, now) for what is different; null: absent.
  template <typename Each>
  void ForEachChange(SetId id, Each each) {
    for (const auto& [key, before] : plan_.before_[id]) {
      auto found = plan_.claims_[id].find(key);
      const Datum* now = found == plan_.claims_[id].end() ? nullptr : &found->second.Held();
      if (before && now && *before == *now) continue;
      if (before || now) each(key, before ? &*before : nullptr, now);
    }
    plan_.before_[id] = Before();  // clear() would cost as much as there ever was in it
  }

  void Elements(SetId id) {
    std::vector<nft::Element> gone, added;
    ForEachChange(id, [&](const std::string& key, const Datum* before, const Datum* now) {
      if (before) gone.push_back(ElementOf(id, key, *before));
      if (now) added.push_back(ElementOf(id, key, *now));
    });
    out_.DeleteElements(SetOf(id, v4_), std::move(gone));
    out_.AddElements(SetOf(id, v4_), std::move(added));
  }

  void Uses(SetId id) {
    std::vector<nft::Element> gone, added;
    Sorted gone_uses, added_uses;
    ForEachChange(id, [&](const std::string& key, const Datum* before, const Datum* now) {
      if (before) gone_uses[*before].push_back({.key = key});
      if (now) added_uses[*now].push_back({.key = key});
      if (before && !now) gone.push_back({.key = key});
      if (now && !before) added.push_back({.key = key});
    });
    auto use_set = [&](const std::string& chain) {
      return nft::Set{.name = "use-" + chain, .key = SetOf(id, v4_).key};
    };
    for (auto& [chain, elements] : gone_uses) out_.DeleteElements(use_set(chain), std::move(elements));
    for (auto& [chain, elements] : added_uses) out_.AddElements(use_set(chain), std::move(elements));
    out_.DeleteElements(SetOf(id, v4_), std::move(gone));
    out_.AddElements(SetOf(id, v4_), std::move(added));
  }

  // After the dispatch rules, which speak of them.
  void RemovePicks() {
    for (const PickSpec& spec : leaving_) {
      plan_.installed_picks_.erase(spec);
      out_.DeleteSet(UseSet(spec, v4_).name);
      out_.DeleteChain(spec.ChainName());
    }
  }

  Plan& plan_;
  bool v4_;
  nft::Transaction out_;
  std::vector<PickSpec> leaving_;
};

nft::Transaction Plan::TakeChanges() { return Changes(*this).Run(); }

nft::Ruleset Plan::Wanted() const {
  nft::Ruleset out = FixedRuleset(options_);
  out.chains[dataplane::kServiceCidrsChain].rules = ServiceCidrRules(service_cidrs_, options_);
  auto add = [&](const std::vector<PickSpec>& specs) {
    for (const PickSpec& spec : specs) {
      std::string name = spec.ChainName();
      out.chains[name] = {{.name = name}, PickChainRules(spec, options_)};
      nft::Set use = UseSet(spec, options_.v4);
      out.sets[use.name].set = use;
    }
  };
  add(StockPicks(options_));
  for (bool node_port : {false, true}) {
    std::vector<PickSpec> specs = Specs(node_port);
    out.chains[DispatchChain(node_port)].rules = DispatchRules(node_port, specs, options_);
    add(specs);
  }
  for (int i = 0; i < kSetCount; ++i) {
    auto id = static_cast<SetId>(i);
    bool uses = id == kServices || id == kNodePorts;
    auto& elements = out.sets[SetOf(id, options_.v4).name].elements;
    elements.reserve(claims_[i].size());
    for (const auto& [key, claims] : claims_[i]) {
      const Datum& datum = claims.Held();
      elements[key] = uses ? nft::Element{.key = key} : ElementOf(id, key, datum);
      if (uses) out.sets["use-" + datum].elements[key] = {.key = key};
    }
  }
  return out;
}

size_t Plan::size() const {
  size_t out = 0;
  for (const auto& set : claims_) out += set.size();
  return out;
}

}  // namespace keelson::proxy::nftables
