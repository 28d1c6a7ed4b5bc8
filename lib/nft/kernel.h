// Where transactions go: the kernel's nf_tables, or a fake (fake.h). Both pass the same conformance test.
#pragma once

#include <memory>
#include <optional>

#include "lib/linux/netns.h"
#include "lib/nft/transaction.h"

namespace keelson::nft {

class Kernel {
 public:
  virtual ~Kernel() = default;
  // All or nothing. The error names the change that was refused.
  virtual Result<> Apply(const Transaction& transaction) = 0;
  // A consistent copy; nullopt when there is no such table. Elements whose timeout has passed are left out.
  virtual Result<std::optional<Ruleset>> Read(const Table& table) = 0;
  // The same, perhaps without chains and rules, and each set by itself: between two of them the table may
  // change. Cheaper than Read, and never in want of a quiet moment.
  virtual Result<std::optional<Ruleset>> ReadSets(const Table& table) { return Read(table); }
  // Cheap, where Read is not.
  virtual Result<bool> HasChain(const Table& table, const std::string& chain) = 0;
  // Grows by one with every transaction, of whomever, that changed any table.
  virtual Result<uint32_t> Generation() = 0;
  // Who Monitor (monitor.h) says made this one's transactions.
  virtual uint32_t port() const { return 0; }
};

// Of the calling thread's network namespace, or of `netns`; it stays there. Not thread safe. Needs
// CAP_NET_ADMIN. Tried with Linux 6.1 to 6.18.
Result<std::unique_ptr<Kernel>> OpenKernel();
Result<std::unique_ptr<Kernel>> OpenKernel(const linux::NetNs& netns);

}  // namespace keelson::nft
