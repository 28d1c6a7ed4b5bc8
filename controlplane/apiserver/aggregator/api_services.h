// The APIServices of the cluster: which server answers for a group and version, and where it stands in discovery.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "controlplane/storage/object.h"
#include "controlplane/storage/store.h"
#include "lib/api/proto/apiregistration_v1.pb.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver {

namespace apiregistrationv1 = api::apiregistration::v1;

// The group of APIServices themselves always belongs to this server, so that a wrong APIService can be removed.
inline constexpr std::string_view kRegistrationGroup = "apiregistration.k8s.io";

// One APIService. Immutable.
struct ApiServiceEntry {
  std::string name, uid, group, version;
  int32_t group_priority = 0, version_priority = 0;
  bool local = true;       // this server answers itself; the rest is then not set
  bool available = false;  // the condition Available
  std::string service_ns, service_name;
  int32_t service_port = 443;
  std::string ca_pem;  // empty: the system's CAs
  bool insecure = false;

  // The name that the extension server's certificate has to be valid for.
  std::string ServerName() const { return service_name + "." + service_ns + ".svc"; }
  // /apis/GROUP/VERSION
  std::string Path() const;
  // Equal for entries that lead to the same server with the same trust.
  std::string Target() const;
};
using ApiServicePtr = std::shared_ptr<const ApiServiceEntry>;

ApiServicePtr ToEntry(const apiregistrationv1::APIService& service);
const apiregistrationv1::APIServiceCondition* AvailableCondition(
    const apiregistrationv1::APIService& service);

// The group and version that a path belongs to: /apis/GROUP/VERSION, /api/v1, and what is below. Both are empty for
// other paths.
std::pair<std::string_view, std::string_view> GroupVersionOf(std::string_view path);

class ApiServices {  // thread safe
 public:
  using Map = std::map<std::string, ApiServicePtr, std::less<>>;  // by name

  // `store` must outlive this.
  explicit ApiServices(const storage::Store& store);
  // Changes, from a Reflector.
  void Put(const storage::ObjectPtr& object);
  void Remove(const std::string& name);

  std::shared_ptr<const Map> All() const { return all_.load(); }
  // The APIService of an extension server that answers for the group and version; null: this server does.
  ApiServicePtr RemoteOf(std::string_view group, std::string_view version) const;

 private:
  void Replace(const std::string& name, ApiServicePtr entry);

  const storage::Store& store_;
  Mutex mutex_;  // of writers
  std::atomic<std::shared_ptr<const Map>> all_;
  std::atomic<size_t> remote_{0};  // how many are not local
};

}  // namespace keelson::apiserver
