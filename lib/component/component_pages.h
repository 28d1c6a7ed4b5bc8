// /statusz and /flagz of every Kubernetes component: text for people, or an object for clients that accept
// application/json;v=v1beta1;g=config.k8s.io;as=Statusz. KEP-4827, KEP-4828.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"

namespace keelson::component {

struct PageAnswer {
  int status = 200;  // 406: no type that the client accepts
  std::string content_type, text;
};

struct StatusPage {
  std::string component;  // kubelet
  WallTime started, now;
  std::vector<std::string> paths;  // other pages; sorted
};

PageAnswer AnswerStatusz(const StatusPage& page, std::string_view accept);
// `flags`: name to value, without dashes.
PageAnswer AnswerFlagz(const std::string& component, const std::map<std::string, std::string>& flags,
                       std::string_view accept);

// /debug/flags/v: a PUT of a number sets the log verbosity.
PageAnswer AnswerVerbosity(std::string_view method, const std::string& body);

}  // namespace keelson::component
