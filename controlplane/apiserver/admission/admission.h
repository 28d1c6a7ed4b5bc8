// Admission: plugins that change or reject an object before it is stored. One plugin per file.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/request/user.h"
#include "controlplane/registry/registry.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"

namespace keelson::apiserver {

// Warnings and annotations that plugins add to a request.
struct AdmissionNotes {
  std::vector<std::string> warnings;               // for the client, if the request is admitted
  std::vector<std::string> told;                   // for the client, whether or not it is admitted
  std::map<std::string, std::string> annotations;  // for the audit log: "pod-security.kubernetes.io/exempt"
  // The same, for events that contain request bodies: they show parts of the object.
  std::map<std::string, std::string> body_annotations;
  // The response of a request that a plugin has rejected, where a Status says more than the plugin's Error.
  std::optional<metav1::Status> denial;
};

// Shared by the plugins of one request that may have to see each other's changes. The chain runs Mutate of
// all plugins once more, if a plugin asks for that.
class Reinvocation {
 public:
  bool again() const { return again_; }  // this is the second run
  void Ask() { asked_ = true; }
  // The state of a plugin, by its name; made on first use.
  template <typename T>
  T& StateOf(std::string_view plugin) {
    std::shared_ptr<void>& state = states_[plugin];
    if (!state) state = std::make_shared<T>();
    return *static_cast<T*>(state.get());
  }

 private:
  friend class AdmissionChain;
  bool asked_ = false, again_ = false;
  std::map<std::string_view, std::shared_ptr<void>> states_;
};

// The CreateOptions, UpdateOptions, PatchOptions or DeleteOptions of a request, as the client sent them.
struct OperationOptions {
  std::string field_manager, field_validation;
  const metav1::DeleteOptions* deletion = nullptr;  // of a delete
};

struct AdmissionRequest {
  registry::Operation operation;
  const api::ResourceInfo& info;   // may be a subresource's row
  std::string_view ns, name;       // name: from the URL; empty on create
  api::Message* object;            // new state; null on delete
  const api::Message* old_object;  // null on create
  const User& user;
  bool dry_run = false;
  AdmissionNotes* notes = nullptr;
  std::string_view verb = {};  // of the HTTP request: create, update, patch, ...
  const OperationOptions* options = nullptr;
  SteadyTime deadline = SteadyTime::max();
  Reinvocation* reinvocation = nullptr;  // set by the chain in Mutate

  bool Is(std::string_view group, std::string_view resource) const {
    return info.group == group && info.resource == resource;
  }
  bool Creates() const { return operation == registry::Operation::kCreate; }
  bool Updates() const { return operation == registry::Operation::kUpdate; }
  bool Deletes() const { return operation == registry::Operation::kDelete; }
  bool Connects() const { return operation == registry::Operation::kConnect; }
  // MainResource(): "pods" of "pods/status". Subresource(): "status", or empty.
  std::string_view MainResource() const { return info.resource.substr(0, info.resource.find('/')); }
  std::string_view Subresource() const;
  // The name in the URL or the object, else its generateName.
  std::string Name() const;

  template <typename T>
  T& Object() const {
    return static_cast<T&>(*object);
  }
  template <typename T>
  const T& OldObject() const {
    return static_cast<const T&>(*old_object);
  }
};

class AdmissionPlugin {  // thread safe; calls may be repeated for one request
 public:
  virtual ~AdmissionPlugin() = default;
  virtual std::string_view name() const = 0;
  // Whether the plugin is also about connections (exec, proxies), whose objects are options without metadata.
  virtual bool HandlesConnect() const { return false; }
  virtual Result<> Mutate(const AdmissionRequest&) { return {}; }
  virtual Result<> Validate(const AdmissionRequest&) { return {}; }
};

// Runs Mutate of all plugins in order, a second time if a plugin has asked for it, then, on the final object,
// Validate of all plugins. Records the durations in apiserver_admission_*. Returns the first error.
class AdmissionChain {
 public:
  explicit AdmissionChain(std::vector<std::unique_ptr<AdmissionPlugin>> plugins);
  ~AdmissionChain();
  Result<> Mutate(const AdmissionRequest& request) const;
  Result<> Validate(const AdmissionRequest& request) const;
  std::vector<std::string_view> Names() const;

 private:
  struct Timed;
  Result<> Run(const AdmissionRequest& request, bool mutate) const;
  std::vector<std::unique_ptr<Timed>> plugins_;
  std::unique_ptr<Timed> whole_;
};

// CREATE, UPDATE, DELETE, CONNECT
std::string_view NameOf(registry::Operation operation);
// kForbidden, worded as upstream: pods "x" is forbidden: why
Error NotAdmitted(const AdmissionRequest& request, std::string_view why);

}  // namespace keelson::apiserver
