// Discovery documents: /api, /apis, /apis/GROUP, /apis/GROUP/VERSION, and aggregated discovery (KEP-3352).
#pragma once

#include <map>
#include <string>

#include "controlplane/apiserver/endpoints/context.h"
#include "controlplane/apiserver/request/api_enablement.h"

namespace keelson::apiserver {

class Discovery {  // thread safe
 public:
  // `server_address`: host:port for clients.
  explicit Discovery(std::string server_address, ApiEnablement enablement = {});
  // Returns false when the path is not a discovery path.
  bool Handle(Context& context) const;

 private:
  struct Document {
    std::string path;
    std::unique_ptr<api::Message> message;
    api::GroupVersionKind gvk;
  };
  void AddGroups();
  void AddResourceLists();
  void Add(std::string path, std::unique_ptr<api::Message> message, std::string kind);
  struct Aggregated {
    std::unique_ptr<api::Message> message;
    std::string etag;  // of the contents, independent of the encoding
  };
  void ReplyAggregated(Context& context, const Aggregated& list, const std::string& version) const;

  const std::string server_address_;
  const ApiEnablement enablement_;
  std::map<std::string, Document, std::less<>> documents_;
  Aggregated core_aggregated_, groups_aggregated_;
};

}  // namespace keelson::apiserver
