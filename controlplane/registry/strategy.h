// The differences between kinds in a write. Each kind that differs has a small class; the default class
// derives everything else from the shape of the type.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "controlplane/registry/registry.h"
#include "controlplane/storage/store.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiextensions {
struct CustomRow;
}

namespace keelson::registry {

// The part of an object that a write may change.
enum class Part { kMain, kStatus, kFinalize, kApproval, kEphemeralContainers, kResize };

// Side effects of a write beyond its object. They are undone unless Commit() or Abandon() is called.
class Effects {
 public:
  ~Effects() { Run(undo_); }
  void OnUndo(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  void OnDone(std::function<void()> done) { done_.push_back(std::move(done)); }
  void Commit() {
    undo_.clear();
    Run(done_);
  }
  // Call when the outcome of the write is unknown: undoes nothing, and leaves the rest to the repairs.
  void Abandon() {
    undo_.clear();
    done_.clear();
  }

 private:
  static void Run(std::vector<std::function<void()>>& actions) {
    for (auto it = actions.rbegin(); it != actions.rend(); ++it) (*it)();
    actions.clear();
  }
  std::vector<std::function<void()>> undo_, done_;
};

struct Context {
  const ResourceInfo& info;  // the main row
  const WriteOptions& options;
  Clock& clock;
  storage::Limits limits;
  std::vector<std::string>* warnings = nullptr;  // for the client; may be null
};

class Strategy {
 public:
  explicit Strategy(const ResourceInfo& info);
  virtual ~Strategy() = default;

  // Whether new objects may be made now.
  virtual Result<> MayCreate() const { return {}; }
  // Sets fields that the client and admission have left out.
  virtual void SetDefaults(Message& object) const;
  // The rules of lib/k8s, or of the definition. `subresource`: of the requested row.
  virtual k8s::FieldErrors Validate(const Message& object) const;
  virtual k8s::FieldErrors ValidateUpdate(Part part, std::string_view subresource, const Message& object,
                                          const Message& old) const;
  // Converts from the client's form to the stored one. Runs before managed fields are computed, which then
  // describe the result.
  virtual void Fold(Message&) const {}
  // Run after metadata is filled in and before validation. The defaults keep users from writing status
  // where the kind has a status subresource, and count generations where upstream does.
  virtual void PrepareCreate(const Context& context, Message& object) const;
  virtual void PrepareUpdate(const Context& context, Message& object, const Message& old) const;
  // Prepares a write to another part: resets everything that does not belong to the part.
  virtual void PreparePart(const Context& context, Part part, Message& object, const Message& old) const;
  // Rules for the whole object that lib/k8s cannot check. Runs after the rules there; `errors` already has
  // their errors. `old` is null on create.
  virtual void Check(const Context&, Part, const Message& /*object*/, const Message* /*old*/,
                     k8s::FieldErrors& /*errors*/) const {}
  // Allocates addresses and ports. `old` is null on create; a dry run must leave no trace.
  virtual Result<> Allocate(const Context&, Message&, const Message*, Effects&) const { return {}; }
  // Changes an object whose deletion begins, before finalizers are looked at.
  virtual void BeginDeletion(Message&, Clock&) const {}
  // Called when the object has been removed from storage.
  virtual void Deleted(const Context&, const Message&) const {}

  virtual bool AllowsCreateOnUpdate() const { return create_on_update_; }
  virtual bool AllowsUnconditionalUpdate() const { return unconditional_update_; }
  // The grace period in seconds, or nullopt for kinds that are removed at once: only kinds with a grace
  // period are visible with a deletionTimestamp first. `asked` is the client's request, not negative.
  virtual std::optional<int64_t> GracePeriod(const Message&, std::optional<int64_t> /*asked*/) const {
    return std::nullopt;
  }
  // Whether an object that is being deleted and has no finalizers may be removed.
  virtual bool ReadyToGo(const Message& object) const;
  // False for kinds that own nothing: options about dependents have no effect.
  bool collects_garbage() const { return collects_garbage_; }
  bool orphans_by_default() const { return orphans_by_default_; }
  bool returns_deleted_object() const { return returns_deleted_object_; }

 protected:
  const ResourceInfo& info_;
  bool has_status_ = false;  // a status subresource
  bool counts_generation_ = false;
  bool keeps_status_on_create_ = false;
  bool create_on_update_ = false, unconditional_update_ = true;
  bool collects_garbage_ = true;
  bool orphans_by_default_ = false, returns_deleted_object_ = false;
};

// ---- helpers for strategies ----
// Copies field `name` from `from` to `to`; does nothing if the type has no such field.
void CopyField(const Message& from, Message& to, const char* name);
void ClearField(Message& object, const char* name);
// Whether anything but metadata and status differs.
bool SpecDiffers(const Message& a, const Message& b);

// Makes the strategy of a stored resource; called once per resource.
class ServiceAllocator;
std::unique_ptr<Strategy> MakeStrategy(const ResourceInfo& info, ServiceAllocator& allocator);
std::unique_ptr<Strategy> MakeCustomStrategy(const apiextensions::CustomRow& row);

// One file per family of kinds.
std::unique_ptr<Strategy> MakePodStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeNamespaceStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeServiceStrategy(const ResourceInfo& info, ServiceAllocator& allocator);
// The functions below return null when the kind is not theirs.
std::unique_ptr<Strategy> MakeWorkloadStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeConfigStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeVolumeStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeCertificateStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakePodCertificateStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeExtensionStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeAutoscalerStrategy(const ResourceInfo& info);

}  // namespace keelson::registry
