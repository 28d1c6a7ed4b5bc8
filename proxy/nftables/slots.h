// Which slot an endpoint has: what is between the old list and the new one.
#pragma once

#include <vector>

#include "proxy/model/service_port.h"

namespace keelson::proxy::nftables {

// `now` (sorted) in an order that keeps as many slots of `before` as it can, without holes.
std::vector<Backend> KeepSlots(const std::vector<Backend>& before, const std::vector<Backend>& now);

// The same where clients stick to slots: who stays keeps its own, and who comes fills a hole. When most are
// holes, all move.
std::vector<Backend> KeepStickySlots(const std::vector<Backend>& before, const std::vector<Backend>& now);

inline bool IsHole(const Backend& b) { return b.port == 0; }

}  // namespace keelson::proxy::nftables
