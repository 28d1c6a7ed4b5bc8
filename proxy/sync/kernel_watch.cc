#include "proxy/sync/kernel_watch.h"

#include <algorithm>
#include <cerrno>

#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/netlink/monitor.h"
#include "lib/netlink/xfrm.h"
#include "proxy/host/node_addresses.h"

namespace keelson::proxy {
namespace {

constexpr std::chrono::minutes kLongest{10};
constexpr std::chrono::seconds kAgain{5};

// Calls each(events) until `stop` or an error.
template <typename Monitor, typename Each>
Error Follow(std::stop_token stop, Monitor& monitor, Each each) {
  for (;;) {
    auto events = monitor.Wait(stop, kLongest);
    if (events) {
      each(*events);
    } else if (!events.error().Is(Code::kTimeout)) {
      return events.error();
    }
  }
}

}  // namespace

Result<std::unique_ptr<nft::Kernel>> TableWatch::OpenKernel() {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<nft::Kernel> kernel, nft::OpenKernel());
  auto proxier = [this]() -> Proxier& {
    MutexLock lock(mutex_);
    return *proxier_;
  };
  return nft::Quietly(std::move(kernel),
                      {.monitor = [this] { return monitor(); },
                       .missed = [proxier] { proxier().OnTables({.tables = {}, .lost = true}); },
                       .deaf =
                           [proxier](const Error& why) {
                             log::Warn("Changes of nftables by others are not seen at once", {{"err", why}});
                             proxier().TablesWatched(false);
                           }});
}

std::shared_ptr<nft::Monitor> TableWatch::monitor() {
  MutexLock lock(mutex_);
  return monitor_;
}

void TableWatch::Listen(std::shared_ptr<nft::Monitor> monitor, Proxier& proxier) {
  MutexLock lock(mutex_);
  monitor_ = std::move(monitor);
  proxier_ = &proxier;
}

Result<> TableWatch::Run(std::stop_token stop, Proxier& proxier) {
  if (!proxier.AwaitFirstSync(stop)) return {};
  while (!stop.stop_requested()) {
    Result<nft::Monitor> opened = nft::Monitor::Open();
    Error why = opened ? Error(Code::kCancelled, "") : opened.error();
    if (opened) {
      auto monitor = std::make_shared<nft::Monitor>(std::move(*opened));
      Listen(monitor, proxier);
      proxier.TablesWatched(true);
      why = Follow(stop, *monitor, [&](const nft::Monitor::Changes& changes) { proxier.OnTables(changes); });
      Listen(nullptr, proxier);
    }
    if (why.Is(Code::kCancelled)) break;
    proxier.TablesWatched(false);
    log::Warn("Changes of nftables by others are not seen at once", {{"err", why}});
    (void)Pause(Clock::Real(), kAgain, stop);
  }
  return {};
}

Result<> WatchAddresses(std::stop_token stop, const std::function<void()>& changed) {
  while (!stop.stop_requested()) {
    Result<netlink::Monitor> monitor = netlink::Monitor::Open();
    changed();
    Error why = monitor ? Error(Code::kCancelled, "") : monitor.error();
    if (monitor) {
      why = Follow(stop, *monitor, [&](const std::vector<netlink::KernelEvent>& events) {
        using Kind = netlink::KernelEvent::Kind;
        const int services = IpvsDeviceIndex();
        bool any = std::any_of(events.begin(), events.end(), [&](const netlink::KernelEvent& e) {
          return e.kind == Kind::kLost || e.kind == Kind::kFilter ||
                 (e.kind == Kind::kAddress && !e.link_local && e.link_index != services);
        });
        if (any) changed();
      });
    }
    if (why.Is(Code::kCancelled)) break;
    log::Warn("Changes of addresses are not seen at once", {{"err", why}});
    (void)Pause(Clock::Real(), kAgain, stop);
  }
  return {};
}

Result<> WatchPolicies(std::stop_token stop, const std::function<void()>& changed) {
  while (!stop.stop_requested()) {
    Result<netlink::PolicyMonitor> monitor = netlink::PolicyMonitor::Open();
    changed();
    Error why = monitor ? Follow(stop, *monitor, [&](size_t) { changed(); }) : monitor.error();
    if (why.Is(Code::kCancelled)) break;
    const bool never = why.errnum() == EPROTONOSUPPORT;  // there is no IPsec here
    if (!never) log::Warn("Changes of IPsec policies are not seen at once", {{"err", why}});
    (void)Pause(Clock::Real(), never ? std::chrono::duration_cast<std::chrono::seconds>(kLongest) : kAgain,
                stop);
  }
  return {};
}

}  // namespace keelson::proxy
