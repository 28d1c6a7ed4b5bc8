// Internal to controlplane/registry: its state, and the steps that its verbs share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "controlplane/registry/custom_resource_table.h"
#include "controlplane/registry/registry.h"
#include "controlplane/registry/service_allocator.h"
#include "controlplane/registry/service_repair.h"
#include "controlplane/registry/strategy.h"
#include "controlplane/storage/store.h"

namespace keelson::registry {

// The version of an object that a write starts from.
struct Current {
  ObjectPtr object;  // null: it does not exist
  bool from_cache = false;
};

// Makes the new object from the stored one; called again after a lost race.
using Change = std::function<Result<std::unique_ptr<Message>>(const Message& current)>;

struct UpdateRequest {
  const ResourceInfo& info;  // the main row
  std::string_view ns, name;
  Part part = Part::kMain;
  // The requested row: admission sees it, and it decides the part.
  const ResourceInfo* requested = nullptr;
  Change change;
  // For create on update: returns the object to create when there is none. Null: kNotFound instead.
  std::function<Result<std::unique_ptr<Message>>()> create;
  bool patch = false;
  bool fields_managed = false;  // `change` and `create` set managed fields themselves
  bool coerced = false;         // what `change` makes of a custom object follows its schema
};

struct Registry::Impl {
  storage::Store& store;
  Config config;
  Clock& clock;
  CustomResourceTable custom;
  ServiceAllocator allocator;
  ServiceRepair repair;
  std::map<const ResourceInfo*, std::unique_ptr<Strategy>> strategies;
  mutable Mutex custom_mutex;
  mutable std::map<const apiextensions::CustomRow*, std::unique_ptr<Strategy>> custom_strategies
      KEELSON_GUARDED_BY(custom_mutex);

  Impl(storage::Store& s, Config c, Clock& k);

  const Strategy& StrategyOf(const ResourceInfo& info) const;  // of a main row
  storage::Limits LimitsOf(const WriteOptions& options) const;
  storage::Limits ReadLimits(std::stop_token stop, SteadyTime deadline = SteadyTime::max()) const;
  std::chrono::seconds TtlOf(const ResourceInfo& info) const;

  // Records a warning event about `about`; tries at most once.
  void Warn(const Message& about, std::string_view reason, std::string note);

  // ---- read.cc ----
  Result<storage::Predicate> ParseSelectors(const ResourceInfo& info, const ListOptions& options) const;

  // ---- write.cc ----
  // `name`: the object to be created in the namespace.
  Result<> CheckNamespace(const ResourceInfo& info, std::string_view ns, std::string_view name,
                          const storage::Limits& limits) const;
  Result<Written> Create(const ResourceInfo& info, const ResourceInfo& requested, std::string_view ns,
                         std::unique_ptr<Message> object, const WriteOptions& options,
                         bool fields_managed = false);
  // Stores a new object, with an error as of Store::Put(). A custom object is stored only while its definition is the one that
  // allows it: what comes after the definition's finalizer has looked for objects would stay behind.
  Result<ObjectPtr> PutNew(const ResourceInfo& info, const Message& object, storage::Conflict& conflict,
                           const storage::Limits& limits);
  Result<Written> Update(const UpdateRequest& request, const WriteOptions& options);
  Result<Written> TryUpdate(const UpdateRequest& request, const Current& current, const WriteOptions& options,
                            Current& newer);

  // ---- patch.cc ----
  // Server-side apply of a configuration in JSON.
  Result<Written> Apply(const ResourceInfo& info, std::string_view ns, std::string_view name,
                        std::string_view config, const WriteOptions& options);

  // ---- delete.cc ----
  Result<Deleted> Delete(const ResourceInfo& info, std::string_view ns, std::string_view name,
                         const metav1::DeleteOptions& delete_options, const WriteOptions& options);
  Result<Deleted> TryDelete(const ResourceInfo& info, const Current& current,
                            const metav1::DeleteOptions& delete_options, const WriteOptions& options,
                            Current& newer);
  // Deletes an object that cannot be read, and refuses others. The result has no object.
  Result<Deleted> DeleteUnreadable(const ResourceInfo& info, std::string_view ns, std::string_view name,
                                   const WriteOptions& options);
  // Removes the object from storage.
  Result<Deleted> Remove(const ResourceInfo& info, const Current& current, const WriteOptions& options,
                         Current& newer);

  // ---- subresource.cc ----
  Result<ObjectPtr> ScaleOf(const ResourceInfo& scale_info, const Message& parent) const;
  Result<Written> UpdateScale(const ResourceInfo& scale_info, std::string_view ns, std::string_view name,
                              const Change& change, const WriteOptions& options, bool fields_managed = false);
  Result<Written> Bind(const ResourceInfo& info, std::string_view ns, std::string_view name,
                       const Message& binding, const WriteOptions& options);

  // ---- eviction.cc ----
  Result<> MarkAndDelete(std::string_view ns, std::string_view name, metav1::DeleteOptions delete_options,
                         const WriteOptions& options);
  Result<bool> AskBudget(const corev1::Pod& pod, std::string& budget_name, const WriteOptions& options);
  Result<Written> Evict(const ResourceInfo& info, std::string_view ns, std::string_view name,
                        const Message& eviction, const WriteOptions& options);
};

// The main row of a row, and the part that its subresource means.
const ResourceInfo& MainRow(const ResourceInfo& info);
Result<Part> PartOf(const ResourceInfo& info);
std::string_view SubresourceOf(const ResourceInfo& info);  // "status", or empty

// 409 for an object other than the one that the client means, in storage's words.
Error UidConflict(const ResourceInfo& info, std::string_view ns, std::string_view name,
                  std::string_view wanted, std::string_view stored);
Error VersionConflict(const ResourceInfo& info, std::string_view ns, std::string_view name,
                      std::string_view wanted, std::string_view stored);

std::unique_ptr<Message> Clone(const Message& message);
// Runs both phases of admission, for operations without steps between them.
Result<> Admit(const WriteOptions& options, Operation operation, const ResourceInfo& info, Message* object,
               const Message* old_object);
// Runs `attempt` on the cached object; on the stored one if that fails; and again on each version that
// others have written in the meantime. `attempt` fills `newer` when it has lost a race. A write without an answer is not
// repeated: it would meet what it has itself written, and a patch could take effect twice.
template <typename T>
Result<T> WithRetries(storage::Store& store, const ResourceInfo& info, std::string_view key,
                      const storage::Limits& limits,
                      const std::function<Result<T>(const Current& current, Current& newer)>& attempt);

// Applies a patch; in patch.cc.
Result<std::unique_ptr<Message>> ApplyPatch(const Message& current, const ResourceInfo& info, PatchType type,
                                            std::string_view patch, FieldValidation validation,
                                            std::vector<std::string>& warnings);

inline constexpr int kMaxAttempts = 24;

// Whether a write that has failed so may still have happened, or may happen yet.
inline bool IsOutcomeUnknown(const Error& error) {
  return error.Is(Code::kUnavailable) || error.Is(Code::kTimeout) || error.Is(Code::kCancelled) ||
         error.Is(Code::kInternal);
}

template <typename T>
Result<T> WithRetries(storage::Store& store, const ResourceInfo& info, std::string_view key,
                      const storage::Limits& limits,
                      const std::function<Result<T>(const Current& current, Current& newer)>& attempt) {
  Current current{store.Peek(info, key), true};
  if (!current.object) {
    KEELSON_ASSIGN_OR_RETURN(current.object, store.Get(info, key, "", limits));
    current.from_cache = false;
  }
  for (int i = 0;; ++i) {
    Current newer;
    bool lost = false;
    newer.from_cache = true;  // unless the attempt changes it
    Result<T> outcome = attempt(current, newer);
    if (outcome) return outcome;
    lost = !newer.from_cache;
    if (lost && i < kMaxAttempts) {
      current = newer;
      continue;
    }
    // After a write without an answer the stored version may be the one that it has made.
    if (!current.from_cache || IsOutcomeUnknown(outcome.error())) return outcome;
    // The error may come from an outdated copy: read etcd before reporting it.
    KEELSON_ASSIGN_OR_RETURN(ObjectPtr stored, store.Get(info, key, "", limits));
    if (stored && current.object && stored->revision() == current.object->revision()) return outcome;
    current = {stored, false};
  }
}

}  // namespace keelson::registry
