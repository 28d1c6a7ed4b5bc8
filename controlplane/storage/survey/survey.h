// Looks through everything that etcd has below /registry, and names what this server would not understand: before it takes
// over an etcd that another API server has filled.
//
// A server that meets such a value later fails each LIST that would hold it, but leaves it as it is. A value with fields that it
// does not know is served without them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiextensions/custom_resource.h"
#include "controlplane/etcd/client.h"
#include "controlplane/storage/encryption.h"

namespace keelson::storage {

// Objects of a resource that are stored alike.
struct StoredForm {
  std::string resource;    // deployments.apps
  std::string version;     // apps/v1
  std::string encoding;    // protobuf or json
  std::string encryption;  // aescbc:v1:key1; empty: none
  auto operator<=>(const StoredForm&) const = default;
};

struct Finding {
  std::string key;  // in etcd, as of "/registry"
  std::string problem;
};

class Survey {
 public:
  // `encryption` null: there is no --encryption-provider-config.
  explicit Survey(std::shared_ptr<Encryption> encryption);
  ~Survey();

  // A CustomResourceDefinition, from its key below kDefinitions: all of them come before the first Add().
  static constexpr std::string_view kDefinitions =
      "/registry/apiextensions.k8s.io/customresourcedefinitions/";
  void Define(const etcd::KeyValue& kv);
  // Any key; definitions too.
  void Add(const etcd::KeyValue& kv);

  const std::map<StoredForm, size_t>& forms() const { return forms_; }
  // The first kMaxFindings, in order of Add().
  static constexpr size_t kMaxFindings = 1000;
  const std::vector<Finding>& findings() const { return findings_; }
  size_t finding_count() const { return finding_count_; }

 private:
  const api::ResourceInfo* RowOf(std::string_view key, std::string_view& prefix, std::string& problem);
  void AddObject(const api::ResourceInfo& row, std::string_view prefix, const etcd::KeyValue& kv);
  void Find(const etcd::KeyValue& kv, std::string problem);

  const std::shared_ptr<Encryption> encryption_;
  std::map<std::string_view, const api::ResourceInfo*> rows_;  // by prefix
  apiextensions::CustomResources custom_;
  std::map<StoredForm, size_t> forms_;
  std::vector<Finding> findings_;
  size_t finding_count_ = 0;
};

}  // namespace keelson::storage
