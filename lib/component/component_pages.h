// /statusz and /flagz, as every Kubernetes component has them: text for people and, for who asks for it in
// Accept (application/json;v=v1beta1;g=config.k8s.io;as=Statusz), an object. KEP-4827, KEP-4828.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/clock.h"

namespace keelson::component {

struct PageAnswer {
  int status = 200;  // 406: nothing that the client accepts
  std::string content_type, text;
};

struct StatusPage {
  std::string component;  // kubelet
  WallTime started, now;
  std::vector<std::string> paths;  // what else there is to look at; sorted
};

PageAnswer AnswerStatusz(const StatusPage& page, std::string_view accept);
// `flags`: name to value, without dashes.
PageAnswer AnswerFlagz(const std::string& component, const std::map<std::string, std::string>& flags,
                       std::string_view accept);

// /debug/flags/v: a PUT of a number says how much is logged from now on.
PageAnswer AnswerVerbosity(std::string_view method, const std::string& body);

}  // namespace keelson::component
