// The verbs of every API resource, independent of HTTP: get, list, watch, create, update, patch, delete,
// with the semantics of Kubernetes' generic registry. The caller handles authentication, authorization and
// encodings.
//
// `info` is the requested row. A subresource's row is valid where that makes sense, and means its part of
// the parent object named `name`:
//   get, update, patch   .../status, .../scale, namespaces/finalize, pods/ephemeralcontainers, pods/resize,
//                        certificatesigningrequests/approval
//   create               pods/binding (a Binding), pods/eviction (an Eviction)
//
// Errors have upstream's message, reason and details, ready for api::ToStatus(). Thread safe.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/storage/object.h"
#include "lib/api/scheme.h"
#include "lib/api/types.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::storage {
class Store;
}
namespace keelson::apiextensions {
class Converter;
class CustomResource;
class Definition;
}  // namespace keelson::apiextensions
namespace keelson::k8s {
struct FieldError;
}

namespace keelson::registry {

using api::Message;
using api::ResourceInfo;
using storage::ObjectPtr;

struct ListOptions {
  std::string label_selector, field_selector;  // as in the query
  std::string resource_version, resource_version_match;
  int64_t limit = 0;
  std::string continue_token;
  std::string name;  // only this object; a field selector may only name it too
  // Watch only.
  bool allow_bookmarks = false;
  std::optional<bool> send_initial_events;
  std::optional<int64_t> timeout_seconds;   // for the caller, who ends the watch
  SteadyTime deadline = SteadyTime::max();  // at most 30 s from now
};

struct ObjectList {
  std::vector<ObjectPtr> items;
  int64_t revision = 0;
  std::string continue_token;        // empty: no more pages
  std::optional<int64_t> remaining;  // remainingItemCount
};

enum class FieldValidation { kIgnore, kWarn, kStrict };
enum class PatchType { kJson, kMerge, kStrategicMerge, kApply };
enum class Operation { kCreate, kUpdate, kDelete, kConnect };

struct UserInfo {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

// Called twice per write, with the new object and the stored one (null on create): kMutate may change the
// object, which has its defaults; kValidate judges the valid object in its final form. On delete `object`
// is null, and `old_object` is the stored one. Called again, from the first phase, when the write must be
// retried.
enum class AdmissionPhase { kMutate, kValidate };
using Admission = std::function<Result<>(AdmissionPhase phase, Operation operation, const ResourceInfo& info,
                                         Message* object, const Message* old_object)>;

struct WriteOptions {
  bool dry_run = false;
  std::string field_manager;  // the manager for managed fields; required for applies
  bool force = false;         // applies: take fields from other managers
  FieldValidation field_validation = FieldValidation::kWarn;
  bool coerced = false;  // custom objects given to Create() and Update() follow their schema already
  UserInfo user;
  Admission admission;  // may be empty
  std::stop_token stop;
  SteadyTime deadline = SteadyTime::max();  // at most 30 s from now
};

struct Written {
  ObjectPtr object;                   // null for bindings and evictions: the response is a Status "Success"
  bool created = false;               // 201 rather than 200
  std::vector<std::string> warnings;  // for Warning headers: unknown fields under kWarn
};

struct Deleted {
  ObjectPtr object;            // its last state; null: it could not be read
  bool gone = false;           // removed; otherwise the deletion has begun (grace period, finalizers)
  bool return_object = false;  // respond with the object; otherwise, when gone, with a Status
};

struct Config {
  // One, or two for dual stack; the first is the default.
  std::vector<std::string> service_cidrs = {"10.96.0.0/12"};
  int node_port_first = 30000, node_port_last = 32767;
  std::chrono::seconds event_ttl{3600};
};

class Registry {
 public:
  Registry(storage::Store& store, Config config, Clock& clock = Clock::Real());
  ~Registry();
  // Makes the ServiceCIDR "kubernetes" and rebuilds the allocators. Call once, when the store is ready,
  // before the first write.
  Result<> Start(std::stop_token stop);
  // Keeps allocations consistent with Services, until `stop`. Call after Start().
  void Maintain(std::stop_token stop);

  // The row of a resource that exists: of the static table, or of a custom resource whose definition serves the
  // version. `resource` may be a subresource. Null: there is none. Custom resources are ready for reads and watches
  // afterwards; kUnavailable and the like when etcd does not answer.
  Result<const ResourceInfo*> FindResource(std::string_view group, std::string_view version,
                                           std::string_view resource, std::stop_token stop = {});
  // The same for a main resource by its kind.
  const ResourceInfo* FindKind(std::string_view group, std::string_view version, std::string_view kind);
  // All custom resources that are served, with their present definitions.
  void ForEachCustom(
      const std::function<void(apiextensions::CustomResource&, const apiextensions::Definition&)>& each);

  // What converts objects of definitions whose conversion strategy is Webhook; without it such conversions fail. Before
  // the first request.
  void SetConverter(std::shared_ptr<apiextensions::Converter> converter);

  // Deletes all objects of a custom resource in the background, without admission, whether it is served or not.
  // Returns how many are left: those that finalizers hold.
  Result<size_t> DeleteCustomObjects(std::string_view group, std::string_view plural,
                                     const WriteOptions& options);
  // Ends the watches of a custom resource whose definition is gone. `name`: of the definition.
  void ForgetCustom(const std::string& name);

  // `resource_version`: "" is the newest, "0" any version in the cache, otherwise at least that version.
  Result<ObjectPtr> Get(const ResourceInfo& info, std::string_view ns, std::string_view name,
                        std::string_view resource_version = "", std::stop_token stop = {},
                        SteadyTime deadline = SteadyTime::max());
  // `ns` empty: all namespaces.
  Result<ObjectList> List(const ResourceInfo& info, std::string_view ns, const ListOptions& options,
                          std::stop_token stop = {});
  // Invalid requests are errors of the call. Anything found later (kGone too) goes to sink->OnEnd(),
  // because clients expect it inside the stream. Initial events are delivered before this returns.
  Result<std::unique_ptr<storage::WatchHandle>> Watch(const ResourceInfo& info, std::string_view ns,
                                                      const ListOptions& options,
                                                      std::shared_ptr<storage::WatchSink> sink,
                                                      std::stop_token stop = {});

  // `object` is the decoded body. Its namespace may be empty; a name that differs from the URL's is an
  // error. `name` is used for subresources only.
  Result<Written> Create(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         std::unique_ptr<Message> object, const WriteOptions& options);
  Result<Written> Update(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         std::unique_ptr<Message> object, const WriteOptions& options);
  // Reads, changes and writes, with retries after lost races. `change` may be called several times.
  Result<Written> Modify(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         const std::function<Result<>(Message& object)>& change, const WriteOptions& options);
  // `patch` is JSON. options.field_validation decides about unknown fields. An apply creates a missing
  // object.
  Result<Written> Patch(const ResourceInfo& info, std::string_view ns, std::string_view name, PatchType type,
                        std::string_view patch, const WriteOptions& options);
  Result<Deleted> Delete(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         const metav1::DeleteOptions& delete_options, const WriteOptions& options);
  // Deletes every listed object. Returns the objects as they were before.
  Result<ObjectList> DeleteCollection(const ResourceInfo& info, std::string_view ns, const ListOptions& list,
                                      const metav1::DeleteOptions& delete_options,
                                      const WriteOptions& options);

  storage::Store& store() { return store_; }

 private:
  struct Impl;
  storage::Store& store_;
  std::unique_ptr<Impl> impl_;
};

// Checks `dryRun` of any options: only "All" is allowed.
void CheckDryRun(const google::protobuf::RepeatedPtrField<std::string>& values,
                 std::vector<k8s::FieldError>& errors);

// Errors in upstream's words, with details:
Error NotFoundError(const ResourceInfo& info, std::string_view name);       // pods "x" not found
Error AlreadyExistsError(const ResourceInfo& info, std::string_view name);  // pods "x" already exists
Error ConflictError(const ResourceInfo& info, std::string_view name, std::string_view why);
Error ForbiddenError(const ResourceInfo& info, std::string_view name, std::string_view why);

}  // namespace keelson::registry
