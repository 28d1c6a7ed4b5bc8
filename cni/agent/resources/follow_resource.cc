#include "cni/agent/resources/follow_resource.h"

#include <malloc.h>

#include "lib/base/log.h"
#include "lib/client/backoff.h"

namespace keelson::cni::agent {
namespace {

Result<std::string> List(const ResourceSource& source, const ResourceHandlers& handlers,
                         const std::stop_token& stop) {
  handlers.begin_list();
  KEELSON_ASSIGN_OR_RETURN(std::string version, source.List(handlers.listed, stop));
  handlers.end_list();
  ::malloc_trim(0);  // return the memory of the lists
  return version;
}

Result<> WatchOnce(const ResourceSource& source, const ResourceHandlers& handlers, std::string& version,
                   const std::stop_token& stop, int& events) {
  KEELSON_ASSIGN_OR_RETURN(std::unique_ptr<client::WatchStream> stream, source.Watch(version, stop));
  for (;;) {
    KEELSON_ASSIGN_OR_RETURN(client::WatchEvent event, stream->Next(stop));
    ++events;
    KEELSON_ASSIGN_OR_RETURN(version, handlers.event(event));
  }
}

}  // namespace

Result<> FollowResource(const ResourceSource& source, const ResourceHandlers& handlers, std::stop_token stop,
                        Clock& clock) {
  client::ReconnectBackoff backoff(clock);
  std::string version;
  bool listed = false;
  while (!stop.stop_requested()) {
    int events = 0;
    Result<> result;
    if (listed) {
      result = WatchOnce(source, handlers, version, stop, events);
    } else if (Result<std::string> got = List(source, handlers, stop)) {
      version = std::move(*got);
      listed = true;
    } else {
      result = got.error();
    }
    if (stop.stop_requested()) break;
    if (result) continue;
    const Code code = result.error().code();
    bool goes_on = code == Code::kUnavailable || code == Code::kTimeout || code == Code::kTooManyRequests;
    if (listed && !goes_on) listed = false;
    bool usual = listed || code == Code::kGone;
    if (events > 0) {
      backoff.Reset();
      continue;
    }
    log::Write(usual ? log::Level::kDebug : log::Level::kWarn,
               "A resource cannot be followed, will be retried",
               {{"path", source.path()}, {"err", result.error()}});
    if (!client::SleepFor(clock, backoff.Next(), stop)) break;
  }
  return {};
}

}  // namespace keelson::cni::agent
