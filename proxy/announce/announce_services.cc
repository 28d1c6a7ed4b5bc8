#include "proxy/announce/announce_services.h"

#include <algorithm>

#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/netlink/monitor.h"

namespace keelson::proxy {
namespace {

constexpr std::chrono::seconds kTimeout{2};  // of a call: as long as a renewal may take
constexpr std::chrono::minutes kLongest{10};
constexpr std::chrono::seconds kAgain{5};

// Links and addresses that come, go and change, until `stop`.
Result<> WatchLinks(std::stop_token stop, Responder& responder) {
  while (!stop.stop_requested()) {
    Result<netlink::Monitor> monitor = netlink::Monitor::Open();
    responder.Rescan();
    while (monitor) {
      auto events = monitor->Wait(stop, kLongest);
      if (!events && events.error().Is(Code::kTimeout)) continue;
      if (!events) {
        if (events.error().Is(Code::kCancelled)) return {};
        log::Warn("Changes of links are not seen at once", {{"err", events.error()}});
        break;
      }
      using Kind = netlink::KernelEvent::Kind;
      if (std::any_of(events->begin(), events->end(), [](const netlink::KernelEvent& event) {
            return event.kind == Kind::kLost || event.kind == Kind::kLink || event.kind == Kind::kAddress;
          })) {
        responder.Rescan();
      }
    }
    (void)Pause(Clock::Real(), kAgain, stop);
  }
  return {};
}

}  // namespace

Announcing::Announcing(AnnouncerOptions options, const std::shared_ptr<client::Transport>& transport,
                       client::InformerFactory& informers)
    : leases_(client::RestClient(transport)),
      announcer_(options, client::RestClient(transport, kTimeout), leases_, responder_) {
  informers.Get<corev1::Service>().AddHandler([this](const client::Change<corev1::Service>& change) {
    announcer_.OnService(change.key, change.new_object.get());
  });
  informers.Get<discoveryv1::EndpointSlice>().AddHandler(
      [this](const client::Change<discoveryv1::EndpointSlice>& change) {
        announcer_.OnSlice(change.key, change.new_object.get());
      });
  informers.Get<corev1::Node>({.field_selector = "metadata.name=" + options.node_name})
      .AddHandler(
          [this](const client::Change<corev1::Node>& change) { announcer_.OnNode(change.new_object.get()); });
}

void Announcing::AddServices(ServiceGroup& group) {
  auto add = [&](const char* name, std::vector<std::string> needs,
                 std::function<Result<>(std::stop_token)> run) {
    group.Add(
        {name, std::move(needs), [run = std::move(run)](std::stop_token stop, ServiceGroup::Ready ready) {
           ready();
           return run(stop);
         }});
  };
  add("announce-responder", {}, [this](std::stop_token stop) { return responder_.Run(stop); });
  add("announce-links", {"announce-responder"},
      [this](std::stop_token stop) { return WatchLinks(stop, responder_); });
  add("announce-leases", {},
      [this](std::stop_token stop) { return leases_.Run(stop, [this] { announcer_.MarkLeasesSynced(); }); });
  // It ends before the others, and gives up what it holds.
  add("announcer", {"announce-responder", "announce-leases"},
      [this](std::stop_token stop) { return announcer_.Run(stop); });
}

}  // namespace keelson::proxy
