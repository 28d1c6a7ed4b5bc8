#include "proxy/config_watch.h"

#include <sys/inotify.h>

#include "lib/event/inotify.h"

namespace keelson::proxy {

Result<> EndWhenChanged(const std::string& path, std::stop_token stop) {
  ASSIGN_OR_RETURN(event::Inotify inotify, event::Inotify::Create());
  RETURN_IF_ERROR(inotify.Add(path, IN_MODIFY | IN_MOVE_SELF));
  for (;;) {
    auto events = inotify.Wait(stop, std::chrono::minutes(10));
    if (events) {
      return Error(Code::kUnavailable, "content of the proxy server's configuration file was updated");
    }
    if (events.error().Is(Code::kCancelled)) return {};
    if (!events.error().Is(Code::kTimeout)) return events.error();
  }
}

}  // namespace keelson::proxy
