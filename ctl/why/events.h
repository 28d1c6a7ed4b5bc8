// Events of objects, and what they say.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/client/rest.h"

namespace keelson::ctl {

using Events = std::vector<corev1::Event>;

// When it happened last.
WallTime TimeOf(const corev1::Event& event);
int32_t CountOf(const corev1::Event& event);  // at least 1

// The oldest first. `ns` empty: of all namespaces. `selector`: a field selector.
Result<Events> ReadEvents(const client::RestClient& api, const std::string& ns, const std::string& selector);
// Those of the object with this UID.
Result<Events> ReadEventsOf(const client::RestClient& api, const std::string& ns, const std::string& uid);
void SortByTime(Events& events);

// The last event that fits; null: none. `events`: the oldest first.
const corev1::Event* LastOf(const Events& events, const std::function<bool(const corev1::Event&)>& fits);
const corev1::Event* LastOf(const Events& events, const std::vector<std::string>& reasons);

// "event FailedMount, 3 times: ..."
std::string EventText(const corev1::Event& event);

}  // namespace keelson::ctl
