#include "proxy/nftables/endpoint_slots.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace keelson::proxy::nftables {
namespace {

bool Before(const Backend& a, const Backend& b) { return std::tie(a.ip, a.port) < std::tie(b.ip, b.port); }

}  // namespace

std::vector<Backend> AssignSlots(const std::vector<Backend>& before, const std::vector<Backend>& now) {
  if (before.empty() || now.empty()) return now;
  std::vector<std::optional<Backend>> slots(now.size());
  std::vector<Backend> homeless;
  for (size_t i = 0; i < before.size(); ++i) {
    auto still = std::lower_bound(now.begin(), now.end(), before[i], Before);
    if (still == now.end() || Before(before[i], *still)) continue;
    if (i < slots.size()) {
      slots[i] = *still;
    } else {
      homeless.push_back(*still);
    }
  }
  std::vector<Backend> known = before;
  std::sort(known.begin(), known.end(), Before);
  for (const Backend& b : now) {
    if (!std::binary_search(known.begin(), known.end(), b, Before)) homeless.push_back(b);
  }
  auto next = homeless.begin();
  std::vector<Backend> out;
  for (const auto& slot : slots) out.push_back(slot ? *slot : *next++);
  return out;
}

std::vector<Backend> AssignAffinitySlots(const std::vector<Backend>& before,
                                         const std::vector<Backend>& now) {
  std::vector<Backend> out = before;
  std::vector<bool> placed(now.size());
  for (Backend& slot : out) {
    auto still = std::lower_bound(now.begin(), now.end(), slot, Before);
    if (IsEmptySlot(slot) || still == now.end() || Before(slot, *still)) {
      slot = {};
    } else {
      slot = *still;
      placed[static_cast<size_t>(still - now.begin())] = true;
    }
  }
  auto hole = out.begin();
  for (size_t i = 0; i < now.size(); ++i) {
    if (placed[i]) continue;
    while (hole != out.end() && !IsEmptySlot(*hole)) ++hole;
    if (hole == out.end()) {
      out.push_back(now[i]);
      hole = out.end();
    } else {
      *hole = now[i];
    }
  }
  while (!out.empty() && IsEmptySlot(out.back())) out.pop_back();
  return out.size() > 2 * now.size() ? now : out;
}

}  // namespace keelson::proxy::nftables
