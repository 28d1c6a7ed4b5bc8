// Applies transactions: to the kernel's nf_tables, or to a fake (fake.h). Both pass the same conformance
// test.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/linux/netns.h"
#include "lib/nft/transaction.h"

namespace keelson::nft {

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Applies all changes or none. The error names the change that was refused.
  virtual Result<> Apply(const Transaction& transaction) = 0;
  // A consistent copy; nullopt when there is no such table. Elements whose timeout has passed are left out.
  // kUnavailable when the table changes faster than it can be read.
  virtual Result<std::optional<Ruleset>> Read(const Table& table) = 0;
  // Like Read(), but may leave out chains and rules, and each set is consistent only by itself: the table
  // may change between two sets. Cheaper than Read(), and succeeds on a table that changes all the time.
  virtual Result<std::optional<Ruleset>> ReadSets(const Table& table) { return Read(table); }
  // Like ReadSets(), of the sets with these names that the table has.
  virtual Result<std::optional<Ruleset>> ReadSets(const Table& table, const std::vector<std::string>& names);
  // The names of the table's sets, without their contents: cheap. Empty when there is no such table.
  virtual Result<std::vector<std::string>> SetNames(const Table& table);
  // Whether the table has the chain. Cheap, unlike Read().
  virtual Result<bool> HasChain(const Table& table, const std::string& chain) = 0;
  // The generation of the ruleset: grows by one with every transaction, by anyone, that changes any table.
  virtual Result<uint32_t> Generation() = 0;
  // The netlink port of this Kernel's transactions: TableChange::author in monitor.h.
  virtual uint32_t port() const { return 0; }
};

// Opens nf_tables of the calling thread's network namespace, or of `netns`, and stays with that namespace.
// Not thread safe. Needs CAP_NET_ADMIN. Tested with Linux 6.1 to 6.18.
Result<std::unique_ptr<Kernel>> OpenKernel();
Result<std::unique_ptr<Kernel>> OpenKernel(const linux::NetNs& netns);

}  // namespace keelson::nft
