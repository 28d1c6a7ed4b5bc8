// Group versions that share one stored form: events.k8s.io/v1 Events are stored as core v1's,
// autoscaling/v1 HorizontalPodAutoscalers as autoscaling/v2's.
#pragma once

#include <memory>

#include "lib/api/scheme.h"

namespace keelson::storage {

// The resource whose form objects of `info` are stored in; `info` itself for nearly all.
const api::ResourceInfo& StoredAs(const api::ResourceInfo& info);

// Converts `from` to the form of `to`, which must share its storage. Fields that autoscaling/v1 lacks become
// annotations of the converted object, so that a read-modify-write through v1 loses nothing.
std::unique_ptr<api::Message> Convert(const api::Message& from, const api::ResourceInfo& to);

}  // namespace keelson::storage
