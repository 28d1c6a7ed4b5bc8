// Built-in admission: plugins that change or reject an object before it is stored. One plugin per file.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/request/user.h"
#include "controlplane/registry/registry.h"
#include "lib/base/error.h"

namespace keelson::apiserver {

// Warnings and annotations that plugins add to a request.
struct AdmissionNotes {
  std::vector<std::string> warnings;               // for the client, if the request is admitted
  std::map<std::string, std::string> annotations;  // for the audit log: "pod-security.kubernetes.io/exempt"
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

  bool Is(std::string_view group, std::string_view resource) const {
    return info.group == group && info.resource == resource;
  }
  bool Creates() const { return operation == registry::Operation::kCreate; }
  bool Updates() const { return operation == registry::Operation::kUpdate; }
  bool Deletes() const { return operation == registry::Operation::kDelete; }
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
  virtual Result<> Mutate(const AdmissionRequest&) { return {}; }
  virtual Result<> Validate(const AdmissionRequest&) { return {}; }
};

// Runs Mutate of all plugins in order, then, on the final object, Validate of all plugins. Records the
// durations in apiserver_admission_*. Returns the first error.
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

// kForbidden, worded as upstream: pods "x" is forbidden: why
Error NotAdmitted(const AdmissionRequest& request, std::string_view why);

}  // namespace keelson::apiserver
