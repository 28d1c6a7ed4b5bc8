// Group versions that share one stored form: events.k8s.io/v1 Events are stored as core v1's,
// autoscaling/v1 HorizontalPodAutoscalers as autoscaling/v2's.
#pragma once

#include <memory>

#include "controlplane/etcd/client.h"
#include "controlplane/storage/object.h"
#include "controlplane/storage/versions/stored_versions.h"
#include "lib/api/scheme.h"

namespace keelson::storage {

// The resource whose form objects of `info` are stored in; `info` itself for nearly all.
const api::ResourceInfo& StoredAs(const api::ResourceInfo& info);

// How a value of version `type` becomes an object of `stored`, which is StoredAs() of itself. kInternal: this server cannot read the
// version.
Result<StoredVersion> FindStoredVersion(const api::ResourceInfo& stored, const api::TypeMeta& type);

// Converts `from` to the form of `to`, which must share its storage. Fields that autoscaling/v1 lacks become
// annotations of the converted object, so that a read-modify-write through v1 loses nothing.
std::unique_ptr<api::Message> Convert(const api::Message& from, const api::ResourceInfo& to);

// ---- custom resources, whose versions a webhook may convert ----

// Whether an object of `from` reaches the version of `to` only by a webhook, which takes its time and may fail;
// Object::In() does all other conversions.
bool NeedsWebhook(const api::ResourceInfo& from, const api::ResourceInfo& to);

// Whether any conversion to `info` may need a webhook.
bool ConvertsByWebhook(const api::ResourceInfo& info);

// Brings all objects into the version of `info`: by one call for those that a webhook converts. kInternal with
// upstream's words when it fails; then none has changed.
Result<> ConvertAll(std::vector<ObjectPtr>& objects, const api::ResourceInfo& info,
                    const etcd::Limits& limits);
Result<ObjectPtr> ConvertOne(ObjectPtr object, const api::ResourceInfo& info, const etcd::Limits& limits);

// A message of version `from` in version `to`.
Result<std::unique_ptr<api::Message>> ConvertMessage(const api::ResourceInfo& from,
                                                     const api::Message& message, const api::ResourceInfo& to,
                                                     const etcd::Limits& limits);

}  // namespace keelson::storage
