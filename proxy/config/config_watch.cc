#include "proxy/config/config_watch.h"

#include <sys/inotify.h>

#include "lib/base/clock.h"
#include "lib/base/pause.h"
#include "lib/event/inotify.h"

namespace keelson::proxy {
namespace {

constexpr uint32_t kEvents = IN_MODIFY | IN_CLOSE_WRITE | IN_MOVE_SELF | IN_DELETE_SELF | IN_ATTRIB;
constexpr std::chrono::milliseconds kQuiet{100};
constexpr std::chrono::seconds kAgain{1};

}  // namespace

Result<> FollowFile(const std::string& path, std::stop_token stop, const std::function<Result<>()>& look) {
  // Each time anew: another file may have the name by now. And look when it is watched, not before.
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(event::Inotify inotify, event::Inotify::Create());
    if (!inotify.Add(path, kEvents)) {  // it is being replaced
      if (!Pause(Clock::Real(), kAgain, stop)) return {};
      continue;
    }
    KEELSON_RETURN_IF_ERROR(look());
    for (bool touched = false;;) {
      auto events =
          inotify.Wait(stop, touched ? kQuiet : std::chrono::milliseconds(std::chrono::minutes(10)));
      if (events) {
        touched = true;
      } else if (events.error().Is(Code::kCancelled)) {
        return {};
      } else if (!events.error().Is(Code::kTimeout)) {
        return events.error();
      } else if (touched) {
        break;
      }
    }
  }
}

}  // namespace keelson::proxy
