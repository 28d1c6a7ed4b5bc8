// For tests: shorthands for requests.
#pragma once

#include <string>

#include "controlplane/apiserver/request/request_info.h"

namespace keelson::apiserver {

inline RequestInfo Resource(std::string verb, std::string group, std::string resource, std::string ns = "",
                            std::string name = "") {
  RequestInfo info;
  info.is_resource = true;
  info.verb = std::move(verb);
  info.group = std::move(group);
  auto slash = resource.find('/');
  info.resource = resource.substr(0, slash);
  if (slash != std::string::npos) info.subresource = resource.substr(slash + 1);
  info.ns = std::move(ns);
  info.name = std::move(name);
  return info;
}

inline RequestInfo Path(std::string verb, std::string path) {
  RequestInfo info;
  info.verb = std::move(verb);
  info.path = std::move(path);
  return info;
}

}  // namespace keelson::apiserver
