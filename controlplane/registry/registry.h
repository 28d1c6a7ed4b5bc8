// What every API resource does, over HTTP or not: get, list, watch, create, update, patch, delete, with the
// semantics of Kubernetes' generic registry. Authentication, authorization and encodings are the caller's.
//
// `info` is the row that was asked for. A subresource row works where that makes sense, and then means its
// part of the parent object named `name`:
//   get, update, patch   .../status, .../scale, namespaces/finalize, pods/ephemeralcontainers, pods/resize,
//                        certificatesigningrequests/approval
//   create               pods/binding (a Binding), pods/eviction (an Eviction)
//
// Errors carry upstream's message, reason and details, ready for api::ToStatus().
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
  std::string name;  // only this object; a field selector may then name it too, and nothing else
  // Watch only.
  bool allow_bookmarks = false;
  std::optional<bool> send_initial_events;
  std::optional<int64_t> timeout_seconds;   // for whoever holds the watch
  SteadyTime deadline = SteadyTime::max();  // at most 30 s are used
};

struct ObjectList {
  std::vector<ObjectPtr> items;
  int64_t revision = 0;
  std::string continue_token;        // empty: that was all
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

// Called twice, with the new object and the stored one (null on create): to change the object, when it has
// its defaults and nobody has looked at it; to judge it, when it is as it will be stored, and valid. On
// delete with the stored one as `old_object` and object null. May be called again, from the first phase, when
// a write has to be tried again.
enum class AdmissionPhase { kMutate, kValidate };
using Admission = std::function<Result<>(AdmissionPhase phase, Operation operation, const ResourceInfo& info,
                                         Message* object, const Message* old_object)>;

struct WriteOptions {
  bool dry_run = false;
  std::string field_manager;  // who managed fields say it was; applies need one
  bool force = false;         // applies: take fields from other managers
  FieldValidation field_validation = FieldValidation::kWarn;
  UserInfo user;
  Admission admission;  // may be empty
  std::stop_token stop;
  SteadyTime deadline = SteadyTime::max();  // at most 30 s are used
};

struct Written {
  ObjectPtr object;                   // null for bindings and evictions: the answer is a Status "Success"
  bool created = false;               // 201 rather than 200
  std::vector<std::string> warnings;  // for Warning headers: unknown fields under kWarn
};

struct Deleted {
  ObjectPtr object;            // as it was last; null: it could not be read
  bool gone = false;           // removed; else deletion has begun (grace period, finalizers)
  bool return_object = false;  // upstream answers with the object, otherwise with a Status when gone
};

struct Config {
  std::vector<std::string> service_cidrs = {
      "10.96.0.0/12"};  // one or two (dual stack), the first is the default
  int node_port_first = 30000, node_port_last = 32767;
  std::chrono::seconds event_ttl{3600};
};

class Registry {
 public:
  Registry(storage::Store& store, Config config, Clock& clock = Clock::Real());
  ~Registry();
  // Makes the ServiceCIDR "kubernetes" and rebuilds the allocators; once, after the store is ready, before
  // the first write.
  Result<> Start(std::stop_token stop);
  // After Start(), until `stop`: keeps what Services hold and what is allocated the same.
  void Maintain(std::stop_token stop);

  // resource_version: "" is the newest, "0" whatever the cache has, otherwise not older than that.
  Result<ObjectPtr> Get(const ResourceInfo& info, std::string_view ns, std::string_view name,
                        std::string_view resource_version = "", std::stop_token stop = {},
                        SteadyTime deadline = SteadyTime::max());
  // `ns` empty: all namespaces.
  Result<ObjectList> List(const ResourceInfo& info, std::string_view ns, const ListOptions& options,
                          std::stop_token stop = {});
  // Bad requests are errors; all that is found out later (kGone too) comes through sink->OnEnd(), as
  // clients expect it inside the stream. The initial events are delivered before this returns.
  Result<std::unique_ptr<storage::WatchHandle>> Watch(const ResourceInfo& info, std::string_view ns,
                                                      const ListOptions& options,
                                                      std::shared_ptr<storage::WatchSink> sink,
                                                      std::stop_token stop = {});

  // `object` is the decoded body. Its namespace may be empty; name conflicts with the URL are errors here.
  // `name` is only for subresources.
  Result<Written> Create(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         std::unique_ptr<Message> object, const WriteOptions& options);
  Result<Written> Update(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         std::unique_ptr<Message> object, const WriteOptions& options);
  // Reads, changes and writes, again while others are quicker. `change` may be called several times.
  Result<Written> Modify(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         const std::function<Result<>(Message& object)>& change, const WriteOptions& options);
  // `patch` is JSON. Unknown fields are judged by options.field_validation. An apply creates what is not
  // there.
  Result<Written> Patch(const ResourceInfo& info, std::string_view ns, std::string_view name, PatchType type,
                        std::string_view patch, const WriteOptions& options);
  Result<Deleted> Delete(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         const metav1::DeleteOptions& delete_options, const WriteOptions& options);
  // The objects as they were listed, before.
  Result<ObjectList> DeleteCollection(const ResourceInfo& info, std::string_view ns, const ListOptions& list,
                                      const metav1::DeleteOptions& delete_options,
                                      const WriteOptions& options);

  storage::Store& store() { return store_; }

 private:
  struct Impl;
  storage::Store& store_;
  std::unique_ptr<Impl> impl_;
};

// `dryRun` of any options: nothing but "All".
void CheckDryRun(const google::protobuf::RepeatedPtrField<std::string>& values,
                 std::vector<k8s::FieldError>& errors);

// Errors in upstream's words, with details.
Error NotFoundError(const ResourceInfo& info, std::string_view name);       // pods "x" not found
Error AlreadyExistsError(const ResourceInfo& info, std::string_view name);  // pods "x" already exists
Error ConflictError(const ResourceInfo& info, std::string_view name, std::string_view why);
Error ForbiddenError(const ResourceInfo& info, std::string_view name, std::string_view why);

}  // namespace keelson::registry
