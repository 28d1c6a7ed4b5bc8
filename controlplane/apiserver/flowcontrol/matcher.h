// Classifies requests by FlowSchemas.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/request/request_info.h"
#include "controlplane/apiserver/request/user.h"
#include "lib/api/proto/flowcontrol_v1.pb.h"
#include "lib/base/mutex.h"

namespace keelson::apiserver::flowcontrol {

using FlowSchemaPtr = std::shared_ptr<const api::flowcontrol::v1::FlowSchema>;

bool Matches(const api::flowcontrol::v1::FlowSchema& schema, const User& user, const RequestInfo& request);
// The flow distinguisher: user, namespace, or empty, depending on the schema.
std::string FlowOf(const api::flowcontrol::v1::FlowSchema& schema, const User& user,
                   const RequestInfo& request);
uint64_t FlowHash(const api::flowcontrol::v1::FlowSchema& schema, std::string_view flow);

class Matcher {  // thread safe
 public:
  void Put(FlowSchemaPtr schema);
  void Remove(const std::string& name);
  // The first match by matching precedence, then name; null: none.
  FlowSchemaPtr Find(const User& user, const RequestInfo& request) const;

 private:
  using Sorted = std::vector<FlowSchemaPtr>;
  void Sort() KEELSON_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, FlowSchemaPtr> schemas_ KEELSON_GUARDED_BY(mutex_);
  std::shared_ptr<const Sorted> sorted_ KEELSON_GUARDED_BY(mutex_) = std::make_shared<Sorted>();
};

}  // namespace keelson::apiserver::flowcontrol
