// What differs from kind to kind in a write. One small class a kind that differs; everything else is done
// by the default one, from the shape of the type.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "controlplane/registry/registry.h"
#include "controlplane/storage/store.h"
#include "lib/k8s/field_error.h"

namespace keelson::registry {

// Which part of an object a write may touch.
enum class Part { kMain, kStatus, kFinalize, kApproval, kEphemeralContainers, kResize };

// Side effects of a write beyond its object: undone unless the write happens.
class Effects {
 public:
  ~Effects() { Run(undo_); }
  void OnUndo(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  void OnDone(std::function<void()> done) { done_.push_back(std::move(done)); }
  void Commit() {
    undo_.clear();
    Run(done_);
  }
  // Whether the write has happened is not known: everything stays, for repairs to look at.
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

  // What the way from a client's form to the stored one does, before managed fields are told: they are those
  // of the outcome.
  virtual void Fold(Message&) const {}
  // After metadata is filled in and before validation. The default keeps status out of users' hands where
  // the kind has a status subresource, and counts generations where upstream does.
  virtual void PrepareCreate(const Context& context, Message& object) const;
  virtual void PrepareUpdate(const Context& context, Message& object, const Message& old) const;
  // Other parts: what is not theirs stays as it was.
  virtual void PreparePart(const Context& context, Part part, Message& object, const Message& old) const;
  // Rules of the whole object that lib/k8s cannot know, after those that it does: `errors` has what these
  // say. `old` is null on create.
  virtual void Check(const Context&, Part, const Message& /*object*/, const Message* /*old*/,
                     k8s::FieldErrors& /*errors*/) const {}
  // Addresses, ports. `old` is null on create; dry runs must leave no trace.
  virtual Result<> Allocate(const Context&, Message&, const Message*, Effects&) const { return {}; }
  // The object is gone from storage.
  virtual void Deleted(const Context&, const Message&) const {}

  virtual bool AllowsCreateOnUpdate() const { return create_on_update_; }
  virtual bool AllowsUnconditionalUpdate() const { return unconditional_update_; }
  // Seconds before the object goes, or nullopt for kinds that go at once: only graceful ones show themselves
  // with a deletionTimestamp before they go. `asked` is the client's wish, not negative.
  virtual std::optional<int64_t> GracePeriod(const Message&, std::optional<int64_t> /*asked*/) const {
    return std::nullopt;
  }
  // May an object that is being deleted, without finalizers, go for good?
  virtual bool ReadyToGo(const Message& object) const;
  // Owns nothing: what a deletion says about dependents has no effect.
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
// Makes field `name` of `to` what it is in `from`; nothing if the type has no such field.
void CopyField(const Message& from, Message& to, const char* name);
void ClearField(Message& object, const char* name);
// Anything but metadata and status differs.
bool SpecDiffers(const Message& a, const Message& b);

// The strategy of every stored resource, made once.
class ServiceAllocator;
std::unique_ptr<Strategy> MakeStrategy(const ResourceInfo& info, ServiceAllocator& allocator);

// One file a family.
std::unique_ptr<Strategy> MakePodStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeNamespaceStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeServiceStrategy(const ResourceInfo& info, ServiceAllocator& allocator);
// The rest answer null when the kind is none of theirs.
std::unique_ptr<Strategy> MakeWorkloadStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeConfigStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeVolumeStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeCertificateStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakePodCertificateStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeExtensionStrategy(const ResourceInfo& info);
std::unique_ptr<Strategy> MakeAutoscalerStrategy(const ResourceInfo& info);

}  // namespace keelson::registry
