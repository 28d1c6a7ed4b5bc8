#include "proxy/dns/address_writer.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "lib/base/log.h"
#include "lib/dataplane/domain_sets.h"
#include "lib/dataplane/policy_sets.h"
#include "lib/metrics/metrics.h"
#include "proxy/dns/message/answer_addresses.h"

namespace keelson::proxy::dns {
namespace {

constexpr int kAttempts = 10;  // while kube-cni or time change the sets
constexpr size_t kMostKnown =
    64 << 10;  // elements in memory; beyond that all is read again when it is needed
// An element is renewed when it would not last for the answer's TTL and this much longer, so that not every answer writes.
constexpr std::chrono::seconds kSlack{10};

struct Metrics {
  metrics::Value& written =
      metrics::Counter("keelson_dns_policy_addresses_written_total",
                       "Addresses of answers that network policies by domain name let through.")
          .With();
  metrics::Value& refused =
      metrics::Counter("keelson_dns_policy_addresses_refused_total",
                       "Addresses of answers that stay closed although a network policy has the name.")
          .With();
};

Metrics& M() {
  static auto* metrics = new Metrics;
  return *metrics;
}

// The sets are kube-cni's; the key's size says the family.
nft::Set SetOf(const std::string& name, bool v4) {
  const std::optional<std::string> pattern = dataplane::PatternOf(name, v4);
  return dataplane::DomainAddresses(pattern.value_or(""), v4);
}

constexpr size_t kV4Size = 4;

}  // namespace

Result<std::unique_ptr<AddressWriter>> AddressWriter::Open(Clock& clock) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> names, nft::OpenKernel());
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
  return std::make_unique<AddressWriter>(std::move(names), std::move(kernel), clock);
}

void AddressWriter::Hold(std::string answer, std::function<void(std::string_view)> send) {
  {
    MutexLock lock(mutex_);
    if (!stopped_ && held_.size() < kMostHeld) {
      held_.push_back({std::move(answer), std::move(send)});
      changed_.notify_all();
      return;
    }
  }
  M().refused.Increment();
  send(answer);
}

Result<> AddressWriter::Run(std::stop_token stop) {
  for (bool more = true; more;) {
    std::vector<Held> now;
    {
      MutexLock lock(mutex_);
      changed_.wait(mutex_, stop, [this]() KEELSON_NO_THREAD_SAFETY_ANALYSIS { return !held_.empty(); });
      now = std::exchange(held_, {});
      more = !stop.stop_requested();
      stopped_ = !more;
    }
    if (more) Write(WantedBy(now));
    for (const Held& held : now) held.send(held.answer);
  }
  return {};
}

AddressWriter::Wanted AddressWriter::WantedBy(const std::vector<Held>& held) {
  Wanted out;
  for (const Held& one : held) {
    const AnswerAddresses found = AddressesIn(one.answer);
    for (const AnswerAddresses::Entry& entry : found.entries) {
      for (const std::string& set : names_.SetsOf(found.name, entry.address.is_v4())) {
        std::chrono::seconds& ttl = out[set][nft::Key().Ip(entry.address).bytes()];
        ttl = std::max(ttl, std::min(entry.ttl, kLongest));
      }
    }
  }
  return out;
}

Result<> AddressWriter::Read(const Wanted& wanted) {
  KEELSON_ASSIGN_OR_RETURN(const uint32_t generation, kernel_->Generation());
  size_t size = 0;
  for (const auto& [set, elements] : known_) size += elements.size();
  if (generation != generation_ || size > kMostKnown) known_.clear();
  generation_ = generation;
  std::vector<std::string> missing;
  for (const auto& [set, addresses] : wanted) {
    if (!known_.contains(set)) missing.push_back(set);
  }
  if (missing.empty()) return {};
  const SteadyTime before = clock_.SteadyNow();
  KEELSON_ASSIGN_OR_RETURN(std::optional<nft::Ruleset> found,
                           kernel_->ReadSets(dataplane::PolicyTable(), missing));
  const SteadyTime after = clock_.SteadyNow();
  if (!found) return {};
  for (const auto& [name, contents] : found->sets) {
    Elements& into = known_[name];
    for (const auto& [key, element] : contents.elements) {
      into[key] = {before + element.lifetime, after + element.lifetime};
    }
  }
  return {};
}

nft::Transaction AddressWriter::Plan(const Wanted& wanted, SteadyTime now) {
  nft::Transaction out(dataplane::PolicyTable());
  for (const auto& [name, addresses] : wanted) {
    auto set = known_.find(name);
    if (set == known_.end()) continue;  // the policy has gone meanwhile
    std::erase_if(set->second, [&](const auto& element) { return element.second.most < now; });
    size_t room = kMostOfSet - std::min(kMostOfSet, set->second.size());
    std::vector<nft::Element> renewed, added;
    bool v4 = true;
    for (const auto& [key, ttl] : addresses) {
      v4 = key.size() == kV4Size;
      auto there = set->second.find(key);
      if (there != set->second.end() && there->second.least >= now + ttl + kSlack) continue;
      if (there == set->second.end() && room == 0) {
        M().refused.Increment();
        continue;
      }
      there == set->second.end() ? (void)--room : renewed.push_back({.key = key});
      nft::Element element{.key = key};
      element.lifetime = ttl + kGrace;
      added.push_back(std::move(element));
    }
    // The kernel cannot change a lifetime, so those are deleted and added again, in one transaction.
    out.DeleteElements(SetOf(name, v4), std::move(renewed));
    out.AddElements(SetOf(name, v4), std::move(added));
  }
  return out;
}

void AddressWriter::Write(const Wanted& wanted) {
  if (wanted.empty()) return;
  Result<> result;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    result = Read(wanted);
    if (!result) break;
    const SteadyTime before = clock_.SteadyNow();
    const nft::Transaction changes = Plan(wanted, before);
    if (changes.empty()) return;
    result = kernel_->Apply(changes);
    if (!result) {
      // An element has expired, or kube-cni has removed a set: look again.
      known_.clear();
      if (result.error().Is(Code::kNotFound)) continue;
      break;
    }
    const SteadyTime after = clock_.SteadyNow();
    for (const nft::Op& op : changes.ops()) {
      const auto* add = std::get_if<nft::op::AddElements>(&op);
      if (!add) continue;
      for (const nft::Element& element : add->elements) {
        known_[add->set.name][element.key] = {before + element.lifetime, after + element.lifetime};
        M().written.Increment();
      }
    }
    // One transaction more is ours; after any other all is read again.
    ++generation_;
    return;
  }
  M().refused.Increment();
  log::Warn("Addresses of a domain name cannot be let through: its network policies drop connections",
            {{"err", result ? Error(Code::kUnavailable, "the sets change all the time") : result.error()}});
}

}  // namespace keelson::proxy::dns
