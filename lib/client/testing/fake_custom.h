// Resources that FakeApi serves beside the built-in ones, and its discovery document.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "lib/client/testing/fake_api.h"

namespace keelson::client {

class FakeCustom {  // not thread safe
 public:
  // Replaces the versions of the resource.
  void Serve(const FakeApi::Custom& custom);
  // The row of the first version; null: there is no such resource.
  const api::ResourceInfo* Find(std::string_view group, std::string_view resource) const;
  const std::vector<const api::ResourceInfo*>& rows() const { return rows_; }
  // The answer to GET /apis: aggregated discovery of these and the built-in resources.
  ApiResponse Discovery() const;

 private:
  struct Owned {
    std::string group, version, resource, kind;
    api::ResourceInfo row;
  };
  std::deque<Owned> owned_;  // all that were ever served: objects and watches refer to rows
  std::vector<const api::ResourceInfo*> rows_;
};

}  // namespace keelson::client
