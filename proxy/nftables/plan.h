// What should be in the proxy's nftables table of one address family. Pure: no kernel, no clock.
//
// SetService replaces what one Service contributes; TakeChanges gives the transaction that brings a kernel
// from the state of the last call to the present one, and costs what has changed, not what there is.
//
// Two Services may claim one address and port (an external IP, say): the first keeps it, and the next one
// gets it when the first has gone. Slots are stable: an endpoint that goes is replaced by the last one of
// the list, so that a change of one endpoint touches at most two slots.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lib/nft/transaction.h"
#include "proxy/nftables/chains.h"
#include "proxy/service_map.h"

namespace keelson::proxy::nftables {

class Plan {
 public:
  explicit Plan(Options options);

  void SetService(const std::string& key, const std::vector<ResolvedPort>& ports);  // no ports: gone
  void SetNodeIps(const std::vector<IpAddress>& ips);                               // where NodePorts answer

  nft::Transaction TakeChanges();
  nft::Ruleset Wanted() const;
  const Options& options() const { return options_; }
  size_t size() const;  // elements

 private:
  // `data` of kServices and kNodePorts is the name of the pick chain: which of the sets the key goes to.
  struct Datum {
    std::string data, key_end;
    bool operator==(const Datum&) const = default;
  };
  struct Claim {
    const void* owner;
    Datum datum;
  };
  struct Item {
    SetId set;
    std::string key;
    Datum datum;
  };
  struct Slots {
    std::vector<Backend> cluster, local;
  };
  struct Owner {
    std::vector<std::pair<SetId, std::string>> keys;
    std::vector<PickSpec> picks;
    std::map<std::string, Slots> slots;  // by port name
  };
  // The first claim holds. Nearly always there is one only.
  using Claims = std::vector<Claim>;

  class Collector;
  class Changes;
  void Replace(Owner& owner, std::vector<Item> items, std::vector<PickSpec> picks);
  void Touch(SetId set, const std::string& key);
  static nft::Element ElementOf(const std::string& key, const Datum& datum);
  std::vector<PickSpec> SpecsInUse(bool node_port) const;

  const Options options_;
  std::unordered_map<std::string, Owner> owners_;
  Owner node_;
  std::unordered_map<std::string, Claims> claims_[kSetCount];
  std::map<PickSpec, int> picks_;  // users
  // As it was at the last TakeChanges, of what has been touched since.
  std::unordered_map<std::string, std::optional<Datum>> before_[kSetCount];
  std::set<PickSpec> installed_picks_;
};

}  // namespace keelson::proxy::nftables
