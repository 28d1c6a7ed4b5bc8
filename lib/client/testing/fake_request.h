// Parses request targets, for FakeApi.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/api/scheme.h"
#include "lib/base/error.h"

namespace keelson::client {

struct FakeRequest {
  const api::ResourceInfo* info = nullptr;  // the main resource
  std::string ns, name, subresource;
  std::map<std::string, std::string> query;

  // kNotFound when it is not a path of the API. `more`: resources beside the static table.
  static Result<FakeRequest> Parse(std::string_view target,
                                   const std::vector<const api::ResourceInfo*>& more = {});
  std::string Key() const;
};

}  // namespace keelson::client
