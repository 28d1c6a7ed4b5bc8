#include "cni/agent/node_source.h"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "lib/base/percent.h"

namespace keelson::cni::agent {

Result<> NodeSource::Annotate(const std::string& node, const std::string& key,
                              const std::string& value) const {
  client::ApiRequest request{.method = "PATCH", .target = path_ + "/" + PercentEncode(node)};
  request.content_type = "application/merge-patch+json";
  boost::json::object annotations{{key, value}};
  boost::json::object patch{{"metadata", boost::json::object{{"annotations", annotations}}}};
  request.body = boost::json::serialize(patch);
  KEELSON_RETURN_IF_ERROR(Exchange(request, {}));
  return {};
}

}  // namespace keelson::cni::agent
