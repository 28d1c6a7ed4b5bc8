// Lists and watches one resource until a stop, with back-off, and keeps what is known while the API server is
// away.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "cni/agent/resources/resource_source.h"
#include "lib/base/clock.h"

namespace keelson::cni::agent {

// All are called on the thread of FollowResource().
struct ResourceHandlers {
  std::function<void()> begin_list;
  std::function<Result<>(std::string_view raw)> listed;  // every object of the list
  std::function<void()> end_list;                        // it is complete: what it lacks has gone
  // Takes an event in, unless it is a bookmark; returns the object's resource version.
  std::function<Result<std::string>(const client::WatchEvent& event)> event;
};

Result<> FollowResource(const ResourceSource& source, const ResourceHandlers& handlers, std::stop_token stop,
                        Clock& clock = Clock::Real());

}  // namespace keelson::cni::agent
