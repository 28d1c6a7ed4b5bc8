#include "lib/nft/quiet.h"

#include <utility>

namespace keelson::nft {
namespace {

// From this many elements on, notifications cost more than leaving and rejoining the group.
constexpr size_t kMany = 100;

bool HasMany(const Transaction& transaction) {
  size_t elements = 0;
  for (const Op& op : transaction.ops()) {
    if (auto* add = std::get_if<op::AddElements>(&op)) elements += add->elements.size();
    if (auto* remove = std::get_if<op::DeleteElements>(&op)) elements += remove->elements.size();
  }
  return elements >= kMany;
}

class QuietKernel : public Kernel {
 public:
  QuietKernel(std::unique_ptr<Kernel> kernel, Audience audience)
      : kernel_(std::move(kernel)), audience_(std::move(audience)) {}

  Result<> Apply(const Transaction& transaction) override {
    std::shared_ptr<Monitor> monitor = HasMany(transaction) ? audience_.monitor() : nullptr;
    if (!monitor) return kernel_->Apply(transaction);
    KEELSON_ASSIGN_OR_RETURN(uint32_t before, kernel_->Generation());
    if (!monitor->Listen(false)) return kernel_->Apply(transaction);
    Result<> done = kernel_->Apply(transaction);
    Result<> listens = monitor->Listen(true);
    if (!listens) audience_.deaf(listens.error());
    Result<uint32_t> after = kernel_->Generation();
    if (!after || *after != before + (done ? 1 : 0)) audience_.missed();
    return done;
  }

  Result<std::optional<Ruleset>> Read(const Table& table) override { return kernel_->Read(table); }
  Result<std::optional<Ruleset>> ReadSets(const Table& table) override { return kernel_->ReadSets(table); }
  Result<std::optional<Ruleset>> ReadSets(const Table& table,
                                          const std::vector<std::string>& names) override {
    return kernel_->ReadSets(table, names);
  }
  Result<bool> HasChain(const Table& table, const std::string& chain) override {
    return kernel_->HasChain(table, chain);
  }
  Result<uint32_t> Generation() override { return kernel_->Generation(); }
  uint32_t port() const override { return kernel_->port(); }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const Audience audience_;
};

}  // namespace

std::unique_ptr<Kernel> Quietly(std::unique_ptr<Kernel> kernel, Audience audience) {
  return std::make_unique<QuietKernel>(std::move(kernel), std::move(audience));
}

}  // namespace keelson::nft
