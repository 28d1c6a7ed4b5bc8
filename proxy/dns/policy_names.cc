#include "proxy/dns/policy_names.h"

#include "lib/dataplane/domain_sets.h"
#include "lib/dataplane/policy_sets.h"
#include "proxy/dns/message/name.h"

namespace keelson::proxy::dns {

// On an error what is known stays: at worst an answer waits for nothing, or its addresses stay closed.
void PolicyNames::Refresh() {
  const SteadyTime now = clock_.SteadyNow();
  if (now < fresh_until_) return;
  fresh_until_ = now + kFresh;
  Result<uint32_t> generation = kernel_->Generation();
  if (!generation || *generation == generation_) return;
  Result<std::vector<std::string>> names = kernel_->SetNames(dataplane::PolicyTable());
  if (!names) return;
  // Whatever has changed since then shows in the next generation.
  generation_ = *generation;
  sets_.clear();
  for (std::string& name : *names) {
    if (dataplane::PatternOf(name, true) || dataplane::PatternOf(name, false)) sets_.insert(std::move(name));
  }
}

std::vector<std::string> PolicyNames::SetsOf(std::string_view name, bool v4) {
  MutexLock lock(mutex_);
  Refresh();
  if (sets_.empty()) return {};
  std::string text = NameText(name);
  text.pop_back();  // the dot of the root
  std::vector<std::string> out = dataplane::DomainSetsOf(text, v4);
  std::erase_if(
      out, [&](const std::string& set) KEELSON_NO_THREAD_SAFETY_ANALYSIS { return !sets_.contains(set); });
  return out;
}

}  // namespace keelson::proxy::dns
