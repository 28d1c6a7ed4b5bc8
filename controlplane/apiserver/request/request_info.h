// What a request is about: the path and method of an API request read as verb, resource and name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/http/message.h"

namespace keelson::apiserver {

struct RequestInfo {
  std::string path;
  // get list watch create update patch delete deletecollection for resources, the method in lower case
  // otherwise.
  std::string verb;
  bool is_resource = false;
  std::string group, version, ns, resource, subresource, name;
  // Of list, watch and deletecollection, as in the query.
  std::string field_selector, label_selector;
  // What follows a proxy subresource, with its slash; empty for all else.
  std::string proxy_path;

  // "pods/status"
  std::string FullResource() const { return subresource.empty() ? resource : resource + "/" + subresource; }
};

// Paths: /api/VERSION/... and /apis/GROUP/VERSION/..., each with [namespaces/NS/]RESOURCE[/NAME[/SUB[/...]]],
// and the deprecated /api/VERSION/watch/... Anything else is a non-resource path.
RequestInfo ParseRequestInfo(std::string_view method, std::string_view path, const http::Query& query);

}  // namespace keelson::apiserver
