#include "ctl/why/events.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/api/meta.h"

namespace keelson::ctl {

WallTime TimeOf(const corev1::Event& event) {
  if (event.has_series()) return api::FromMicroTime(event.series().last_observed_time());
  if (event.has_last_timestamp()) return api::FromTime(event.last_timestamp());
  return api::FromMicroTime(event.event_time());
}

int32_t CountOf(const corev1::Event& event) {
  return std::max(1, event.has_series() ? event.series().count() : event.count());
}

void SortByTime(Events& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return TimeOf(a) < TimeOf(b); });
}

Result<Events> ReadEvents(const client::RestClient& api, const std::string& ns, const std::string& selector) {
  KEELSON_ASSIGN_OR_RETURN(Events events, api.List<corev1::Event>(ns, {.field_selector = selector}));
  SortByTime(events);
  return events;
}

Result<Events> ReadEventsOf(const client::RestClient& api, const std::string& ns, const std::string& uid) {
  return ReadEvents(api, ns, "involvedObject.uid=" + uid);
}

const corev1::Event* LastOf(const Events& events, const std::function<bool(const corev1::Event&)>& fits) {
  const auto found = std::find_if(events.rbegin(), events.rend(), fits);
  return found == events.rend() ? nullptr : &*found;
}

const corev1::Event* LastOf(const Events& events, const std::vector<std::string>& reasons) {
  return LastOf(events, [&](const corev1::Event& event) {
    return std::find(reasons.begin(), reasons.end(), event.reason()) != reasons.end();
  });
}

std::string EventText(const corev1::Event& event) {
  const int32_t count = CountOf(event);
  return fmt::format("event {}{}: {}", event.reason(), count > 1 ? fmt::format(", {} times", count) : "",
                     event.message());
}

}  // namespace keelson::ctl
