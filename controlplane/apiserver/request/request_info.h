// The verb, resource and name of an API request, from its method and path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/http/message.h"

namespace keelson::apiserver {

struct RequestInfo {
  std::string path;
  // get list watch create update patch delete deletecollection for resources; else the method in lower case.
  std::string verb;
  bool is_resource = false;
  std::string group, version, ns, resource, subresource, name;
  // For list, watch and deletecollection, as in the query.
  std::string field_selector, label_selector;
  // The path after a proxy subresource, with its slash; else empty.
  std::string proxy_path;

  // "pods/status"
  std::string FullResource() const { return subresource.empty() ? resource : resource + "/" + subresource; }
};

// Parses /api/VERSION/... and /apis/GROUP/VERSION/..., each followed by
// [namespaces/NS/]RESOURCE[/NAME[/SUB[/...]]], and the deprecated /api/VERSION/watch/.... Anything else is a
// non-resource path.
RequestInfo ParseRequestInfo(std::string_view method, std::string_view path, const http::Query& query);

}  // namespace keelson::apiserver
