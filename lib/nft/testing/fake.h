// An in-memory nf_tables for tests: atomic, with the kernel's errors for dangling and missing references.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "lib/nft/kernel.h"

namespace keelson::nft {

class FakeKernel : public Kernel {
 public:
  Result<> Apply(const Transaction& transaction) override;
  using Kernel::ReadSets;
  Result<std::optional<Ruleset>> Read(const Table& table) override;
  Result<bool> HasChain(const Table& table, const std::string& chain) override;
  Result<uint32_t> Generation() override { return static_cast<uint32_t>(applied_) + 1; }

  int applied() const { return applied_; }  // number of accepted transactions

 private:
  std::map<std::pair<Family, std::string>, Ruleset> tables_;
  int applied_ = 0;
};

}  // namespace keelson::nft
